/* SPDX-License-Identifier: MIT
 * shift THREADS [LIVE PHASE QUIET SEED]
 *
 * Measures: a server that holds LIVE bytes (200m) while its mix of sizes shifts. Eight phases of
 * PHASE milliseconds (500) follow each other:
 *
 *   1 tiny        16 to 64 B
 *   2 medium      256 B to 2 KiB
 *   3 bimodal     32 B, and 8 to 32 KiB; half of the bytes each
 *   4 large       64 KiB to 1 MiB
 *   5 strings     log-normal: median 96 B, a standard deviation is a factor of 2.7; 16 B to 2 KiB
 *   6 tiny        as in phase 1
 *   7 buffers     4 to 16 KiB
 *   8 very large  1 to 8 MiB: a few dozen
 *
 * The first phase fills LIVE bytes. Each later one makes half as many, and for them frees random
 * blocks, all equally likely: so old sizes drain slowly, from pages that new sizes cannot use, and
 * some of each stay. After the last phase little happens for QUIET milliseconds (1000): see the
 * peak against the live bytes, and what is resident at the end against what lives then. busy_kib is
 * RSS when the last phase ends.
 *
 * The work is the same for the same arguments, whatever the machine: a phase is made of ticks with
 * a fixed amount of work each, after which the threads meet, and sleep until 10 ms have passed. A
 * tick that takes longer makes the phase longer. THREADS share LIVE equally; each sends a quarter
 * of the blocks it gives up to the next one, which frees them a tick later. Each page of a block is
 * written; of blocks from 64 KiB on those of the first three quarters, as buffers are seldom full.
 * LIVE counts requested bytes, and the tables that blocks hang in. No warm-up: growing is part of
 * it. No block is larger than a quarter of its thread's LIVE.
 * Known from: servers and caches that run for weeks while what they hold changes; their RSS follows
 * the history of their sizes rather than their live bytes.
 * Does not measure: throughput; the threads sleep some of the time. One operation is one pair of
 * malloc and free. */
#include "live.h"

#include <stdio.h>

enum { TICK_MS = 10, SEND_ONE_IN = 4, MOST_THREADS = 64 };
enum { RENEW_ONE_IN = 2 }; /* of the live bytes, in each phase but the first */
enum { PARTLY_FROM = 64 << 10, WRITTEN_QUARTERS = 3 };
enum { LARGE_MODE_ONE_IN = 641 }; /* 20 KiB on average are as many bytes as 640 times 32 */

/* Blocks of a kind hang in lists of LIST blocks made one after the other: a table with a pointer
 * for each tiny block would be a fifth of what lives. */
typedef struct kind {
    uint32_t min, max; /* uniform between them; 0 for the logarithms of strings */
    uint32_t list;
} kind_t;

enum {
    TINY,
    MEDIUM,
    SMALL_MODE,
    LARGE_MODE,
    LARGE,
    STRINGS,
    TINY_AGAIN,
    BUFFERS,
    VERY_LARGE,
    KINDS
};

static const kind_t kinds[KINDS] = {
    [TINY] = {16, 64, 32},
    [MEDIUM] = {256, 2048, 1},
    [SMALL_MODE] = {32, 32, 32},
    [LARGE_MODE] = {8 << 10, 32 << 10, 1},
    [LARGE] = {64 << 10, 1 << 20, 1},
    [STRINGS] = {0, 0, 16},
    [TINY_AGAIN] = {16, 64, 32},
    [BUFFERS] = {4 << 10, 16 << 10, 1},
    [VERY_LARGE] = {1 << 20, 8 << 20, 1},
};

/* Of each phase; the bimodal one adds LARGE_MODE. */
static const uint8_t phases[] = {TINY,    MEDIUM,     SMALL_MODE, LARGE,
                                 STRINGS, TINY_AGAIN, BUFFERS,    VERY_LARGE};

typedef struct pool {
    live_block_t **lists;
    uint32_t count, capacity;
    uint32_t in_last; /* blocks put into the last list; from KIND.list on it is closed */
    uint32_t blocks;
} pool_t;

