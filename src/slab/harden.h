/* SPDX-License-Identifier: MIT
 *
 * What hardened builds keep in a block besides its user's bytes.
 *
 *   in use   | what the user has        | canary |   8 bytes, of a secret and the place
 *   free     | link | zero ...                   |   looked at when it is handed out
 *
 * Of blocks above 128 bytes only the first 64 and the last 64 are cleared and looked at: whole ones
 * cost what their cache lines cost (docs/experiments/0033-hardened.md). A block
 * that was never handed out is zero: its memory is fresh, or was cleared when it was carved. The
 * second word of a batch's head (remote.h) is zero again when its owner has it. */
#ifndef HAK_SLAB_HARDEN_H
#define HAK_SLAB_HARDEN_H

#include "slab/link.h"
#include "slab/sizeclass.h"

#include <string.h>

enum { HAK_FILL_PART_BYTES = 64 }; /* at either end */

/* `bytes` is a multiple of 16. The two parts may overlap. Without a loop but for the smallest, for
 * nobody could predict its end. */
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

/* The block, its link cleared, is handed out. */
HAK_INLINE void hak_harden_hand_out(void *block, size_t bytes) {
    if (HAK_UNLIKELY(!hak_harden_is_clear(block, bytes))) {
        hak_fatal(HAK_FATAL_CORRUPT_LINK, block, NULL);
    }
    *hak_harden_canary_at(block, bytes) = hak_harden_canary(block);
}

/* Whether a block, which is freed, has its canary. */
HAK_INLINE bool hak_harden_is_intact(void *block, size_t bytes) {
    return *hak_harden_canary_at(block, bytes) == hak_harden_canary(block);
}

#endif
