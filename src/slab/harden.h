/* SPDX-License-Identifier: MIT
 *
 * The bytes that hardened builds keep in a block besides the user's.
 *
 *   in use   | the user's bytes           | canary |   8 bytes, of a secret and the address
 *   free     | link | zero ...                   |   checked when it is handed out
 *   the same | link | mark | zero ...            |   above 128 bytes, cleared as a whole
 *
 * Above 128 bytes a block is cleared as a whole while a budget lasts (front/quarantine.c). Its
 * second word is a mark then, so a hand-out knows that the middle must be zero, too. Where memory
 * went back to the kernel the mark did, too. Of blocks without it only the first 64 and the last 64
 * are cleared and checked: the cost is the cache lines touched (docs/experiments/0033-hardened.md).
 * A fresh block is zero: its memory is clean, or was cleared when it was carved. With MTE tags the
 * last word holds the block's last tag (TAG-4). */
#ifndef HAK_SLAB_HARDEN_H
#define HAK_SLAB_HARDEN_H

#include "slab/link.h"
#include "slab/sizeclass.h"
#include "slab/tags.h"

#include <string.h>

enum { HAK_FILL_PART_BYTES = 64 }; /* at either end */

/* Either end of a block, of constant size: no loop. They may overlap. */
HAK_INLINE void hak_harden_clear_ends(char *block, size_t bytes, size_t part) {
    memset(block, 0, part);
    memset(block + bytes - part, 0, part);
}

HAK_INLINE uint64_t hak_harden_sum_ends(const char *block, size_t bytes, size_t part) {
    const uint64_t *first = (const uint64_t *)block;
    const uint64_t *last = (const uint64_t *)(block + bytes - part);
    uint64_t sum = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < part / sizeof sum; i++) {
        sum |= first[i] | last[i];
    }
    return sum;
}

HAK_INLINE bool hak_harden_is_clear(const void *block, size_t bytes) {
    uint64_t sum = bytes > HAK_FILL_PART_BYTES
                       ? hak_harden_sum_ends(block, bytes, HAK_FILL_PART_BYTES)
                   : bytes > HAK_FILL_PART_BYTES / 2
                       ? hak_harden_sum_ends(block, bytes, HAK_FILL_PART_BYTES / 2)
                       : hak_harden_sum_ends(block, bytes, HAK_FILL_PART_BYTES / 4);
    return sum == 0;
}

HAK_INLINE uint64_t *hak_harden_canary_at(void *block, size_t bytes) {
    return (uint64_t *)((char *)block + bytes - HAK_CANARY_BYTES);
}

HAK_INLINE uint64_t hak_harden_canary(const void *block) {
    uint64_t mixed = ((uintptr_t)block ^ hak_secret.canary) * hak_secret.factor;
    return mixed ^ mixed >> 32;
}

/* The last MTE tag of a free block (TAG-4). */
HAK_INLINE unsigned hak_harden_last_tag(void *block, size_t bytes) {
    return hak_tags_are_on() ? (unsigned)*hak_harden_canary_at(block, bytes) & HAK_TAG_MASK : 0;
}

/* Clears a free block except for its last tag. `bytes` is a multiple of 16. */
HAK_INLINE void hak_harden_wipe(void *block, size_t bytes, unsigned last) {
    if (bytes > HAK_FILL_PART_BYTES) {
        hak_harden_clear_ends(block, bytes, HAK_FILL_PART_BYTES);
    } else if (bytes > HAK_FILL_PART_BYTES / 2) {
        hak_harden_clear_ends(block, bytes, HAK_FILL_PART_BYTES / 2);
    } else {
        hak_harden_clear_ends(block, bytes, HAK_FILL_PART_BYTES / 4);
    }
    if (hak_tags_are_on()) {
        *hak_harden_canary_at(block, bytes) = last;
    }
}

/* --- blocks cleared as a whole ---------------------------------------------------------------- */

/* No block in use ends in it: none begins 8 bytes on. */
HAK_INLINE uint64_t hak_harden_mark(const void *block) {
    return hak_harden_canary((const char *)block + sizeof(uint64_t));
}

/* hak_harden_wipe for the whole block; bytes > 2 * HAK_FILL_PART_BYTES. */
HAK_INLINE void hak_harden_wipe_whole(void *block, size_t bytes, unsigned last) {
    memset(block, 0, bytes);
    ((uint64_t *)block)[1] = hak_harden_mark(block);
    if (hak_tags_are_on()) {
        *hak_harden_canary_at(block, bytes) = last;
    }
}

/* hak_harden_hand_out of a block whose ends are not clear: fatal, unless it was cleared as a whole
 * and still is, but for the mark of that. */
HAK_NOINLINE HAK_NEVER_NULL void *hak_harden_hand_out_whole(void *block, size_t bytes,
                                                            unsigned last);

/* --- in and out ------------------------------------------------------------------------------- */

/* Hands out a block whose link is cleared; returns the address to hand out. */
HAK_INLINE void *hak_harden_hand_out(void *block, size_t bytes) {
    unsigned last = hak_harden_last_tag(block, bytes);
    if (hak_tags_are_on()) {
        *hak_harden_canary_at(block, bytes) ^= last;
    }
    if (HAK_UNLIKELY(!hak_harden_is_clear(block, bytes))) {
        return hak_harden_hand_out_whole(block, bytes, last);
    }
    *hak_harden_canary_at(block, bytes) = hak_harden_canary(block);
    return hak_tags_are_on() ? hak_tag_give(block, bytes, last) : block;
}

/* Whether a block that is being freed has its canary. */
HAK_INLINE bool hak_harden_is_intact(void *block, size_t bytes) {
    return *hak_harden_canary_at(block, bytes) == hak_harden_canary(block);
}

#endif
