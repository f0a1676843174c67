/* SPDX-License-Identifier: MIT
 * stress THREADS ROUNDS
 *
 * Measures: everything at once, as a test of endurance. Each round starts THREADS new threads. Each
 * of them allocates 20 000 blocks: nearly all small, few up to 1 MiB. Half of the blocks go through
 * an array that all threads share, and whoever finds a block there frees it; a quarter stay in an
 * array that the thread of the same number takes over in the next round; the rest live and die with
 * the thread. Every page of a block is written.
 * Known from: the stress test that mimalloc ships (test-stress), whose idea it follows.
 * Does not measure: one thing: a change here tells that something is different, not what.
 * One operation is one block: a malloc and a free. */
#include "bench.h"

#include <stdatomic.h>
#include <string.h>

enum { BLOCKS = 20000, SHARED = 1024, RETAINED = 512, OWN = 256, STRIDE = 4096 };

typedef struct block {
    uint32_t size, mark;
} block_t;

typedef struct work {
    _Alignas(64) _Atomic(block_t *) shared[SHARED];
    _Alignas(64) block_t *(*retained)[RETAINED]; /* one array for each thread */
    uint64_t round;
} work_t;

static uint32_t random_size(bench_rng_t *rng) {
    uint32_t kind = bench_below(rng, 10000);
    if (kind < 5) {
        return bench_between(rng, 256 << 10, 1 << 20);
    }
    if (kind < 50) {
        return bench_between(rng, 16 << 10, 256 << 10);
    }
    if (kind < 500) {
        return bench_between(rng, 1 << 10, 16 << 10);
    }
    /* A product of two: small sizes are more frequent. */
    return (uint32_t)sizeof(block_t) + bench_below(rng, 1000) * bench_below(rng, 1000) / 1000;
}

static block_t *make(bench_rng_t *rng) {
    uint32_t size = random_size(rng), mark = (uint32_t)bench_random(rng);
    block_t *block = bench_need(malloc(size), size);
    for (uint32_t at = STRIDE; at < size; at += STRIDE) {
        ((unsigned char *)block)[at] = (unsigned char)mark;
    }
    bench_mark(block, size, (unsigned char)mark);
    *block = (block_t){size, mark};
    return block;
}

/* Frees BLOCK, if there is one; returns a sum of its contents. */
static uint64_t end(block_t *block) {
    if (block == NULL) {
        return 0;
    }
    uint64_t sum = (uint64_t)block->size + block->mark;
    if (block->size >= sizeof *block + 1) {
        sum += ((unsigned char *)block)[block->size - 1];
    }
    for (uint32_t at = STRIDE; at < block->size; at += STRIDE) {
        sum += ((unsigned char *)block)[at];
    }
    free(block);
    return sum;
}

static block_t *swap(block_t **place, block_t *block) {
    block_t *old = *place;
    *place = block;
    return old;
}

static void body(bench_thread_t *thread) {
    work_t *work = thread->context;
    block_t **retained = work->retained[thread->index];
    block_t *own[OWN] = {NULL};
    bench_rng_t rng = bench_rng(work->round * thread->count + thread->index);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        block_t *block = make(&rng);
        uint32_t way = bench_below(&rng, 4), place = bench_below(&rng, 1u << 16);
        if (way < 2) {
            block = atomic_exchange(&work->shared[place % SHARED], block);
        } else if (way == 2) {
            block = swap(&retained[place % RETAINED], block);
        } else {
            block = swap(&own[place % OWN], block);
        }
        sum += end(block);
    }
    for (unsigned i = 0; i < OWN; i++) {
        sum += end(own[i]);
    }
    thread->check = sum;
}

/* After a round the main thread empties half of the shared array, so that it frees too. */
static uint64_t empty_half(work_t *work) {
    uint64_t sum = 0;
    for (unsigned i = work->round % 2; i < SHARED; i += 2) {
        sum += end(atomic_exchange(&work->shared[i], NULL));
    }
    return sum;
}

static uint64_t empty_all(work_t *work, unsigned threads) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < SHARED; i++) {
        sum += end(atomic_exchange(&work->shared[i], NULL));
    }
    for (unsigned i = 0; i < threads * RETAINED; i++) {
        sum += end(work->retained[i / RETAINED][i % RETAINED]);
    }
    return sum;
}

int main(int argc, char **argv) {
    static work_t work;
    bench_init(argc, argv, "THREADS ROUNDS");
    unsigned threads = (unsigned)bench_arg(1, 4, 1, 1024, "THREADS");
    uint64_t rounds = bench_arg(2, 40, 1, 1u << 30, "ROUNDS");
    size_t size = threads * sizeof *work.retained; /* no cache line holds parts of two arrays */
    work.retained = memset(bench_need(aligned_alloc(64, size), size), 0, size);

    bench_start();
    uint64_t sum = 0;
    for (work.round = 0; work.round < rounds; work.round++) {
        sum += bench_run_threads(threads, body, &work);
        sum += empty_half(&work);
    }
    bench_stop(rounds * threads * BLOCKS);

    sum += empty_all(&work, threads);
    free(work.retained);
    return bench_finish(sum);
}
