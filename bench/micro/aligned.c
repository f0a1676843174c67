/* SPDX-License-Identifier: MIT
 * aligned ITERS SLOTS [MIN MAX]
 *
 * Measures: aligned blocks. Each step picks a random slot; a full one is freed, an empty one gets a
 * block of a log-uniform size (16 B to 16 KiB by default) from posix_memalign or aligned_alloc in
 * turn. Half of the alignments are 64, the rest 32 to 4096.
 * Known from: cache-line aligned nodes and buffers, vector code (Eigen, OpenBLAS, ffmpeg), direct
 * input and output.
 * Does not measure: threads, alignments above 4096, C++'s aligned new.
 * A block that is not aligned ends the program. So it does on mimalloc 2.0.9 (Debian 12), whose
 * aligned_alloc fails when size and alignment are both 256, 512 or 1024 (its issue 700, repaired).
 * One operation is one step: half a pair. */
#include "bench.h"

#include <stdbool.h>

static const uint16_t alignments[] = {32, 64,  64,  64,  64,  64,   64,   64,
                                      64, 128, 128, 256, 512, 1024, 2048, 4096};

typedef struct slot {
    unsigned char *block;
    size_t size;
} slot_t;

static void *aligned_block(size_t alignment, size_t size, bool by_posix) {
    void *block = NULL;
    if (by_posix) {
        if (posix_memalign(&block, alignment, size) != 0) {
            bench_out_of_memory(size);
        }
    } else {
        /* C11 wanted a multiple of the alignment. */
        block = aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
    }
    if (((uintptr_t)bench_need(block, size) & (alignment - 1)) != 0) {
        bench_fail("%zu bytes are not aligned to %zu", size, alignment);
    }
    return block;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "ITERS SLOTS [MIN MAX]");
    uint64_t iterations = bench_arg(1, 4000000, 1, UINT64_MAX / 2, "ITERS");
    uint32_t slots = (uint32_t)bench_arg(2, 400, 1, 1u << 30, "SLOTS");
    uint32_t min = (uint32_t)bench_arg(3, 16, 1, 1u << 30, "MIN");
    uint32_t max = (uint32_t)bench_arg(4, min > 16384 ? min : 16384, min, 1u << 30, "MAX");
    slot_t *table = bench_need(calloc(slots, sizeof *table), slots * sizeof *table);
    bench_rng_t rng = bench_rng(slots);
    uint64_t live = 0, peak = 0, sum = 0;

    uint64_t warm_up = iterations / 10;
    for (uint64_t i = 0; i < warm_up + iterations; i++) {
        if (i == warm_up) {
            bench_start();
        }
        slot_t *slot = &table[bench_below(&rng, slots)];
        if (slot->block != NULL) {
            sum = sum * 3 + bench_marks(slot->block, slot->size);
            live -= slot->size;
            free(slot->block);
            slot->block = NULL;
        } else {
            size_t alignment = alignments[bench_below(&rng, BENCH_COUNT(alignments))];
            slot->size = bench_log_between(&rng, min, max);
            slot->block = aligned_block(alignment, slot->size, i % 2 == 0);
            bench_mark(slot->block, slot->size, (unsigned char)i);
            live += slot->size;
            peak = live > peak ? live : peak;
        }
    }
    bench_stop(iterations);

    for (uint32_t i = 0; i < slots; i++) {
        free(table[i].block);
    }
    free(table);
    bench_live_peak(peak);
    return bench_finish(sum);
}
