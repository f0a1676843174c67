/* SPDX-License-Identifier: MIT
 * survivors ROUNDS [BYTES QUIET]
 *
 * Measures: what few survivors cost. A round makes BYTES (64m) of small blocks, each round with
 * another mix of sizes, frees all but every 64th in the order they were made, and keeps those to
 * the end. Then the program has next to nothing to do for QUIET milliseconds (1500) after the last
 * round, a quarter of that after the others: time to give back what lies between the survivors. The
 * next round asks for other sizes in the holes. See what is resident at the end against the live
 * bytes, a small part of what there was a second ago; and the peak.
 * No warm-up: growing is part of it. Each block is written at both ends and once in 4 KiB.
 * Known from: the worst cases in the literature (Robson), and servers that load much, keep an index
 * of it, and then wait.
 * Does not measure: threads, locality of use.
 * One operation is one pair of malloc and free. */
#include "live.h"

enum { KEEP_EVERY = 64 };

typedef struct mix {
    uint32_t min, max; /* uniform between them */
} mix_t;

static const mix_t mixes[] = {
    {16, 1024},  /* of all kinds */
    {16, 256},   /* strings */
    {256, 4096}, /* records */
};

static struct {
    live_t live;
    live_block_t *survivors;
    bench_rng_t rng;
} program;

static live_block_t *fill(const mix_t *mix, int64_t bytes) {
    live_block_t *first = NULL, **last = &first;
    int64_t full = program.live.bytes + bytes;
    while (program.live.bytes < full) {
        *last = live_make(&program.live, bench_between(&program.rng, mix->min, mix->max));
        last = &(*last)->next;
    }
    return first;
}

static void free_but_survivors(live_block_t *block) {
    for (uint64_t number = 0; block != NULL; number++) {
        live_block_t *next = block->next;
        if (number % KEEP_EVERY == 0) {
            block->next = program.survivors;
            program.survivors = block;
        } else {
            live_end(&program.live, block);
        }
        block = next;
    }
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "ROUNDS [BYTES QUIET]");
    uint64_t rounds = bench_arg(1, 3, 1, UINT32_MAX, "ROUNDS");
    uint64_t bytes = bench_arg(2, 64 << 20, 1 << 16, 1u << 30, "BYTES");
    uint64_t quiet = bench_arg(3, 1500, 0, 1000000, "QUIET");
    program.rng = bench_rng(bytes);

    bench_start();
    for (uint64_t round = 0; round < rounds; round++) {
        free_but_survivors(fill(&mixes[round % BENCH_COUNT(mixes)], (int64_t)bytes));
        live_quiet(&program.live, &program.rng, round + 1 < rounds ? quiet / 4 : quiet);
    }
    bench_stop(program.live.operations);
    bench_live_end((uint64_t)program.live.bytes);

    live_end_list(&program.live, &program.survivors);
    bench_live_peak((uint64_t)program.live.peak);
    return bench_finish(program.live.sum);
}