/* On cache lines of its own. What it holds is its thread's, but for OUT. */
typedef struct worker {
    _Alignas(64) live_t live;
    bench_rng_t rng;
    pool_t pools[KINDS];
    uint32_t blocks;             /* in the pools, */
    uint64_t bytes, table_bytes; /* their bytes, and those of the pools' tables */
    int64_t due;                 /* bytes to make; below 0 after a large block */
    live_block_t *out[2]; /* given up in even and odd ticks; the next thread frees them a tick
                             later */
} worker_t;

static struct {
    worker_t workers[MOST_THREADS];
    unsigned threads;
    uint32_t ticks; /* in a phase */
    uint64_t limit; /* of a thread's bytes */
    uint64_t quiet;
    struct timespec until;
    int64_t live, peak;
    uint64_t operations;
} server;

static uint32_t written_of(uint32_t size) {
    return size < PARTLY_FROM ? size : size / 4 * WRITTEN_QUARTERS;
}

static void end_block(worker_t *worker, live_block_t *block) {
    live_end_part(&worker->live, block, written_of(block->size));
}

static void end_blocks(worker_t *worker, live_block_t **list) {
    while (*list != NULL) {
        live_block_t *block = *list;
        *list = block->next;
        end_block(worker, block);
    }
}

static void grow_table(worker_t *worker, pool_t *pool) {
    enum { FIRST = 64 };
    uint32_t more = pool->capacity != 0 ? pool->capacity : FIRST;
    size_t size = (size_t)(pool->capacity + more) * sizeof *pool->lists;
    pool->lists = bench_need(realloc(pool->lists, size), size);
    pool->capacity += more;
    worker->table_bytes += more * sizeof *pool->lists;
    live_add(&worker->live, (int64_t)(more * sizeof *pool->lists));
}

static void put(worker_t *worker, unsigned kind, live_block_t *block) {
    pool_t *pool = &worker->pools[kind];
    if (pool->count == 0 || pool->in_last >= kinds[kind].list) {
        if (pool->count == pool->capacity) {
            grow_table(worker, pool);
        }
        pool->lists[pool->count++] = NULL;
        pool->in_last = 0;
    }
    live_block_t **list = &pool->lists[pool->count - 1];
    block->next = *list;
    *list = block;
    pool->in_last++;
    pool->blocks++;
    worker->blocks++;
    worker->bytes += block->size;
}

/* A block of the kind, which has one: the newest of a random list. */
static live_block_t *take(worker_t *worker, unsigned kind) {
    pool_t *pool = &worker->pools[kind];
    live_block_t **list = &pool->lists[bench_below(&worker->rng, pool->count)];
    live_block_t *block = *list;
    *list = block->next;
    if (block->next == NULL) {
        *list = pool->lists[--pool->count];
        pool->in_last = kinds[kind].list; /* the last list is another one now, or has moved */
    }
    pool->blocks--;
    worker->blocks--;
    worker->bytes -= block->size;
    return block;
}

static void give_up_one(worker_t *worker, uint32_t tick) {
    uint32_t number = bench_below(&worker->rng, worker->blocks);
    unsigned kind = 0;
    while (number >= worker->pools[kind].blocks) {
        number -= worker->pools[kind++].blocks;
    }
    live_block_t *block = take(worker, kind);
    if (server.threads > 1 && bench_below(&worker->rng, SEND_ONE_IN) == 0) {
        block->next = worker->out[tick % 2];
        worker->out[tick % 2] = block;
    } else {
        end_block(worker, block);
    }
}

/* The number of ones among eight random bits is a normal distribution of octaves, nearly. */
static uint32_t string_size(bench_rng_t *rng) {
    uint32_t least = 4u << __builtin_popcount(bench_below(rng, 256));
    uint32_t size = bench_between(rng, least, 2 * least);
    return size > LIVE_SMALLEST ? size : LIVE_SMALLEST;
}

static uint32_t size_of(bench_rng_t *rng, unsigned kind) {
    const kind_t *of = &kinds[kind];
    uint32_t size = of->max != 0 ? bench_between(rng, of->min, of->max) : string_size(rng);
    return size < server.limit / 4 ? size : (uint32_t)(server.limit / 4);
}

