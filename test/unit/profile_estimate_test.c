/* SPDX-License-Identifier: MIT
 *
 * Statistics: the sum of weights against what is really in use. */
#include "unit/front.h"
#include "unit/profile.h"

enum { RUNS = 200, BLOCKS = 6000, ESTIMATE_RATE = 4096 };

typedef struct load {
    double live_bytes; /* what the blocks take */
    void *block[BLOCKS];
} load_t;

/* Small and medium blocks, of which half stay. */
static size_t below(uint64_t *rng, size_t bound) {
    return (size_t)(hak_rng_next(rng) % bound);
}

static void load_begin(load_t *load, uint64_t *rng) {
    load->live_bytes = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = 16 + below(rng, below(rng, 20) == 0 ? 6000 : 600);
        load->block[i] = hak_malloc(size);
        assert_non_null(load->block[i]);
        if (i % 2 == 0) {
            hak_free(load->block[i]);
            load->block[i] = NULL;
        } else {
            load->live_bytes += (double)hak_sc_info[hak_sc_of(size - HAK_CANARY_BYTES)].bytes;
        }
    }
}

static void load_end(load_t *load) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        hak_free(load->block[i]);
    }
}

/* The sum of weights is right on average, and its error is as large as it says. */
static void estimates_are_unbiased_and_know_their_error(void **state) {
    (void)state;
    static load_t load;
    uint64_t rng = 4711;
    double sum = 0, expected = 0;
    unsigned within = 0, runs = unit_rounds(RUNS);
    begin(ESTIMATE_RATE);
    for (unsigned run = 0; run < runs; run++) {
        hak_profile_reset();
        hak_chance_seed(run + 1);
        hak_sample_set_rate(ESTIMATE_RATE);
        load_begin(&load, &rng);
        double found = hak_profile_store.live_bytes;
        double sigma = hak_chance_root(hak_profile_store.variance);
        double error = found - load.live_bytes;
        sum += found;
        expected += load.live_bytes;
        within += error < 2 * sigma && error > -2 * sigma;
        load_end(&load);
    }
    print_message("mean %.2f %% off, %u of %u within two standard errors\n",
                  100 * (sum / expected - 1), within, runs);
    /* A mean's error goes with the root of the number of runs: 1 % of 200, 2 % of a quarter. */
    double bound = 0.01 * hak_chance_root((double)RUNS / (double)runs);
    assert_true(sum > expected * (1 - bound) && sum < expected * (1 + bound));
    assert_true(within * 100 >= runs * 92 && within * 100 <= runs * 99);
    finish();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(estimates_are_unbiased_and_know_their_error),
};

UNIT_MAIN(tests)
