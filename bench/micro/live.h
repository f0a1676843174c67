/* SPDX-License-Identifier: MIT
 * Blocks whose bytes are counted as long as they live: what the workloads on fragmentation share.
 * A block's content is its size, a stamp in its last byte and one number a page, so that all of it
 * is resident; it is read back when the block ends. Blocks link into lists by themselves: a table
 * of pointers would be live memory, too, and of another kind. */
#ifndef HAK_BENCH_LIVE_H
#define HAK_BENCH_LIVE_H

#include "bench.h"

#include <time.h>

enum { LIVE_SMALLEST = 16, LIVE_PAGE = 4096, LIVE_PAGE_LOG2 = 12 };

typedef struct live_block {
    struct live_block *next; /* the user's */
    uint32_t size;
} live_block_t;

/* Of one thread. Blocks may end in another thread than made them: then BYTES can be negative, only
 * the sum over the threads means something, and PEAK nothing. */
typedef struct live {
    int64_t bytes, peak;
    uint64_t sum, operations;
} live_t;

static inline void live_add(live_t *live, int64_t bytes) {
    live->bytes += bytes;
    live->peak = live->bytes > live->peak ? live->bytes : live->peak;
}

/* SIZE at least LIVE_SMALLEST. Only the first WRITTEN bytes are used. */
static inline live_block_t *live_make_part(live_t *live, uint32_t size, uint32_t written) {
    live_block_t *block = bench_need(malloc(size), size);
    unsigned char *bytes = (unsigned char *)block;
    block->next = NULL;
    block->size = size;
    for (uint32_t at = LIVE_PAGE; at < written; at += LIVE_PAGE) {
        bytes[at] = (unsigned char)(at >> LIVE_PAGE_LOG2);
    }
    bytes[written - 1] = (unsigned char)live->operations;
    live->operations++;
    live_add(live, size);
    return block;
}

static inline live_block_t *live_make(live_t *live, uint32_t size) {
    return live_make_part(live, size, size);
}

/* WRITTEN as the block was made with. */
static inline void live_end_part(live_t *live, live_block_t *block, uint32_t written) {
    const unsigned char *bytes = (const unsigned char *)block;
    uint32_t size = block->size;
    live->sum = live->sum * 3 + size + bytes[written - 1];
    for (uint32_t at = LIVE_PAGE; at < written; at += LIVE_PAGE) {
        live->sum += bytes[at];
    }
    live->bytes -= size;
    free(block);
}

static inline void live_end(live_t *live, live_block_t *block) {
    live_end_part(live, block, block->size);
}

static inline void live_end_list(live_t *live, live_block_t **list) {
    while (*list != NULL) {
        live_block_t *block = *list;
        *list = block->next;
        live_end(live, block);
    }
}

/* A table of COUNT pointers, all NULL, that counts as live. */
static inline live_block_t **live_table(live_t *live, size_t count) {
    live_add(live, (int64_t)(count * sizeof(live_block_t *)));
    return bench_need(calloc(count, sizeof(live_block_t *)), count * sizeof(live_block_t *));
}

/* Moves UNTIL, the end of a tick, on by MILLISECONDS (below 1000); to now if that has passed: what
 * a late tick loses is not made up for, or later ones would be shorter. */
static inline void live_next_tick(struct timespec *until, uint32_t milliseconds) {
    enum { BILLION = 1000000000, MILLION = 1000000 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    until->tv_nsec += milliseconds * MILLION;
    if (until->tv_nsec >= BILLION) {
        until->tv_nsec -= BILLION;
        until->tv_sec++;
    }
    if (now.tv_sec > until->tv_sec ||
        (now.tv_sec == until->tv_sec && now.tv_nsec > until->tv_nsec)) {
        *until = now;
    }
}

/* What passes while a program has next to nothing to do: allocators that give memory back by time
 * do it on the calls that still come. Every millisecond a few small blocks are replaced, every
 * fourth a large one comes and goes. */
static inline void live_quiet(live_t *live, bench_rng_t *rng, uint64_t milliseconds) {
    enum { HELD = 64, REPLACED = 8, LARGE_EVERY = 4 };
    live_block_t *held[HELD] = {NULL};
    for (uint64_t step = 0; step < milliseconds; step++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        for (unsigned i = 0; i < REPLACED; i++) {
            live_block_t **block = &held[bench_below(rng, HELD)];
            if (*block != NULL) {
                live_end(live, *block);
            }
            *block = live_make(live, bench_log_between(rng, 16, 1024));
        }
        if (step % LARGE_EVERY == 0) {
            live_end(live, live_make(live, bench_between(rng, 64 << 10, 512 << 10)));
        }
    }
    for (unsigned i = 0; i < HELD; i++) {
        live_end_list(live, &held[i]);
    }
}

#endif