/* Makes BYTES bytes of the phase's sizes, and keeps within the limit. */
static void make(worker_t *worker, unsigned phase, uint32_t tick, uint64_t bytes) {
    worker->due += (int64_t)bytes;
    while (worker->due > 0) {
        unsigned kind = phases[phase];
        if (kind == SMALL_MODE && bench_below(&worker->rng, LARGE_MODE_ONE_IN) == 0) {
            kind = LARGE_MODE;
        }
        uint32_t size = size_of(&worker->rng, kind);
        while (worker->bytes + worker->table_bytes + size > server.limit && worker->blocks != 0) {
            give_up_one(worker, tick);
        }
        put(worker, kind, live_make_part(&worker->live, size, written_of(size)));
        worker->due -= size;
    }
}

/* What the thread before this one gave up a tick ago. */
static void free_from(worker_t *worker, worker_t *before, uint32_t tick) {
    end_blocks(worker, &before->out[(tick + 1) % 2]);
}

/* By one thread, while the others wait. */
static void count_live(void) {
    server.live = 0;
    server.operations = 0;
    for (unsigned i = 0; i < server.threads; i++) {
        server.live += server.workers[i].live.bytes;
        server.operations += server.workers[i].live.operations;
    }
    server.peak = server.live > server.peak ? server.live : server.peak;
}

static void run_phases(bench_thread_t *thread, worker_t *worker, worker_t *before) {
    uint32_t tick = 0;
    uint64_t bytes = server.limit / server.ticks;
    for (unsigned phase = 0; phase < BENCH_COUNT(phases); phase++) {
        for (uint32_t end = tick + server.ticks; tick < end; tick++) {
            free_from(worker, before, tick);
            make(worker, phase, tick, phase == 0 ? bytes : bytes / RENEW_ONE_IN);
            bench_meet(thread);
            if (thread->index == 0) {
                count_live();
                live_next_tick(&server.until, TICK_MS);
            }
            bench_meet(thread);
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &server.until, NULL);
        }
    }
    free_from(worker, before, tick);
    bench_meet(thread);
}

static void end_worker(worker_t *worker) {
    for (unsigned kind = 0; kind < KINDS; kind++) {
        pool_t *pool = &worker->pools[kind];
        for (uint32_t i = 0; i < pool->count; i++) {
            end_blocks(worker, &pool->lists[i]);
        }
        free(pool->lists);
    }
}

static void work(bench_thread_t *thread) {
    static char extra[40];
    worker_t *worker = &server.workers[thread->index];
    worker_t *before = &server.workers[(thread->index + thread->count - 1) % thread->count];
    bench_start_together(thread);
    run_phases(thread, worker, before);
    if (thread->index == 0) { /* the others wait, with whatever they keep */
        snprintf(extra, sizeof extra, "\"busy_kib\":%llu", (unsigned long long)bench_rss_kib());
        live_quiet(&worker->live, &worker->rng, server.quiet);
        count_live();
    }
    bench_meet(thread);
    bench_stop_together(thread, server.operations);
    if (thread->index == 0) {
        bench_live_end((uint64_t)server.live);
        bench_extra(extra);
    }
    bench_meet(thread);
    end_worker(worker);
    thread->check = worker->live.sum;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS [LIVE PHASE QUIET SEED]");
    server.threads = (unsigned)bench_arg(1, 1, 1, MOST_THREADS, "THREADS");
    server.limit = bench_arg(2, 200 << 20, 1 << 20, 1u << 30, "LIVE") / server.threads;
    server.ticks = (uint32_t)bench_arg(3, 500, TICK_MS, 1000000, "PHASE") / TICK_MS;
    server.quiet = bench_arg(4, 1000, 0, 1000000, "QUIET");
    uint64_t seed = bench_arg(5, 42, 0, UINT32_MAX, "SEED");
    for (unsigned i = 0; i < server.threads; i++) {
        server.workers[i].rng = bench_rng(seed + i);
    }
    clock_gettime(CLOCK_MONOTONIC, &server.until);
    uint64_t sum = bench_run_threads(server.threads, work, NULL);
    bench_live_peak((uint64_t)server.peak);
    return bench_finish(sum);
}
