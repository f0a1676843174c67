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

/* 48 bits depend on all of block, slack and secret; the lowest 16 hide the slack. */
HAK_INLINE uint64_t hak_harden_canary(const void *block, size_t slack) {
    uint64_t place = (uintptr_t)block ^ hak_secret.canary;
    uint64_t mixed = (place ^ (uint64_t)slack << 32) * hak_secret.factor;
    mixed ^= mixed >> 32;
    return mixed ^ (uint16_t)(mixed ^ place ^ slack);
}

/* The slack that a canary tells, if it is one. */
HAK_INLINE size_t hak_harden_slack(const void *block, uint64_t canary) {
    return (uint16_t)(canary ^ (uintptr_t)block ^ hak_secret.canary);
}

/* Whether a word is the block's canary, and *slack then. */
HAK_INLINE bool hak_harden_is_canary(const void *block, uint64_t word, size_t *slack) {
    *slack = hak_harden_slack(block, word);
    return word == hak_harden_canary(block, *slack);
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
/* hak_harden_hand_out of a block whose ends are not clear: fatal, unless it was cleared as a whole
 * and still is, but for the mark of that. */
HAK_NOINLINE HAK_NEVER_NULL void *hak_harden_hand_out_whole(void *block, size_t bytes, size_t size,
                                                            unsigned last);

/* --- slack ------------------------------------------------------------------------------------ */

/* Clears the ends of the slack of a block in use. */
void hak_harden_clear_slack(void *block, size_t bytes, size_t slack);
/* Whether they are clear; slack > 15. */
HAK_NOINLINE bool hak_harden_is_slack_clear(const void *block, size_t bytes, size_t slack);
/* Changes the size of a block in use. false: its canary or its slack was written to. */
bool hak_harden_resize(void *block, size_t bytes, size_t size);

/* --- the block before ------------------------------------------------------------------------- */

/* Looks at the canary and the slack of the block before, of the same slab, of any state and any
 * thread. Fatal if they were written to: an underflow of the block, an overflow of that before, or
 * a write to it after its free. Not with tags, which find it at once. */
HAK_NOINLINE void hak_harden_check_before(const void *block, size_t bytes);

/* --- in and out ------------------------------------------------------------------------------- */

/* Clears what is not clear in a free block, and sets the canary. */
HAK_INLINE void hak_harden_fit(void *block, size_t bytes, size_t size) {
    size_t slack = bytes - HAK_CANARY_BYTES - size;
    if (HAK_UNLIKELY(slack > HAK_SLACK_PART_BYTES)) {
        hak_harden_clear_slack(block, bytes, slack);
    }
    *hak_harden_canary_at(block, bytes) = hak_harden_canary(block, slack);
}

/* Hands out a block whose link is cleared, for `size` bytes; returns the address to hand out. */
HAK_INLINE void *hak_harden_hand_out(void *block, size_t bytes, size_t size) {
    unsigned last = hak_harden_last_tag(block, bytes);
    if (hak_tags_are_on()) {
        *hak_harden_canary_at(block, bytes) ^= last;
    }
    if (HAK_UNLIKELY(!hak_harden_is_clear(block, bytes))) {
        return hak_harden_hand_out_whole(block, bytes, size, last);
    }
    hak_harden_fit(block, bytes, size);
    return hak_tags_are_on() ? hak_tag_give(block, bytes, last) : block;
}

/* Whether a block that is being freed has its canary, and nothing wrote to its slack. */
HAK_INLINE bool hak_harden_is_intact(void *block, size_t bytes) {
    const uint64_t *canary = hak_harden_canary_at(block, bytes);
    size_t slack;
    if (HAK_UNLIKELY(!hak_harden_is_canary(block, *canary, &slack))) {
        return false;
    }
    if (slack > 15) {
        return hak_harden_is_slack_clear(block, bytes, slack);
    }
    uint64_t part = *(canary - 1 - slack / 8); /* of this word the last slack % 8 bytes */
    uint64_t full = slack > 7 ? canary[-1] : 0;
    return (full | part >> 1 >> (63 - 8 * (slack % 8))) == 0;
}

#endif
