/* SPDX-License-Identifier: MIT
 * burst N ORDER ROUNDS [MIN MAX]
 *
 * Measures: bursts. N blocks are allocated, then all are freed: last first (lifo), first first
 * (fifo) or in one fixed shuffled order (random); ROUNDS times. All blocks have MIN bytes (48 by
 * default) or, when MAX is larger, random sizes drawn before. A cache of free blocks that is
 * smaller than N overflows and is refilled in every round.
 * Known from: the batches in glibc's benchtests, and the loops that allocate all, then free all, in
 * the tests of most allocators.
 * Does not measure: threads, blocks of different age, use of more than a block's two ends.
 * One operation is one pair of malloc and free. */
#include "bench.h"

enum { LIFO, FIFO, RANDOM };

typedef struct burst {
    uint32_t count;
    uint32_t fixed;        /* the size of all blocks … */
    const uint32_t *sizes; /* … unless this one gives each its own */
    const uint32_t *order; /* in which the blocks are freed */
    unsigned char **blocks;
} burst_t;

/* Gives each round other bytes than the one before: what is read back cannot be left over. */
static uint64_t burst_round(const burst_t *burst, uint64_t round) {
    /* Copies, for all the compiler knows the stores into blocks change the structure. */
    const uint32_t count = burst->count, fixed = burst->fixed;
    const uint32_t *const sizes = burst->sizes, *const order = burst->order;
    unsigned char **const blocks = burst->blocks;
    for (uint32_t i = 0; i < count; i++) {
        size_t size = sizes != NULL ? sizes[i] : fixed;
        unsigned char *block = BENCH_MALLOC(size);
        bench_mark(block, size, (unsigned char)(i + round));
        blocks[i] = block;
    }
    uint64_t sum = 0;
    for (uint32_t j = 0; j < count; j++) {
        uint32_t i = order[j];
        size_t size = sizes != NULL ? sizes[i] : fixed;
        unsigned char *block = blocks[i];
        sum = sum * 3 + bench_marks(block, size);
        BENCH_FREE(block, size);
    }
    return sum;
}

static uint32_t *numbers(uint32_t count) {
    return bench_need(malloc(count * sizeof(uint32_t)), count * sizeof(uint32_t));
}

static uint32_t *make_order(uint32_t count, int kind, bench_rng_t *rng) {
    uint32_t *order = numbers(count);
    for (uint32_t i = 0; i < count; i++) {
        order[i] = kind == LIFO ? count - 1 - i : i;
    }
    for (uint32_t i = count; kind == RANDOM && i > 1; i--) {
        uint32_t other = bench_below(rng, i), last = order[i - 1];
        order[i - 1] = order[other];
        order[other] = last;
    }
    return order;
}

int main(int argc, char **argv) {
    static const char *const kinds[] = {"lifo", "fifo", "random", NULL};
    bench_init(argc, argv, "N lifo|fifo|random ROUNDS [MIN MAX]");
    uint32_t count = (uint32_t)bench_arg(1, 1000, 1, 1u << 28, "N");
    int kind = bench_choice(2, kinds, "ORDER");
    uint64_t rounds = bench_arg(3, (25000000 + count - 1) / count, 1, UINT64_MAX / 2, "ROUNDS");
    uint32_t min = (uint32_t)bench_arg(4, 48, 1, 1u << 30, "MIN");
    uint32_t max = (uint32_t)bench_arg(5, min, min, 1u << 30, "MAX");
    bench_rng_t rng = bench_rng(count);
    uint32_t *order = make_order(count, kind, &rng);
    uint32_t *sizes = max > min ? numbers(count) : NULL;
    uint64_t live = (uint64_t)count * min;
    for (uint32_t i = 0; sizes != NULL && i < count; i++) {
        sizes[i] = bench_between(&rng, min, max);
        live += sizes[i] - min;
    }
    unsigned char **blocks = bench_need(malloc(count * sizeof *blocks), count * sizeof *blocks);
    burst_t burst = {count, min, sizes, order, blocks};

    uint64_t sum = 0;
    for (uint64_t round = 0; round < 1 + rounds / 10; round++) {
        sum += burst_round(&burst, round);
    }
    bench_start();
    for (uint64_t round = 0; round < rounds; round++) {
        sum += burst_round(&burst, round);
    }
    bench_stop(rounds * count);

    free(blocks);
    free(sizes);
    free(order);
    bench_live_peak(live);
    return bench_finish(sum);
}
