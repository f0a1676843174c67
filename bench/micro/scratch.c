/* SPDX-License-Identifier: MIT
 * scratch THREADS ITERS
 *
 * Measures: passive false sharing. The main thread allocates one block of 8 bytes for each thread,
 * side by side, and hands them out; each thread frees its own, then again and again allocates a
 * block of 8 bytes, writes to it 1000 times and frees it. If the allocator gives a thread the very
 * block that came from main back, threads write to one cache line for the rest of the run.
 * Known from: "cache-scratch" of the benchmarks of Hoard (Berger and others, 2000).
 * Does not measure: the time of malloc, which hardly counts here; nor anything if the two
 * processors share their first cache.
 * One operation is one block: malloc, 1000 writes, free. ITERS is for each thread: the time stays
 * the same with more threads, as long as there are processors for them. */
#include "bench.h"
#include "sharing.h"

typedef struct work {
    unsigned char **blocks;
    uint64_t iterations;
} work_t;

static void body(bench_thread_t *thread) {
    const work_t *work = thread->context;
    uint64_t sum = 0;
    bench_start_together(thread);
    sum += work->blocks[thread->index][0];
    free(work->blocks[thread->index]);
    for (uint64_t i = 0; i < work->iterations; i++) {
        unsigned char *block = bench_need(malloc(SIZE), SIZE);
        sum += write_often(block);
        free(block);
    }
    bench_stop_together(thread, thread->count * work->iterations);
    thread->check = sum;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS ITERS");
    unsigned threads = (unsigned)bench_arg(1, 2, 1, 1024, "THREADS");
    uint64_t iterations = bench_arg(2, 500000, 1, UINT64_MAX >> 16, "ITERS");
    unsigned char **blocks = bench_need(calloc(threads, sizeof *blocks), threads * sizeof *blocks);
    for (unsigned i = 0; i < threads; i++) {
        blocks[i] = bench_need(malloc(SIZE), SIZE);
        blocks[i][0] = (unsigned char)i;
    }
    uint64_t sum = bench_run_threads(threads, body, &(work_t){blocks, iterations});
    free(blocks);
    bench_live_peak((uint64_t)threads * SIZE);
    return bench_finish(sum);
}
