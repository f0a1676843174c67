/* SPDX-License-Identifier: MIT
 * mixed_threads THREADS ITERS SLOTS
 *
 * Measures: whether the path for local blocks stays as fast when several threads take it. Each
 * thread runs the loop of random_mixed on its own slots: a random slot is freed if it is full and
 * filled with a block of 16 to 1039 bytes if it is empty. No block is ever seen by another thread.
 * Known from: random_mixed, in threads.
 * Does not measure: blocks that move between threads, start and end of threads.
 * One operation is one step: half a pair. ITERS is for each thread: the time stays the same with
 * more threads, as long as there are processors for them. */
#include "bench.h"

enum { SMALLEST = 16, LARGEST = 1039 };

typedef struct slot {
    void *block;
    size_t size;
} slot_t;

typedef struct work {
    uint64_t iterations;
    uint32_t slots;
} work_t;

static uint64_t run(slot_t *table, uint32_t slots, bench_rng_t *rng, uint64_t iterations) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        slot_t *slot = &table[bench_below(rng, slots)];
        if (slot->block != NULL) {
            sum += bench_marks(slot->block, slot->size);
            BENCH_FREE(slot->block, slot->size);
            slot->block = NULL;
        } else {
            slot->size = bench_between(rng, SMALLEST, LARGEST);
            slot->block = BENCH_MALLOC(slot->size);
            bench_mark(slot->block, slot->size, (unsigned char)i);
        }
    }
    return sum;
}

static void body(bench_thread_t *thread) {
    const work_t *work = thread->context;
    slot_t *table = bench_need(calloc(work->slots, sizeof *table), work->slots * sizeof *table);
    bench_rng_t rng = bench_rng(thread->index);
    thread->check = run(table, work->slots, &rng, work->iterations / 10);
    bench_start_together(thread);
    thread->check += run(table, work->slots, &rng, work->iterations);
    bench_stop_together(thread, thread->count * work->iterations);
    for (uint32_t i = 0; i < work->slots; i++) {
        if (table[i].block != NULL) {
            BENCH_FREE(table[i].block, table[i].size);
        }
    }
    free(table);
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS ITERS SLOTS");
    unsigned threads = (unsigned)bench_arg(1, 2, 1, 1024, "THREADS");
    uint64_t iterations = bench_arg(2, 15000000, 1, UINT64_MAX >> 16, "ITERS");
    uint32_t slots = (uint32_t)bench_arg(3, 400, 1, 1u << 24, "SLOTS");
    return bench_finish(bench_run_threads(threads, body, &(work_t){iterations, slots}));
}
