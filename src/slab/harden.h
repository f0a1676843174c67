/* SPDX-License-Identifier: MIT
 *
 * The bytes that hardened builds keep in a block besides the user's.
 *
 *   in use   | the user's bytes           | canary |   8 bytes, of a secret and the address
 *   free     | link | zero ...                   |   checked when it is handed out
 *
 * Of blocks above 128 bytes only the first 64 and the last 64 are cleared and checked: the cost is
 * the cache lines touched (docs/experiments/0033-hardened.md). A fresh block is zero: its memory is
 * clean, or was cleared when it was carved. With MTE tags the last word holds the block's last tag
 * (TAG-4). */
#ifndef HAK_SLAB_HARDEN_H
#define HAK_SLAB_HARDEN_H

#include "slab/link.h"
#include "slab/sizeclass.h"
#include "slab/tags.h"

#include <string.h>

enum { HAK_FILL_PART_BYTES = 64 }; /* at either end */

/* `bytes` is a multiple of 16. The two parts may overlap. A loop only for sizes below a part. */
HAK_INLINE void hak_harden_clear(void *block, size_t bytes) {
    char *at = block, *end = at + bytes;
    if (bytes >= HAK_FILL_PART_BYTES) {
        memset(at, 0, HAK_FILL_PART_BYTES);
        memset(end - HAK_FILL_PART_BYTES, 0, HAK_FILL_PART_BYTES);
        return;
    }
    for (; at != end; at += HAK_BLOCK_ALIGN) {
        memset(at, 0, HAK_BLOCK_ALIGN);
    }
}

HAK_INLINE uint64_t hak_harden_sum(const char *from) {
    const uint64_t *word = (const uint64_t *)from;
    uint64_t even = word[0] | word[2] | word[4] | word[6];
    return even | word[1] | word[3] | word[5] | word[7];
}

HAK_INLINE bool hak_harden_is_clear(const void *block, size_t bytes) {
    const char *at = block, *end = at + bytes;
    uint64_t sum = 0;
    if (bytes >= HAK_FILL_PART_BYTES) {
        return (hak_harden_sum(at) | hak_harden_sum(end - HAK_FILL_PART_BYTES)) == 0;
    }
    for (; at != end; at += sizeof sum) {
        sum |= *(const uint64_t *)at;
    }
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

/* Clears a free block except for its last tag. */
HAK_INLINE void hak_harden_wipe(void *block, size_t bytes, unsigned last) {
    hak_harden_clear(block, bytes);
    if (hak_tags_are_on()) {
        *hak_harden_canary_at(block, bytes) = last;
    }
}

/* Hands out a block whose link is cleared; returns the address to hand out. */
HAK_INLINE void *hak_harden_hand_out(void *block, size_t bytes) {
    unsigned last = hak_harden_last_tag(block, bytes);
    if (hak_tags_are_on()) {
        *hak_harden_canary_at(block, bytes) ^= last;
    }
    hak_require(hak_harden_is_clear(block, bytes), HAK_FATAL_CORRUPT_LINK, block);
    *hak_harden_canary_at(block, bytes) = hak_harden_canary(block);
    return hak_tags_are_on() ? hak_tag_give(block, bytes, last) : block;
}

/* Whether a block that is being freed has its canary. */
HAK_INLINE bool hak_harden_is_intact(void *block, size_t bytes) {
    return *hak_harden_canary_at(block, bytes) == hak_harden_canary(block);
}

#endif
