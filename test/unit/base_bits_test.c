/* SPDX-License-Identifier: MIT
 *
 * Every function of base/bits.h against the slow truth. */
#include "base/bits.h"
#include "os/cpu.h"
#include "unit/unit.h"

UNIT_TEST(is_pow2_of_every_small_number_is_right) {
    assert_false(hak_is_pow2(0));
    for (size_t x = 1; x < 1 << 17; x++) {
        size_t half = x;
        while (half % 2 == 0) {
            half /= 2;
        }
        UNIT_EXPECT(hak_is_pow2(x) == (half == 1), "%zu", x);
    }
    for (unsigned i = 0; i < 64; i++) {
        assert_true(hak_is_pow2(1ull << i));
        assert_true(i < 2 || !hak_is_pow2((1ull << i) - 1));
    }
}

UNIT_TEST(align_of_every_small_pair_equals_division) {
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t x = 0; x < 20000; x++) {
            assert_int_equal(hak_align_up(x, align), (x + align - 1) / align * align);
            assert_int_equal(hak_align_down(x, align), x / align * align);
        }
    }
    assert_true(hak_align_up(SIZE_MAX - 65535, 65536) == SIZE_MAX - 65535);
    assert_true(hak_align_down(SIZE_MAX, 65536) == SIZE_MAX - 65535);
    assert_true(hak_align_up((size_t)PTRDIFF_MAX, 4096) == (size_t)PTRDIFF_MAX + 1);
}

UNIT_TEST(log2_ctz_popcount_equal_counting) {
    uint64_t seed = 1;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t x = (hak_rng_next(&seed) >> i % 64) | 1ull << i % 64;
        unsigned top = 0, low = 64, ones = 0;
        for (unsigned bit = 0; bit < 64; bit++) {
            if ((x >> bit & 1) != 0) {
                top = bit;
                low = low == 64 ? bit : low;
                ones++;
            }
        }
        assert_int_equal(hak_log2(x), top);
        assert_int_equal(hak_ctz(x), low);
        assert_int_equal(hak_popcount(x), ones);
    }
    assert_int_equal(hak_popcount(0), 0);
}

UNIT_TEST(mul_at_the_border_tells_overflow) {
    size_t product;
    assert_true(hak_mul(0, SIZE_MAX, &product) && product == 0);
    assert_true(hak_mul(1, SIZE_MAX, &product) && product == SIZE_MAX);
    assert_false(hak_mul(2, SIZE_MAX / 2 + 1, &product));
    assert_false(hak_mul(SIZE_MAX, SIZE_MAX, &product));
    uint64_t seed = 2;
    for (unsigned i = 0; i < 20000; i++) {
        size_t a = hak_rng_next(&seed) >> i % 64;
        size_t b = hak_rng_next(&seed) >> (i * 7) % 64;
        unsigned __int128 truth = (unsigned __int128)a * b;
        assert_int_equal(hak_mul(a, b, &product), truth <= SIZE_MAX);
        assert_true(truth > SIZE_MAX || product == (size_t)truth);
    }
}

UNIT_TEST(mask_of_every_count_has_that_many_low_bits) {
    for (unsigned count = 0; count <= 64; count++) {
        uint64_t mask = hak_mask(count);
        assert_int_equal(hak_popcount(mask), count);
        assert_true(count == 64 || (mask >> count) == 0);
    }
}

/* Dense, sparse, and made of runs, by turns. */
static uint64_t some_bits(unsigned i, uint64_t *seed) {
    uint64_t a = hak_rng_next(seed);
    uint64_t b = hak_rng_next(seed);
    switch (i % 5) {
    case 0:
        return a;
    case 1:
        return a | b;
    case 2:
        return a & b;
    case 3:
        return hak_mask(a % 65) << b % 64;
    default:
        return i % 10 < 5 ? ~0ull << a % 64 : ~(1ull << a % 64);
    }
}

/* Behind the last bit of the run that begins at `at`. */
static unsigned run_end(uint64_t bits, unsigned at) {
    while (at < 64 && (bits >> at & 1) != 0) {
        at++;
    }
    return at;
}

UNIT_TEST(run_starts_of_any_bits_equal_a_scan) {
    uint64_t seed = 3;
    for (unsigned i = 0; i < 400; i++) {
        uint64_t bits = some_bits(i, &seed);
        for (unsigned count = 1; count <= 64; count++) {
            uint64_t truth = 0;
            for (unsigned at = 0; at + count <= 64; at++) {
                if ((bits >> at & hak_mask(count)) == hak_mask(count)) {
                    truth |= 1ull << at;
                }
            }
            UNIT_EXPECT(hak_run_starts(bits, count) == truth, "%llx, %u", (unsigned long long)bits,
                        count);
        }
    }
}

UNIT_TEST(run_around_any_bit_equals_a_scan) {
    uint64_t seed = 5;
    for (unsigned i = 0; i < 4000; i++) {
        uint64_t bits = some_bits(i, &seed);
        for (unsigned at = 0, start = 0; at < 64; at++) {
            start = (bits >> at & 1) != 0 ? start : at + 1;
            unsigned end = run_end(bits, at);
            assert_true(end == at || hak_run_around(bits, at) == end - start);
        }
    }
    assert_int_equal(hak_run_around(~0ull, 0), 64);
    assert_int_equal(hak_run_around(~0ull, 63), 64);
    assert_int_equal(hak_run_around(1ull << 63, 63), 1);
}

UNIT_TEST(longest_run_of_any_bits_equals_a_scan) {
    uint64_t seed = 4;
    for (unsigned i = 0; i < 4000; i++) {
        uint64_t bits = some_bits(i, &seed);
        for (unsigned stride = 1; stride <= 64; stride *= 2) {
            uint64_t places = 0;
            unsigned longest = 0;
            for (unsigned at = 0; at < 64; at += stride) {
                unsigned run = run_end(bits, at) - at;
                places |= 1ull << at;
                longest = run > longest ? run : longest;
            }
            assert_int_equal(hak_longest_run(bits, places), longest);
        }
    }
    assert_int_equal(hak_longest_run(0, ~0ull), 0);
    assert_int_equal(hak_longest_run(~0ull, ~0ull), 64);
    assert_int_equal(hak_longest_run(~0ull, 1ull << 63), 1);
    assert_int_equal(hak_longest_run(~0ull, 0), 0);
}

UNIT_TEST(set_bit_sets_that_bit_and_tells_its_value) {
    uint64_t seed = 5;
    for (unsigned i = 0; i < 640; i++) {
        uint64_t before = some_bits(i, &seed), word = before;
        assert_int_equal(hak_cpu_set_bit(&word, i), before >> i % 64 & 1);
        assert_int_equal(word, before | 1ull << i % 64);
        assert_true(hak_cpu_set_bit(&word, i));
    }
}
