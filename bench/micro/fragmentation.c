/* SPDX-License-Identifier: MIT
 * fragmentation GENERATIONS [LIVE KEEP]
 *
 * Measures: what survivors cost. Each generation allocates LIVE bytes (16m) of blocks of one narrow
 * range of sizes and frees them in the order of allocation, but for about KEEP percent (3) at
 * random, which pin the memory around them for eight more generations, while those ask for other
 * sizes. Free memory between survivors is of no use to an allocator that cannot give it to other
 * sizes: see the peak against the live bytes, and what is resident at the end, when only survivors
 * live.
 * No warm-up: growing is part of it. Each block is written once in 4 KiB and at its end.
 * Known from: the worst cases in the literature (Robson; the survey of Wilson and others), and
 * servers whose caches keep a few objects of each burst.
 * Does not measure: threads, locality of use.
 * One operation is one pair of malloc and free. */
#include "bench.h"

#include <string.h>

enum { OS_PAGE = 4096, HOLD = 8 };

/* A generation's blocks have LOW to 2 × LOW bytes; neighbours in time are far apart in size. */
static const uint32_t lows[] = {32, 512, 128, 2048, 64, 8192, 256, 1024};

typedef struct survivors {
    unsigned char **blocks;
    uint32_t count;
} survivors_t;

static struct {
    unsigned char **blocks; /* of the present generation */
    survivors_t held[HOLD]; /* generation g's are in g modulo HOLD */
    uint32_t group;         /* one block in so many survives */
    uint64_t live, peak, sum, operations;
    bench_rng_t rng;
} program;

static unsigned char *make_block(uint32_t low) {
    uint32_t size = bench_between(&program.rng, low, 2 * low);
    unsigned char *block = bench_need(malloc(size), size);
    for (uint32_t at = OS_PAGE; at < size; at += OS_PAGE) {
        block[at] = (unsigned char)at;
    }
    block[size - 1] = (unsigned char)program.operations;
    memcpy(block, &size, sizeof size);
    program.operations++;
    program.live += size;
    program.peak = program.live > program.peak ? program.live : program.peak;
    return block;
}

static void end_block(unsigned char *block) {
    uint32_t size;
    memcpy(&size, block, sizeof size);
    program.sum = program.sum * 3 + size + block[size - 1];
    program.live -= size;
    free(block);
}

static void drop_survivors(survivors_t *survivors) {
    for (uint32_t i = 0; i < survivors->count; i++) {
        end_block(survivors->blocks[i]);
    }
    survivors->count = 0;
}

static uint32_t groups_of(uint32_t low, uint64_t bytes) {
    return (uint32_t)(bytes / (low + low / 2) / program.group) + 1;
}

static void run_generation(uint64_t generation, uint64_t bytes) {
    uint32_t low = lows[generation % BENCH_COUNT(lows)];
    uint32_t count = groups_of(low, bytes) * program.group;
    survivors_t *survivors = &program.held[generation % HOLD];
    drop_survivors(survivors);
    for (uint32_t i = 0; i < count; i++) {
        program.blocks[i] = make_block(low);
    }
    for (uint32_t first = 0; first < count; first += program.group) {
        uint32_t stays = first + bench_below(&program.rng, program.group);
        for (uint32_t i = first; i < first + program.group; i++) {
            if (i != stays) {
                end_block(program.blocks[i]);
            }
        }
        survivors->blocks[survivors->count++] = program.blocks[stays];
    }
}

static unsigned char **pointers(uint32_t count) {
    size_t size = count * sizeof(unsigned char *);
    program.live += size;
    return bench_need(malloc(size), size);
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "GENERATIONS [LIVE KEEP]");
    uint64_t generations = bench_arg(1, 24, 1, UINT32_MAX, "GENERATIONS");
    uint64_t bytes = bench_arg(2, 16 << 20, 1 << 16, 1u << 30, "LIVE");
    program.group = 100 / (uint32_t)bench_arg(3, 3, 1, 50, "KEEP");
    program.rng = bench_rng(bytes);
    program.blocks = pointers(groups_of(lows[0], bytes) * program.group); /* the smallest low */
    for (unsigned i = 0; i < HOLD; i++) {
        program.held[i].blocks = pointers(groups_of(lows[0], bytes));
    }

    bench_start();
    for (uint64_t generation = 0; generation < generations; generation++) {
        run_generation(generation, bytes);
    }
    bench_stop(program.operations);
    bench_live_end(program.live);

    for (unsigned i = 0; i < HOLD; i++) {
        drop_survivors(&program.held[i]);
        free(program.held[i].blocks);
    }
    free(program.blocks);
    bench_live_peak(program.peak);
    return bench_finish(program.sum);
}
