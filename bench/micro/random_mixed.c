/* SPDX-License-Identifier: MIT
 * random_mixed ITERS SLOTS SEED [MIN MAX]
 *
 * Measures: the plain life of small blocks. Each step picks a random slot; a full one is freed, an
 * empty one gets a block of a random size, whose first byte is written. With 400 slots everything
 * stays in the first cache; with 100 000 the blocks' own cache misses rule. Known from: the
 * benchmark of the same name of this allocator's earlier generation, and the same loop in many
 * allocators' own tests ("random actions"). Does not measure: threads, large blocks, locality of
 * use. One operation is one step: half a pair. */
#include "bench.h"

#include <string.h>

typedef struct slot {
    unsigned char *block;
    size_t size;
} slot_t;

int main(int argc, char **argv) {
    bench_init(argc, argv, "ITERS SLOTS SEED [MIN MAX]");
    uint64_t iterations = bench_arg(1, 10000000, 1, UINT64_MAX / 2, "ITERS");
    uint32_t slots = (uint32_t)bench_arg(2, 400, 1, 1u << 30, "SLOTS");
    uint64_t seed = bench_arg(3, 42, 0, UINT64_MAX, "SEED");
    uint32_t min = (uint32_t)bench_arg(4, 16, 1, 1u << 30, "MIN");
    uint32_t max = (uint32_t)bench_arg(5, min > 1039 ? min : 1039, min, 1u << 30, "MAX");
    slot_t *table = bench_need(calloc(slots, sizeof *table), slots * sizeof *table);
    bench_rng_t rng = bench_rng(seed);
    uint64_t live = 0, peak = 0, sum = 0;

    uint64_t warm_up = iterations / 10;
    for (uint64_t i = 0; i < warm_up + iterations; i++) {
        if (i == warm_up) {
            bench_start();
        }
        slot_t *slot = &table[bench_below(&rng, slots)];
        if (slot->block != NULL) {
            sum += slot->block[0];
            live -= slot->size;
            BENCH_FREE(slot->block, slot->size);
            slot->block = NULL;
        } else {
            slot->size = bench_between(&rng, min, max);
            slot->block = BENCH_MALLOC(slot->size);
            slot->block[0] = (unsigned char)i;
            live += slot->size;
            peak = live > peak ? live : peak;
        }
    }
    bench_stop(iterations);

    for (uint32_t i = 0; i < slots; i++) {
        if (table[i].block != NULL) {
            BENCH_FREE(table[i].block, table[i].size);
        }
    }
    memset(table, 0, slots * sizeof *table);
    free(table);
    bench_live_peak(peak);
    return bench_finish(sum);
}
