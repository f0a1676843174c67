/* SPDX-License-Identifier: MIT
 *
 * Samples that tell whether new memory will be written to throughout. */
#include "span/dense.h"
#include "unit/span.h"

enum { UNITS = 32, BET = 1, BET_MOST = 8, WAIT = 1 };

static hak_dense_t dense;
static hak_span_t span;

UNIT_AROUND(dense_begin) {
    hak_os_fault_clear();
    hak_span_purge(0); /* fresh memory: what is not written to is not resident */
    span = unit_span(UNITS, HAK_UNIT_BYTES);
    dense = (hak_dense_t){0};
    hak_knobs.learn = HAK_LEARN_ON;
    return 0;
}

UNIT_AROUND(dense_end) {
    hak_os_fault_clear();
    unit_span_free(&span, UNITS);
    return 0;
}

#define DENSE_TEST(name) UNIT_TEST_WITH(name, dense_begin, dense_end)

static bool is_due(void) {
    return dense.left == 0;
}

static void sample(void) {
    assert_true(is_due());
    hak_dense_sample(&dense, span.base, (size_t)UNITS * HAK_UNIT_BYTES);
    assert_false(is_due());
}

/* Writes to the first `part` of 16 of each unit. */
static void write_part(size_t part) {
    for (unsigned i = 0; i < UNITS; i++) {
        memset(span.base + (size_t)i * HAK_UNIT_BYTES, 1, HAK_UNIT_BYTES / 16 * part);
    }
}

/* Opens ranges until a sample is due; returns how many were dense. */
static unsigned open_all(void) {
    unsigned count = 0, all = 0;
    for (; !is_due() && all < 2 * BET_MOST; all++) {
        count += hak_dense_take(&dense);
    }
    assert_true(count == 0 || count == all);
    return count;
}

DENSE_TEST(nothing_is_dense_before_a_sample) {
    assert_true(is_due());
    assert_false(hak_dense_take(&dense));
    assert_true(is_due());
}

DENSE_TEST(bets_on_dense_memory_double_up_to_a_bound) {
    write_part(16);
    for (unsigned bet = BET; bet <= BET_MOST; bet *= 2) {
        sample();
        assert_int_equal(open_all(), bet);
    }
    sample();
    assert_int_equal(open_all(), BET_MOST);
}

DENSE_TEST(memory_written_in_part_is_not_dense_and_waits) {
    write_part(hak_os_page_bytes() == 4096 ? 8 : 0); /* half */
    sample();
    assert_int_equal(dense.left, WAIT);
    assert_int_equal(open_all(), 0);
    write_part(15); /* 94 % */
    sample();
    assert_int_equal(open_all(), BET);
}

DENSE_TEST(change_of_the_load_ends_the_bet) {
    write_part(16);
    for (unsigned i = 0; i < 3; i++) {
        sample();
        open_all();
    }
    unit_span_free(&span, UNITS);
    hak_span_purge(0);
    span = unit_span(UNITS, HAK_UNIT_BYTES);
    sample();
    assert_int_equal(open_all(), 0);
    write_part(16);
    sample();
    assert_int_equal(open_all(), BET); /* not what it was */
}

DENSE_TEST(kernel_that_does_not_tell_leaves_small_pages) {
    write_part(16);
    hak_os_fault_plan(HAK_OS_CALL_PEEK, 0, 1u << 30);
    sample();
    assert_int_equal(open_all(), 0);
}

DENSE_TEST(nothing_is_sampled_without_the_learner) {
    write_part(16);
    for (unsigned i = 0; i < 2; i++) {
        hak_knobs.learn = i == 0 ? HAK_LEARN_OFF : HAK_LEARN_COUNTERFACTUAL;
        hak_os_fault_plan(HAK_OS_CALL_PEEK, 1u << 30, 1);
        sample();
        assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_PEEK), 0);
        assert_int_equal(open_all(), 0);
    }
    assert_true(hak_dense_take(&hak_dense_sure));
}

DENSE_TEST(sure_memory_needs_no_sample) {
    assert_true(hak_dense_take(&hak_dense_sure));
    assert_true(hak_dense_take(&hak_dense_sure));
}

UNIT_GROUP(unit_span_begin)
