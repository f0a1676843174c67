/* SPDX-License-Identifier: MIT
 * thrash THREADS ITERS
 *
 * Measures: active false sharing. Each thread again and again allocates a block of 8 bytes, writes
 * to it 1000 times and frees it. If the allocator serves several threads from one run of blocks,
 * they write to the same cache line all the time.
 * Known from: "cache-thrash" of the benchmarks of Hoard (Berger and others, 2000).
 * Does not measure: the time of malloc, which hardly counts here; nor anything if the two
 * processors share their first cache.
 * One operation is one block: malloc, 1000 writes, free. ITERS is for each thread: the time stays
 * the same with more threads, as long as there are processors for them. */
#include "bench.h"
#include "sharing.h"

static void body(bench_thread_t *thread) {
    uint64_t iterations = *(const uint64_t *)thread->context, sum = 0;
    bench_start_together(thread);
    for (uint64_t i = 0; i < iterations; i++) {
        unsigned char *block = BENCH_MALLOC(SIZE);
        sum += write_often(block);
        BENCH_FREE(block, SIZE);
    }
    bench_stop_together(thread, thread->count * iterations);
    thread->check = sum;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS ITERS");
    unsigned threads = (unsigned)bench_arg(1, 2, 1, 1024, "THREADS");
    uint64_t iterations = bench_arg(2, 500000, 1, UINT64_MAX >> 16, "ITERS");
    uint64_t sum = bench_run_threads(threads, body, &iterations);
    bench_live_peak((uint64_t)threads * SIZE);
    return bench_finish(sum);
}
