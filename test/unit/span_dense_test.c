/* SPDX-License-Identifier: MIT
 *
 * Samples that tell whether new memory will be written to throughout. */
#include "double/os_fault.h"
#include "span/dense.h"
#include "unit/span.h"

#include <string.h>

enum { UNITS = 32, BET = 1, BET_MOST = 8, WAIT = 1 };

static hak_dense_t dense;
static hak_span_t span;

static int begin(void **state) {
    (void)state;
    hak_os_fault_clear();
    hak_span_purge(0); /* fresh memory: what is not written to is not resident */
    span = unit_span(UNITS, HAK_UNIT_BYTES);
    dense = (hak_dense_t){0};
    hak_knobs.learn = HAK_LEARN_ON;
    return 0;
}

static int end(void **state) {
    (void)state;
    hak_os_fault_clear();
    unit_span_free(&span, UNITS);
    return 0;
}

static void sample(void) {
    assert_true(hak_dense_is_due(&dense));
    hak_dense_sample(&dense, span.base, (size_t)UNITS * HAK_UNIT_BYTES);
    assert_false(hak_dense_is_due(&dense));
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
    for (; !hak_dense_is_due(&dense) && all < 2 * BET_MOST; all++) {
        count += hak_dense_take(&dense);
    }
    assert_true(count == 0 || count == all);
    return count;
}

static void nothing_is_dense_before_a_sample(void **state) {
    (void)state;
    assert_true(hak_dense_is_due(&dense));
    assert_false(hak_dense_take(&dense));
    assert_true(hak_dense_is_due(&dense));
}

static void bets_on_dense_memory_double_up_to_a_bound(void **state) {
    (void)state;
    write_part(16);
    for (unsigned bet = BET; bet <= BET_MOST; bet *= 2) {
        sample();
        assert_int_equal(open_all(), bet);
    }
    sample();
    assert_int_equal(open_all(), BET_MOST);
}

static void memory_written_in_part_is_not_dense_and_waits(void **state) {
    (void)state;
    write_part(hak_os_page_bytes() == 4096 ? 13 : 0); /* 81 % */
    sample();
    assert_int_equal(dense.left, WAIT);
    assert_int_equal(open_all(), 0);
    write_part(15); /* 94 % */
    sample();
    assert_int_equal(open_all(), BET);
}

static void change_of_the_load_ends_the_bet(void **state) {
    (void)state;
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

static void kernel_that_does_not_tell_leaves_small_pages(void **state) {
    (void)state;
    write_part(16);
    hak_os_fault_plan(HAK_OS_CALL_RESIDENT, 0, 1u << 30);
    sample();
    assert_int_equal(open_all(), 0);
}

static void nothing_is_sampled_without_the_learner(void **state) {
    (void)state;
    write_part(16);
    for (unsigned i = 0; i < 2; i++) {
        hak_knobs.learn = i == 0 ? HAK_LEARN_OFF : HAK_LEARN_COUNTERFACTUAL;
        hak_os_fault_plan(HAK_OS_CALL_RESIDENT, 1u << 30, 1);
        sample();
        assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_RESIDENT), 0);
        assert_int_equal(open_all(), 0);
    }
    assert_true(hak_dense_take(&hak_dense_sure));
}

static void sure_memory_needs_no_sample(void **state) {
    (void)state;
    assert_true(hak_dense_take(&hak_dense_sure));
    assert_true(hak_dense_take(&hak_dense_sure));
}

#define DENSE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

static const struct CMUnitTest tests[] = {
    DENSE_TEST(nothing_is_dense_before_a_sample),
    DENSE_TEST(bets_on_dense_memory_double_up_to_a_bound),
    DENSE_TEST(memory_written_in_part_is_not_dense_and_waits),
    DENSE_TEST(change_of_the_load_ends_the_bet),
    DENSE_TEST(kernel_that_does_not_tell_leaves_small_pages),
    DENSE_TEST(nothing_is_sampled_without_the_learner),
    DENSE_TEST(sure_memory_needs_no_sample),
};

int main(void) {
    hak_os_init();
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1;
}
