/* SPDX-License-Identifier: MIT
 *
 * Blocks that know what is in them: size and seed in front, a pattern behind. Whoever holds one can
 * tell whether another block overlaps it. Sizes are mostly small, some medium, a few large.
 */
#ifndef HAK_TEST_THREAD_BLOCK_H
#define HAK_TEST_THREAD_BLOCK_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/family.h"

typedef struct block {
    uint32_t size;
    uint32_t seed;
    unsigned char bytes[];
} block_t;

static inline size_t block_random_size(uint64_t *state) {
    uint64_t draw = expect_random(state);
    size_t limit = draw % 1000 < 900 ? 600 : draw % 1000 < 996 ? 8192 : 200000;
    return sizeof(block_t) + (draw >> 16) % limit;
}

/* Large blocks carry their pattern at both ends only: touching all of them is not the subject. */
static inline size_t block_stride(size_t size) {
    return size <= 1024 ? 1 : size / 64;
}

static inline void block_stamp(block_t *block, size_t size, uint32_t seed) {
    block->size = (uint32_t)size;
    block->seed = seed;
    size_t count = size - sizeof(block_t);
    for (size_t at = 0; at < count; at += block_stride(size)) {
        block->bytes[at] = (unsigned char)(seed + at);
    }
}

static inline void block_check(const block_t *block) {
    size_t count = block->size - sizeof(block_t);
    for (size_t at = 0; at < count; at += block_stride(block->size)) {
        EXPECT_EQ(block->bytes[at], (unsigned char)(block->seed + at));
    }
}

/* One block by malloc, calloc, memalign or realloc, stamped. */
static inline block_t *block_make(uint64_t *state) {
    size_t size = block_random_size(state);
    uint64_t draw = expect_random(state);
    block_t *block;
    if (draw % 16 == 0) {
        block = (block_t *)family.calloc(1, size);
    } else if (draw % 16 == 1) {
        block = (block_t *)family.memalign((size_t)16 << (draw >> 8) % 8, size);
    } else if (draw % 16 == 2) {
        block = (block_t *)family.realloc(family.malloc(size / 2), size);
    } else {
        block = (block_t *)family.malloc(size);
    }
    EXPECT(block != NULL);
    block_stamp(block, size, (uint32_t)(draw >> 32));
    return block;
}

/* Checks and frees; sometimes moves the block first, as its new owner may. */
static inline void block_unmake(block_t *block, uint64_t *state) {
    if (block == NULL) {
        return;
    }
    block_check(block);
    if (expect_random(state) % 16 == 0) {
        size_t size = block->size;
        block = (block_t *)family.realloc(block, size + 100);
        EXPECT(block != NULL);
        EXPECT_EQ(block->size, size);
        block_check(block);
    }
    family.free(block);
}

/* --- many of them; a place may be NULL ------------------------------------------------------- */

static inline void blocks_make(block_t **blocks, size_t count, uint64_t *state) {
    for (size_t i = 0; i < count; ++i) {
        blocks[i] = block_make(state);
    }
}

static inline void blocks_unmake(block_t **blocks, size_t count, uint64_t *state) {
    for (size_t i = 0; i < count; ++i) {
        block_unmake(blocks[i], state);
    }
}

/* `steps` times, one of them makes room for another. */
static inline void blocks_churn(block_t **blocks, size_t count, size_t steps, uint64_t *state) {
    for (size_t step = 0; step < steps; ++step) {
        size_t i = expect_random(state) % count;
        block_unmake(blocks[i], state);
        blocks[i] = block_make(state);
    }
}

/* --- threads --------------------------------------------------------------------------------- */

static inline pthread_t thread_start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, body, argument);
    EXPECT_EQ(error, 0);
    return thread;
}

/* Each gets its number, from `first` on. */
static inline void threads_start(pthread_t *threads, size_t count, void *(*body)(void *),
                                 size_t first) {
    for (size_t i = 0; i < count; ++i) {
        threads[i] = thread_start(body, (void *)(uintptr_t)(first + i));
    }
}

static inline void threads_join(const pthread_t *threads, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    }
}

#endif
