/* SPDX-License-Identifier: MIT
 *
 * The mathematics of sampling, against values of the C library's. */
#include "unit/profile.h"

static bool chance_is_near(double found, double expected, double part) {
    double difference = found > expected ? found - expected : expected - found;
    return difference <= part * (expected > 0 ? expected : 1);
}

/* 1 - e^-x to 17 digits. */
UNIT_TEST(chance_is_one_less_the_exponential) {
    static const double expected[][2] = {{0, 0},
                                         {1e-12, 9.999999999995e-13},
                                         {1e-6, 9.999995000001667e-07},
                                         {0.001, 0.0009995001666250083},
                                         {0.0078125, 0.007782061739756485},
                                         {0.5, 0.3934693402873666},
                                         {1, 0.6321205588285577},
                                         {3, 0.950212931632136},
                                         {10, 0.9999546000702375},
                                         {40, 1},
                                         {1e300, 1}};
    for (unsigned i = 0; i < UNIT_COUNT(expected); i++) {
        double found = hak_chance_of(expected[i][0]);
        UNIT_EXPECT(chance_is_near(found, expected[i][1], 1e-12), "x %g: %.17g", expected[i][0],
                    found);
        assert_true(found <= 1);
    }
}

UNIT_TEST(whole_numbers_are_rounded_and_bounded) {
    assert_int_equal(hak_chance_whole(0), 0);
    assert_int_equal(hak_chance_whole(-3), 0);
    assert_int_equal(hak_chance_whole(1.49), 1);
    assert_int_equal(hak_chance_whole(1.5), 2);
    assert_true(hak_chance_whole(9007199254740993.0) >= 9007199254740992u);
    assert_true(hak_chance_whole(1e30) == UINT64_MAX);
}

/* The ends of the range of random numbers give the shortest and the longest distance. */
UNIT_TEST(gap_is_at_least_a_byte_and_bounded) {
    static const size_t rates[] = {1, 16, 4096, 512 << 10, (size_t)1 << 40};
    for (unsigned i = 0; i < UNIT_COUNT(rates); i++) {
        assert_int_equal(hak_chance_gap(rates[i], UINT64_MAX), 1);
        int64_t longest = hak_chance_gap(rates[i], 0); /* -ln 2^-53 = 36.7 */
        assert_true((double)longest > 36.7 * (double)rates[i]);
        assert_true((double)longest < 36.8 * (double)rates[i] + 2);
    }
}

/* The share of distances not above S is 1 - e^(-S / rate), for S from far below the mean to far
 * above it: within five standard deviations, of a sequence that is always the same. */
UNIT_TEST(gaps_are_exponentially_distributed) {
    enum { DRAWS = 200000, RATE = 4096 };
    static const int64_t sizes[] = {16, 64, 512, 2048, 4096, 8192, 40000};
    unsigned below[UNIT_COUNT(sizes)] = {0};
    double sum = 0;
    hak_chance_seed(1);
    for (unsigned i = 0; i < DRAWS; i++) {
        int64_t gap = hak_chance_gap(RATE, hak_chance_random());
        sum += (double)gap;
        for (unsigned k = 0; k < UNIT_COUNT(sizes); k++) {
            below[k] += gap <= sizes[k];
        }
    }
    for (unsigned k = 0; k < UNIT_COUNT(sizes); k++) {
        double p = hak_chance_of((double)sizes[k] / RATE);
        double sigma = root_of(p * (1 - p) / DRAWS), found = (double)below[k] / DRAWS;
        UNIT_EXPECT(found > p - 5 * sigma && found < p + 5 * sigma, "%u bytes: %g, not %g",
                    (unsigned)sizes[k], found, p);
    }
    assert_true(chance_is_near(sum / DRAWS, RATE + 0.5, 0.01));
}

UNIT_TEST(a_seed_repeats_its_sequence) {
    hak_chance_seed(7);
    uint64_t first = hak_chance_random(), second = hak_chance_random();
    assert_true(first != second);
    hak_chance_begin(); /* leaves a sequence that has begun alone */
    assert_true(hak_chance_random() != first);
    hak_chance_seed(7);
    assert_true(hak_chance_random() == first && hak_chance_random() == second);
}
