/* SPDX-License-Identifier: MIT
 * drift CYCLES [LIVE]
 *
 * Measures: sizes that drift. A cache of LIVE bytes (24m) is full all the time; new entries push
 * out old ones at random. The mean of their sizes grows slowly from 48 bytes to 4 KiB and shrinks
 * back: 32 steps up, 32 down, in each of which 5/16 of the cache is replaced; around the mean all
 * sizes from half to one and a half of it. So at any time a narrow range of sizes is asked for,
 * while the places that become free are of those before. See the peak against the live bytes, and
 * what is resident at the end. No warm-up: growing is part of it. Each block is written at both
 * ends and once in 4 KiB. Known from: caches in front of databases, whose values grow with each
 * release of what uses them. memcached's slabs are known for it ("slab calcification"). Does not
 * measure: threads, time that passes. One operation is one pair of malloc and free. */
#include "live.h"

/* A step is a fifth of a doubling: 32 of them lead from 48 to 4053 bytes. */
enum { STEPS = 32, SMALLEST_MEAN = 48, GROWTH = 1149, GROWTH_OF = 1000, FRACTION = 64 };

static struct {
    live_t live;
    live_block_t **entries;
    uint32_t count, capacity;
    bench_rng_t rng;
} cache;

/* Replaces BYTES bytes of the cache by entries around the mean. */
static void run_step(uint32_t mean, uint64_t bytes, int64_t limit) {
    uint64_t made = 0;
    while (made < bytes) {
        uint32_t size = bench_between(&cache.rng, mean / 2, mean + mean / 2);
        while (cache.live.bytes + size > limit || cache.count == cache.capacity) {
            live_block_t **entry = &cache.entries[bench_below(&cache.rng, cache.count)];
            live_end(&cache.live, *entry);
            *entry = cache.entries[--cache.count];
        }
        cache.entries[cache.count++] = live_make(&cache.live, size);
        made += size;
    }
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "CYCLES [LIVE]");
    uint64_t cycles = bench_arg(1, 1, 1, UINT32_MAX, "CYCLES");
    uint64_t bytes = bench_arg(2, 24 << 20, 1 << 16, 1u << 30, "LIVE");
    cache.rng = bench_rng(bytes);
    cache.capacity = (uint32_t)(bytes / SMALLEST_MEAN) + 1;
    cache.entries = live_table(&cache.live, cache.capacity);
    int64_t limit = cache.live.bytes + (int64_t)bytes;
    uint32_t means[STEPS + 1]; /* in 64ths of a byte */
    means[0] = SMALLEST_MEAN * FRACTION;
    for (unsigned step = 1; step <= STEPS; step++) {
        means[step] =
            means[step - 1] / GROWTH_OF * GROWTH + means[step - 1] % GROWTH_OF * GROWTH / GROWTH_OF;
    }

    bench_start();
    run_step(SMALLEST_MEAN, bytes, limit);
    for (uint64_t cycle = 0; cycle < cycles; cycle++) {
        for (unsigned step = 1; step <= 2 * STEPS; step++) {
            uint32_t mean = means[step <= STEPS ? step : 2 * STEPS - step] / FRACTION;
            run_step(mean, bytes * 5 / 16, limit);
        }
    }
    bench_stop(cache.live.operations);
    bench_live_end((uint64_t)cache.live.bytes);

    for (uint32_t i = 0; i < cache.count; i++) {
        live_end(&cache.live, cache.entries[i]);
    }
    free(cache.entries);
    bench_live_peak((uint64_t)cache.live.peak);
    return bench_finish(cache.live.sum);
}
