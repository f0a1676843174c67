/* SPDX-License-Identifier: MIT
 *
 * Statistics: the sum of weights against what is really in use. */
#include "unit/profile.h"

enum { RUNS = 200, BLOCKS = 6000 };

/* Blocks of random sizes; one in `large_one_in` is up to `large_bytes`. One in `stays_one_in`
 * stays. */
typedef struct load {
    const char *name;
    unsigned blocks, large_one_in, stays_one_in;
    size_t small_bytes, large_bytes, rate,
        then; /* then: the rate of the second half; 0: the same */
} load_t;

static void *kept[BLOCKS];

static size_t below(uint64_t *rng, size_t bound) {
    return (size_t)(hak_rng_next(rng) % bound);
}

/* What a block takes from the heap, as the profile counts it. */
static size_t taken_bytes(const void *block, size_t size) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    return hak_slab_is_entry(entry) ? hak_sc_info[hak_sc_of(size - HAK_CANARY_BYTES)].bytes
                                    : hak_large_usable(block, entry);
}

/* Returns the bytes that stay. */
static double load_begin(const load_t *load, uint64_t *rng) {
    double live_bytes = 0;
    for (unsigned i = 0; i < load->blocks; i++) {
        if (i == load->blocks / 2 && load->then != 0) {
            hak_sample_set_rate(load->then);
        }
        bool is_large = below(rng, load->large_one_in) == 0;
        size_t size = 16 + below(rng, is_large ? load->large_bytes : load->small_bytes);
        kept[i] = unit_malloc(size);
        assert_non_null(kept[i]);
        if (i % load->stays_one_in != 0) {
            hak_free(kept[i]);
            kept[i] = NULL;
        } else {
            live_bytes += (double)taken_bytes(kept[i], size);
        }
    }
    return live_bytes;
}

static void load_end(const load_t *load) {
    UNIT_FREE_ALL(kept, load->blocks);
}

static void check_load(const load_t *load) {
    uint64_t rng = 4711;
    double sum = 0, expected = 0;
    unsigned within = 0, runs = unit_rounds(RUNS);
    begin(load->rate);
    hak_os_fault_stop_clock(); /* the pace of samples goes by it */
    for (unsigned run = 0; run < runs; run++) {
        hak_profile_reset();
        hak_chance_seed(run + 1);
        hak_sample_set_rate(load->rate);
        self()->profile_rate = 0; /* draws anew */
        double live_bytes = load_begin(load, &rng);
        double found = hak_profile_store.live_bytes;
        double sigma = root_of(hak_profile_store.variance);
        double error = found - live_bytes;
        sum += found;
        expected += live_bytes;
        within += error < 2 * sigma && error > -2 * sigma;
        load_end(load);
    }
    /* A mean's error goes with the root of the number of runs: 1 % of 200, 2 % of a quarter. */
    double bound = 0.01 * root_of((double)RUNS / (double)runs);
    UNIT_EXPECT(sum > expected * (1 - bound) && sum < expected * (1 + bound), "%s: %g for %g",
                load->name, sum, expected);
    bool are_few = runs < RUNS; /* then all may lie within, in one case of ten */
    UNIT_EXPECT(within * 100 >= runs * 92 && (are_few || within * 100 <= runs * 99), "%s: %u of %u",
                load->name, within, runs);
    hak_os_fault_clear();
    finish();
}

/* The sum of weights is right on average, and its error is as large as it says. */
UNIT_TEST(estimates_are_unbiased_and_know_their_error) {
    /* as many that a run's error is about 5 %, and the mean's of all runs a third of 1 % */
    static const load_t loads[] = {
        {"small and medium, half stay", BLOCKS, 20, 2, 600, 6000, 4096, 0},
        {"of one class, all stay", BLOCKS, BLOCKS, 1, 1, 1, 256, 0},
        {"small, few stay", BLOCKS, BLOCKS, 8, 512, 512, 512, 0},
        {"around the rate", BLOCKS / 4, 2, 2, 2000, 20000, 4096, 0},
        {"large, around the rate", 600, 1, 1, 1, 400000, 128 << 10, 0},
        {"more samples than the pace allows", 2000, 1, 1, 1, 400000, 256 << 10, 0},
        {"a rate that doubles", BLOCKS, 20, 2, 600, 6000, 4096, 8192},
        {"a rate that halves", 600, 2, 1, 1, 400000, 128 << 10, 64 << 10}};
    for (unsigned i = 0; i < UNIT_COUNT(loads); i++) {
        check_load(&loads[i]);
    }
}
