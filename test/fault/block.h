/* SPDX-License-Identifier: MIT
 *
 * What the scenarios do with a block: fill it, look at it, and what a refusal is. */
#ifndef HAK_TEST_FAULT_BLOCK_H
#define HAK_TEST_FAULT_BLOCK_H

#include "fault/scenario.h"
#include "hakmem/hakmem.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* The head of a block is filled wholly, the rest 64 bytes at a time with wide gaps: thousands of
 * processes do this, and what is at stake are OS pages. */
static inline size_t fill_next(size_t at) {
    return at < 8192 ? at + 64 : at + 15 * 4096;
}

static inline void fill(unsigned char *block, size_t bytes, unsigned char value) {
    for (size_t at = 0; at < bytes; at = fill_next(at)) {
        memset(block + at, value, bytes - at < 64 ? bytes - at : 64);
    }
}

static inline bool is_filled(const unsigned char *block, size_t bytes, unsigned char value) {
    for (size_t at = 0; at < bytes; at = fill_next(at)) {
        size_t length = bytes - at < 64 ? bytes - at : 64;
        if (block[at] != value || memcmp(block + at, block + at + 1, length - 1) != 0) {
            return false;
        }
    }
    return true;
}

/* NULL comes with ENOMEM; anything else leaves errno alone. */
static inline unsigned refused(const void *block) {
    FAULT_EXPECT(errno == (block == NULL ? ENOMEM : 0));
    errno = 0;
    return block == NULL;
}

/* A new block of those bytes, filled: 1 if it was refused. */
static inline unsigned taken(unsigned char *block, size_t bytes, unsigned char value) {
    if (refused(block) != 0) {
        return 1;
    }
    fill(block, bytes, value);
    return 0;
}

/* As it was filled, and freed; NULL: there is none. */
static inline void give(unsigned char **block, size_t bytes, unsigned char value) {
    FAULT_EXPECT(*block == NULL || is_filled(*block, bytes, value));
    hak_free(*block);
    *block = NULL;
}

/* Grows or shrinks; on a refusal the block must be what it was. */
static inline bool resize(unsigned char **block, size_t *bytes, size_t wanted,
                          unsigned char value) {
    unsigned char *again = hak_realloc(*block, wanted);
    size_t kept = *bytes < wanted ? *bytes : wanted;
    if (refused(again) != 0) {
        FAULT_EXPECT(wanted > *bytes); /* shrinking cannot fail */
        FAULT_EXPECT(is_filled(*block, *bytes, value));
        return false;
    }
    FAULT_EXPECT(is_filled(again, kept, value));
    fill(again, wanted, value);
    *block = again;
    *bytes = wanted;
    return true;
}

#endif
