/* SPDX-License-Identifier: MIT
 * calloc_zero MODE ITERS SLOTS [MIN MAX]
 *
 * Measures: calloc, and what it costs to give zeroes. Each step picks a random slot; a full one is
 * freed, an empty one gets a block of a log-uniform size, which is checked to be zero and then
 * written to, so that it comes back dirty.
 *   mixed   16 B to 256 KiB; of blocks up to 1 KiB every byte is written, of larger ones one word
 *           in 256 B.
 *   sparse  1 to 16 MiB, of which about 32 words are used, as of a large table with few entries:
 *           who zeroes what is zero already, or touches what nobody asked for, pays here.
 * Known from: the calloc share of the allocators' own tests; sparse is the pattern of hash tables,
 * sieves and interpreters' arenas.
 * Does not measure: threads, malloc.
 * One operation is one step: half a pair. */
#include "bench.h"

#include <string.h>

enum { MIXED, SPARSE };
enum { SMALL = 1024, STEP = 256, SPARSE_WORDS = 32 };

typedef struct slot {
    unsigned char *block;
    size_t size;
} slot_t;

static uint64_t word_at(const unsigned char *block, size_t offset) {
    uint64_t word;
    memcpy(&word, block + offset, sizeof word);
    return word;
}

/* Of a sparse block only the pages in use count. */
static uint64_t live_bytes(size_t size, int mode) {
    enum { OS_PAGE = 4096 };
    size_t used = (size_t)SPARSE_WORDS * OS_PAGE;
    return mode == SPARSE && size > used ? used : size;
}

/* Between the words that are looked at and written. */
static size_t step_of(size_t size, int mode) {
    size_t step = mode == SPARSE ? size / SPARSE_WORDS / sizeof(uint64_t) * sizeof(uint64_t) : STEP;
    return size <= SMALL || step == 0 ? sizeof(uint64_t) : step;
}

/* Looks at all words of small blocks, at one in STEP of others, and at the last one. */
static void check_zero(const unsigned char *block, size_t size, size_t step) {
    uint64_t found = 0;
    for (size_t at = 0; at + sizeof(uint64_t) <= size; at += step) {
        found |= word_at(block, at);
    }
    if (size >= sizeof(uint64_t)) {
        found |= word_at(block, size - sizeof(uint64_t));
    } else {
        found |= block[0] | block[size - 1];
    }
    if (found != 0) {
        bench_fail("calloc gave %zu bytes that are not all zero", size);
    }
}

static void make_dirty(unsigned char *block, size_t size, size_t step, uint64_t stamp) {
    if (size <= SMALL) {
        memset(block, 0xa5, size);
    } else {
        for (size_t at = 0; at + sizeof stamp <= size; at += step) {
            memcpy(block + at, &stamp, sizeof stamp);
        }
    }
    block[size - 1] = (unsigned char)stamp;
    block[0] = (unsigned char)(stamp >> 8);
}

int main(int argc, char **argv) {
    static const char *const modes[] = {"mixed", "sparse", NULL};
    bench_init(argc, argv, "mixed|sparse ITERS SLOTS [MIN MAX]");
    int mode = bench_choice(1, modes, "MODE");
    uint64_t iterations = bench_arg(2, mode == MIXED ? 400000 : 1200, 1, UINT64_MAX / 2, "ITERS");
    uint32_t slots = (uint32_t)bench_arg(3, mode == MIXED ? 400 : 16, 1, 1u << 24, "SLOTS");
    uint32_t min = (uint32_t)bench_arg(4, mode == MIXED ? 16 : 1 << 20, 1, 1u << 30, "MIN");
    uint64_t max_default = mode == MIXED ? 1 << 18 : 1 << 24;
    uint32_t max =
        (uint32_t)bench_arg(5, max_default > min ? max_default : min, min, 1u << 30, "MAX");
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
            sum = sum * 3 + slot->block[0] + slot->block[slot->size - 1];
            live -= live_bytes(slot->size, mode);
            free(slot->block);
            slot->block = NULL;
        } else {
            size_t size = bench_log_between(&rng, min, max), step = step_of(size, mode);
            slot->block = bench_need(calloc(1, size), size);
            check_zero(slot->block, size, step);
            make_dirty(slot->block, size, step, i + 0x0101010101010101);
            slot->size = size;
            live += live_bytes(size, mode);
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
