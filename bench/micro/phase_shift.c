/* SPDX-License-Identifier: MIT
 * phase_shift ROUNDS [LIVE]
 *
 * Measures: a program that changes its mind. Five phases follow each other, each with its own mix
 * of sizes: strings, tree nodes, large buffers, records, messages. A phase builds a live set of
 * about LIVE bytes (8m), works on it (looks at random blocks, replaces every second one), and frees
 * it but for one block in 32, which stays until the same phase comes again. Memory that served one
 * mix must serve the next: the peak against the live bytes tells as much as the time, and so
 * does what is resident at the end, while only the kept blocks live.
 * No warm-up: growing is part of it. Each block is written once in 4 KiB and at its end.
 * Known from: programs that parse, transform and print; the phases in the literature on
 * fragmentation and on adaptive allocators.
 * Does not measure: threads.
 * One operation is one pair of malloc and free. */
#include "bench.h"

#include <string.h>

enum { OS_PAGE = 4096, KEEP_ONE_IN = 32, LOOKS = 4 };

typedef struct mix {
    uint32_t min, max; /* uniform between them; at least 8: a block holds its size and a stamp */
} mix_t;

static const mix_t mixes[] = {
    {8, 64},               /* strings */
    {64, 512},             /* tree nodes */
    {16 << 10, 256 << 10}, /* buffers */
    {512, 4096},           /* records */
    {1 << 10, 32 << 10},   /* messages */
};

enum { PHASES = BENCH_COUNT(mixes) };

typedef struct kept {
    unsigned char **blocks;
    uint32_t count;
} kept_t;

static struct {
    unsigned char **blocks; /* the live set; large enough for each phase */
    kept_t kept[PHASES];
    uint64_t live, peak, sum, operations;
    bench_rng_t rng;
} program;

static uint32_t size_of(const unsigned char *block) {
    uint32_t size;
    memcpy(&size, block, sizeof size);
    return size;
}

static unsigned char *make_block(const mix_t *mix) {
    uint32_t size = bench_between(&program.rng, mix->min, mix->max);
    unsigned char *block = bench_need(malloc(size), size);
    for (uint32_t at = 0; at < size; at += OS_PAGE) {
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
    uint32_t size = size_of(block);
    program.sum = program.sum * 3 + size + block[size - 1];
    program.live -= size;
    free(block);
}

static uint32_t phase_blocks(unsigned phase, uint64_t bytes) {
    uint64_t count = bytes / ((mixes[phase].min + mixes[phase].max) / 2);
    return (uint32_t)(count / KEEP_ONE_IN * KEEP_ONE_IN) + KEEP_ONE_IN;
}

static void drop_kept(kept_t *kept) {
    for (uint32_t i = 0; i < kept->count; i++) {
        end_block(kept->blocks[i]);
    }
    kept->count = 0;
}

static void run_phase(unsigned phase, uint64_t bytes) {
    const mix_t *mix = &mixes[phase];
    uint32_t count = phase_blocks(phase, bytes);
    drop_kept(&program.kept[phase]);
    for (uint32_t i = 0; i < count; i++) {
        program.blocks[i] = make_block(mix);
    }
    for (uint64_t look = 0; look < (uint64_t)LOOKS * count; look++) {
        unsigned char **block = &program.blocks[bench_below(&program.rng, count)];
        if (look % 2 == 0) {
            program.sum += size_of(*block);
        } else {
            end_block(*block);
            *block = make_block(mix);
        }
    }
    kept_t *kept = &program.kept[phase];
    for (uint32_t first = 0; first < count; first += KEEP_ONE_IN) {
        uint32_t stays = first + bench_below(&program.rng, KEEP_ONE_IN);
        for (uint32_t i = first; i < first + KEEP_ONE_IN; i++) {
            if (i != stays) {
                end_block(program.blocks[i]);
            }
        }
        kept->blocks[kept->count++] = program.blocks[stays];
    }
}

static unsigned char **pointers(uint32_t count) {
    size_t size = count * sizeof(unsigned char *);
    program.live += size;
    return bench_need(malloc(size), size);
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "ROUNDS [LIVE]");
    uint64_t rounds = bench_arg(1, 4, 1, UINT32_MAX, "ROUNDS");
    uint64_t bytes = bench_arg(2, 8 << 20, 1 << 16, 1u << 30, "LIVE");
    program.rng = bench_rng(bytes);
    program.blocks = pointers(phase_blocks(0, bytes)); /* the smallest blocks are the most */
    for (unsigned phase = 0; phase < PHASES; phase++) {
        program.kept[phase].blocks = pointers(phase_blocks(phase, bytes) / KEEP_ONE_IN);
    }

    bench_start();
    for (uint64_t round = 0; round < rounds; round++) {
        for (unsigned phase = 0; phase < PHASES; phase++) {
            run_phase(phase, bytes);
        }
    }
    bench_stop(program.operations);
    bench_live_end(program.live);

    for (unsigned phase = 0; phase < PHASES; phase++) {
        drop_kept(&program.kept[phase]);
        free(program.kept[phase].blocks);
    }
    free(program.blocks);
    bench_live_peak(program.peak);
    return bench_finish(program.sum);
}
