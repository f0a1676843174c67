/* SPDX-License-Identifier: MIT
 *
 * The first word of a free block links to the next. In hardened builds it is stored encoded with a
 * secret and the place it stands at; a decoded link that is not 16-byte aligned or no user address
 * was overwritten. Constant-folded away otherwise. */
#ifndef HAK_SLAB_HARDEN_H
#define HAK_SLAB_HARDEN_H

#include "base/check.h"
#include "base/words.h"

extern uintptr_t hak_link_secret; /* [init] */

/* fast path: begin */
HAK_INLINE void *hak_link_get(const void *block) {
    uintptr_t word = *(const uintptr_t *)block;
    if (HAK_HARDEN) {
        word ^= hak_link_secret ^ (uintptr_t)block;
        if (HAK_UNLIKELY((word & (HAK_BLOCK_ALIGN - 1)) != 0 || (word >> 48) != 0)) {
            hak_fatal(HAK_FATAL_CORRUPT_LINK, block, NULL);
        }
    }
    return (void *)word;
}

HAK_INLINE void hak_link_set(void *block, const void *next) {
    uintptr_t word = (uintptr_t)next;
    if (HAK_HARDEN) {
        word ^= hak_link_secret ^ (uintptr_t)block;
    }
    *(uintptr_t *)block = word;
}
/* fast path: end */

#endif
