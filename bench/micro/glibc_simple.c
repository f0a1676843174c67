/* SPDX-License-Identifier: MIT
 * glibc_simple SIZE ROUNDS
 *
 * Measures: batches of one size. 25, 100, 400 and 1600 blocks are allocated and then freed in the
 * same order. A round does as many pairs with each batch size (the small batches are repeated), so
 * all four weigh the same.
 * Known from: bench-malloc-simple in glibc's benchtests, which reports each batch size separately.
 * Does not measure: threads, mixed sizes, use of more than a block's two ends.
 * One operation is one pair of malloc and free. */
#include "bench.h"

static const uint32_t batches[] = {25, 100, 400, 1600};
enum { LARGEST = 1600 };

static uint64_t batch(unsigned char **blocks, uint32_t count, size_t size) {
    for (uint32_t i = 0; i < count; i++) {
        unsigned char *block = BENCH_MALLOC(size);
        bench_mark(block, size, (unsigned char)i);
        blocks[i] = block;
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        unsigned char *block = blocks[i];
        sum = sum * 3 + bench_marks(block, size);
        BENCH_FREE(block, size);
    }
    return sum;
}

static uint64_t simple_round(unsigned char **blocks, size_t size) {
    uint64_t sum = 0;
    for (size_t b = 0; b < BENCH_COUNT(batches); b++) {
        for (uint32_t done = 0; done < LARGEST; done += batches[b]) {
            sum += batch(blocks, batches[b], size);
        }
    }
    return sum;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "SIZE ROUNDS");
    size_t size = bench_arg(1, 64, 1, 1u << 24, "SIZE");
    uint64_t rounds = bench_arg(2, 4000, 1, UINT64_MAX / 16384, "ROUNDS");
    unsigned char **blocks = bench_need(malloc(LARGEST * sizeof *blocks), LARGEST * sizeof *blocks);

    uint64_t sum = 0;
    for (uint64_t round = 0; round < 1 + rounds / 10; round++) {
        sum += simple_round(blocks, size);
    }
    bench_start();
    for (uint64_t round = 0; round < rounds; round++) {
        sum += simple_round(blocks, size);
    }
    bench_stop(rounds * BENCH_COUNT(batches) * LARGEST);

    free(blocks);
    bench_live_peak((uint64_t)LARGEST * size);
    return bench_finish(sum);
}
