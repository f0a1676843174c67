/* SPDX-License-Identifier: MIT
 * glibc_thread THREADS OPS
 *
 * Measures: threads with working sets of their own and sizes as programs have them. Each thread
 * holds 1024 blocks and replaces one after the other at random. Sizes go from 4 bytes to 32 KiB by
 * an inverse power: the frequency of a size falls with its power of 1.5, so half of the blocks
 * are at most 16 bytes and one in 50 is above 4 KiB.
 * Known from: the pattern of the GNU C library's bench-malloc-thread.
 * Does not measure: frees by other threads.
 * One operation is one replacement: a pair of free and malloc. OPS is for each thread: the time
 * stays the same with more threads, as long as there are processors for them. */
#include "bench.h"

enum { WORKING_SET = 1024, SIZES = 8192, SMALLEST = 4, LARGEST = 32768 };

typedef struct slot {
    void *block;
    uint32_t size;
} slot_t;

typedef struct work {
    uint64_t operations;
    uint32_t sizes[SIZES]; /* drawn before: the loop needs no division */
} work_t;

/* With density x^-1.5 the share of sizes below x is (1 - sqrt(min / x)) / (1 - sqrt(min / max)),
 * solved for x. */
static void draw_sizes(uint32_t *sizes) {
    static const double root = 0.011048543456039806; /* sqrt(SMALLEST / LARGEST) */
    bench_rng_t rng = bench_rng(88);
    for (unsigned i = 0; i < SIZES; i++) {
        double share = (double)bench_below(&rng, 1u << 31) / (1u << 31);
        double inverse = 1 - share * (1 - root);
        sizes[i] = (uint32_t)(SMALLEST / (inverse * inverse));
    }
}

static uint64_t run(const work_t *work, slot_t *set, bench_rng_t *rng, uint64_t operations) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < operations; i++) {
        uint64_t random = bench_random(rng);
        slot_t *slot = &set[(random >> 32) % WORKING_SET];
        if (slot->block != NULL) {
            sum += bench_marks(slot->block, slot->size);
            BENCH_FREE(slot->block, slot->size);
        }
        slot->size = work->sizes[(random >> 48) % SIZES];
        slot->block = BENCH_MALLOC(slot->size);
        bench_mark(slot->block, slot->size, (unsigned char)slot->size);
    }
    return sum;
}

static void body(bench_thread_t *thread) {
    const work_t *work = thread->context;
    slot_t *set = bench_need(calloc(WORKING_SET, sizeof *set), WORKING_SET * sizeof *set);
    bench_rng_t rng = bench_rng(thread->index);
    thread->check = run(work, set, &rng, work->operations / 10);
    bench_start_together(thread);
    thread->check += run(work, set, &rng, work->operations);
    bench_stop_together(thread, thread->count * work->operations);
    for (unsigned i = 0; i < WORKING_SET; i++) {
        if (set[i].block != NULL) {
            BENCH_FREE(set[i].block, set[i].size);
        }
    }
    free(set);
}

int main(int argc, char **argv) {
    static work_t work;
    bench_init(argc, argv, "THREADS OPS");
    unsigned threads = (unsigned)bench_arg(1, 2, 1, 1024, "THREADS");
    work.operations = bench_arg(2, 10000000, 1, UINT64_MAX >> 16, "OPS");
    draw_sizes(work.sizes);
    return bench_finish(bench_run_threads(threads, body, &work));
}
