/* SPDX-License-Identifier: MIT
 *
 * Summaries against a plain array, up to the number of superslabs that fill 4 TiB. */
#include "span/summary.h"
#include "unit/span.h"

enum { LINE = HAK_SUMMARY_LINE, MILLION = 1 << 20 };

static uint8_t truth[MILLION];
static uint32_t truth_count;

static void *memory_for(uint32_t capacity) {
    size_t bytes = hak_summary_bytes(capacity);
    void *memory = aligned_alloc(LINE, bytes);
    assert_non_null(memory);
    return memset(memory, 0, bytes);
}

static uint32_t truth_find(unsigned least) {
    for (uint32_t i = 0; i < truth_count; i++) {
        if (truth[i] >= least) {
            return i;
        }
    }
    return HAK_SUMMARY_NONE;
}

static uint32_t truth_find_last(unsigned least, uint32_t end) {
    while (end-- > 0) {
        if (truth[end] >= least) {
            return end;
        }
    }
    return HAK_SUMMARY_NONE;
}

static void expect_equal(hak_summary_t *summary, uint64_t random) {
    unsigned least = 1 + (unsigned)(random >> 8) % HAK_SUMMARY_MOST;
    uint32_t end = (uint32_t)(random >> 16) % (truth_count + 1);
    assert_int_equal(hak_summary_find(summary, least), truth_find(least));
    assert_int_equal(hak_summary_find_last(summary, least, end), truth_find_last(least, end));
    assert_int_equal(hak_summary_find_last(summary, least, truth_count),
                     truth_find_last(least, truth_count));
}

/* Sparse, dense, and all alike in turn. */
UNIT_TEST(summary_of_any_size_finds_what_a_scan_finds) {
    uint64_t seed = 3;
    for (uint32_t capacity = LINE; capacity <= 64 * LINE * LINE; capacity *= 8) {
        hak_summary_t summary = {0};
        void *memory = memory_for(capacity);
        truth_count = capacity;
        memset(truth, 0, capacity);
        hak_summary_move(&summary, 0, capacity, memory);
        for (unsigned step = 0; step < 3000; step++) {
            uint64_t random = hak_rng_next(&seed);
            uint32_t place = (uint32_t)(random >> 24) % capacity;
            unsigned most = step / 500 % 2 == 0 ? HAK_SUMMARY_MOST : 2;
            truth[place] = random % 3 == 0 ? (uint8_t)(random >> 8 & 0xff) % (most + 1) : 0;
            unit_summary_set(&summary, place, truth[place]);
            assert_int_equal(hak_summary_get(&summary, place), truth[place]);
            if (capacity <= 4096 || step % 32 == 0) {
                expect_equal(&summary, hak_rng_next(&seed));
            }
        }
        free(memory);
    }
}

UNIT_TEST(summary_that_moves_keeps_its_bytes) {
    uint64_t seed = 4;
    hak_summary_t summary = {0};
    void *old = NULL;
    memset(truth, 0, sizeof truth);
    for (uint32_t capacity = LINE, end = 0; capacity <= MILLION; capacity *= 2) {
        void *memory = memory_for(capacity);
        hak_summary_move(&summary, end, capacity, memory);
        free(old);
        old = memory;
        for (; end < capacity; end++) {
            truth[end] = (uint8_t)(hak_rng_next(&seed) >> 32) % (HAK_SUMMARY_MOST - 1);
            unit_summary_set(&summary, end, truth[end]);
        }
        truth_count = capacity;
        expect_equal(&summary, hak_rng_next(&seed));
        assert_int_equal(hak_summary_find(&summary, HAK_SUMMARY_MOST), HAK_SUMMARY_NONE);
    }
    free(old);
}

UNIT_TEST(summary_of_a_million_is_searched_in_four_lines) {
    hak_summary_t summary = {0};
    void *memory = memory_for(MILLION);
    hak_summary_move(&summary, 0, MILLION, memory);
    for (uint32_t place = 1; place < MILLION; place += place / 3 + 1) {
        unit_summary_set(&summary, place, 7);
        uint64_t before = hak_summary_lines_read;
        assert_int_equal(hak_summary_find(&summary, 7), place);
        assert_int_equal(hak_summary_find(&summary, 8), HAK_SUMMARY_NONE);
        assert_int_equal(hak_summary_lines_read - before, 4 + 1);
        assert_int_equal(hak_summary_find_last(&summary, 7, MILLION), place);
        assert_int_equal(hak_summary_find_last(&summary, 7, place), HAK_SUMMARY_NONE);
        assert_in_range(hak_summary_lines_read - before, 5, 5 + 2 * (2 * 4 - 1));
        unit_summary_set(&summary, place, 0);
        assert_int_equal(hak_summary_find(&summary, 1),
                         HAK_SUMMARY_NONE); /* mends the levels above */
    }
    /* every table of superslabs that 48-bit addresses have room for */
    assert_true(hak_summary_bytes(1u << 26) <= (1u << 26) + (1u << 26) / 63 + 64);
    free(memory);
}
