/* SPDX-License-Identifier: MIT
 *
 * The bytes that hardened builds keep in a block besides the user's.
 *
 *   in use   | the user's bytes | slack | canary |   8 bytes, of a secret, the address, the slack
 *   free     | link | zero ...                   |   checked when it is handed out
 *   held     | zero ...                          |   in quarantine (front/quarantine.c)
 *   the same | link | mark | zero ...            |   above 128 bytes, cleared as a whole (harden.c)
 *
 * Of blocks above 128 bytes without the mark only the first 64 and the last 64 are cleared and
 * checked: the cost is the cache lines touched (docs/experiments/0033-hardened.md). A fresh block
 * is zero: its memory is clean, or was cleared when it was carved. With MTE tags the last word
 * holds the block's last tag (TAG-4).
 *
 * The slack are the bytes between the size that was asked for and the canary, which tells how many
 * they are. Its first and last HAK_SLACK_PART_BYTES are zero while the block is in use, so an
 * overflow by one byte is seen when the block is freed. */
#ifndef HAK_SLAB_HARDEN_H
#define HAK_SLAB_HARDEN_H

#include "slab/link.h"
#include "slab/sizeclass.h"
#include "slab/tags.h"

#include <string.h>

enum {
    HAK_FILL_PART_BYTES = 64,                                      /* at either end */
    HAK_SLACK_PART_BYTES = HAK_FILL_PART_BYTES - HAK_CANARY_BYTES, /* clear in a free block */
};

/* Either end of a block, of constant size: no loop. They may overlap. */
HAK_INLINE void hak_harden_clear_ends(char *block, size_t bytes, size_t part) {
    memset(block, 0, part);
    memset(block + bytes - part, 0, part);
}

/* `bytes` is a multiple of 16. */
HAK_INLINE void hak_harden_clear(void *block, size_t bytes) {
    if (bytes > HAK_FILL_PART_BYTES) {
        hak_harden_clear_ends(block, bytes, HAK_FILL_PART_BYTES);
    } else if (bytes > HAK_FILL_PART_BYTES / 2) {
        hak_harden_clear_ends(block, bytes, HAK_FILL_PART_BYTES / 2);
    } else {
        hak_harden_clear_ends(block, bytes, HAK_FILL_PART_BYTES / 4);
    }
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

/* The slack stands in it twice, so no change of one byte makes another slack. */
static const uint64_t HAK_SLACK_TWICE = 1ull << 40 | 1 << 16;

HAK_INLINE uint64_t hak_harden_canary(const void *block, size_t slack) {
    uint64_t mixed = ((uintptr_t)block ^ hak_secret.canary) * hak_secret.factor;
    return (mixed ^ mixed >> 32) ^ slack * HAK_SLACK_TWICE;
}

/* Whether a word is the block's canary, and *slack then. */
HAK_INLINE bool hak_harden_is_canary(const void *block, uint64_t word, size_t *slack) {
    uint64_t said = word ^ hak_harden_canary(block, 0);
    *slack = (uint16_t)(said >> 16);
    return said == *slack * HAK_SLACK_TWICE;
}

/* The last MTE tag of a free block (TAG-4). */
HAK_INLINE unsigned hak_harden_last_tag(void *block, size_t bytes) {
    return hak_tags_are_on() ? (unsigned)*hak_harden_canary_at(block, bytes) & HAK_TAG_MASK : 0;
}

HAK_INLINE void hak_harden_set_tag(void *block, size_t bytes, unsigned last) {
    if (hak_tags_are_on()) {
        *hak_harden_canary_at(block, bytes) = last;
    }
}

/* Clears a free block except for its last tag. */
HAK_INLINE void hak_harden_wipe(void *block, size_t bytes, unsigned last) {
    hak_harden_clear(block, bytes);
    hak_harden_set_tag(block, bytes, last);
}

/* --- harden.c: blocks cleared as a whole ------------------------------------------------------ */

/* Marks a free block that is zero as a whole; above 2 * HAK_FILL_PART_BYTES. */
void hak_harden_mark_whole(void *block);
/* hak_harden_hand_out of a block whose ends are not clear, or that gets much slack: fatal, unless
 * they are or it was cleared as a whole and still is, but for the mark of that. */
HAK_NOINLINE HAK_NEVER_NULL void *hak_harden_hand_out_rest(void *block, size_t bytes, size_t size,
                                                           unsigned last);

/* --- slack ------------------------------------------------------------------------------------ */

/* Clears the ends of the slack of a block in use. */
void hak_harden_clear_slack(void *block, size_t bytes, size_t slack);
/* Whether they are clear. */
HAK_NOINLINE bool hak_harden_is_slack_clear(const void *block, size_t bytes, size_t slack);
/* Of a word. */
HAK_INLINE uint64_t hak_harden_last_bytes(uint64_t word, size_t bytes) {
    return word >> 1 >> (63 - 8 * bytes);
}
/* Changes the size of a block in use. false: its canary or its slack was written to. */
bool hak_harden_resize(void *block, size_t bytes, size_t size);

/* --- the block before ------------------------------------------------------------------------- */

/* Looks at the canary and the slack of the block before, of the same slab, of any state and any
 * thread. Fatal if they were written to: an underflow of the block, or an overflow of that before.
 * Not with tags, which find it at once. */
HAK_NOINLINE void hak_harden_check_before(const void *block, size_t bytes);

enum { HAK_LOOK_MOST = 1024 }; /* of smaller blocks only the canary: their free sees the rest */

/* --- in and out ------------------------------------------------------------------------------- */

/* Hands out a block whose link is cleared, for `size` bytes; returns the address to hand out. */
HAK_INLINE void *hak_harden_hand_out(void *block, size_t bytes, size_t size) {
    unsigned last = hak_harden_last_tag(block, bytes);
    size_t slack = bytes - HAK_CANARY_BYTES - size;
    if (hak_tags_are_on()) {
        *hak_harden_canary_at(block, bytes) ^= last;
    }
    if (HAK_UNLIKELY(slack > HAK_SLACK_PART_BYTES || !hak_harden_is_clear(block, bytes))) {
        return hak_harden_hand_out_rest(block, bytes, size, last);
    }
    *hak_harden_canary_at(block, bytes) = hak_harden_canary(block, slack);
    return hak_tags_are_on() ? hak_tag_give(block, bytes, last) : block;
}

/* hak_harden_is_intact, if less than 16 bytes are slack; else false. */
HAK_INLINE bool hak_harden_is_surely_intact(const void *block, size_t bytes) {
    const uint64_t *canary = (const uint64_t *)((const char *)block + bytes) - 1;
    size_t slack;
    if (HAK_UNLIKELY(!hak_harden_is_canary(block, *canary, &slack) || slack > 15)) {
        return false;
    }
    uint64_t full = slack > 7 ? canary[-1] : 0;
    return (full | hak_harden_last_bytes(*(canary - 1 - slack / 8), slack % 8)) == 0;
}

/* Whether a block that is being freed has its canary, and nothing wrote to its slack. */
HAK_INLINE bool hak_harden_is_intact(const void *block, size_t bytes) {
    const uint64_t *canary = (const uint64_t *)((const char *)block + bytes) - 1;
    size_t slack;
    return hak_harden_is_canary(block, *canary, &slack) &&
           hak_harden_is_slack_clear(block, bytes, slack);
}

#endif
