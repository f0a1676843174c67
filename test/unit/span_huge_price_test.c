/* SPDX-License-Identifier: MIT
 *
 * Huge pages pause while their first touches are slow. */
#include "unit/huge_page.h"

#include <sys/mman.h>

static int huge_price_begin(void **state) {
    hak_span_state.huge_price = 0;
    hak_huge_page_due = 0;
    int status = unit_huge_page_begin(state);
    hak_knobs.learn = HAK_LEARN_ON;
    return status;
}

#define HUGE_PRICE_TEST(name) UNIT_TEST_WITH(name, huge_price_begin, unit_huge_page_end)

static char *open_range(hak_span_t *span) {
    *span = (hak_span_t){0};
    assert_true(hak_span_alloc(HAK_PARTITION_ANY, 32, HAK_UNIT_BYTES, HAK_SPAN_DENSE, span));
    return span->base;
}

static unsigned is_huge(const hak_span_t *span) {
    return span->superslab->huge_pages >> span->unit / HAK_HUGE_PAGE_UNITS & 1;
}

/* Opens ranges, with clocks that only touches move; returns how many of them are huge. */
static unsigned open_ranges(unsigned count, uint64_t touch_ns) {
    hak_span_t spans[256];
    unsigned huge = 0;
    assert_true(count <= UNIT_COUNT(spans));
    hak_os_fault_stop_clock();
    hak_os_fault_slow_touches(touch_ns);
    for (unsigned i = 0; i < count; i++) {
        hak_span_touch(open_range(&spans[i]) + HAK_BLOCK_ALIGN); /* a block in the first unit */
        huge += is_huge(&spans[i]);
    }
    unit_span_free_all(spans, count, 32);
    unit_span_check();
    hak_span_purge(0);
    return huge;
}

enum { FAST_NS = 1990000, SLOW_NS = 2000001, RUN = 4, PAUSE = 64 };

HUGE_PRICE_TEST(slow_touches_end_huge_pages_for_a_while) {
    uint64_t pause = hak_counters.huge_page_skipped;
    assert_int_equal(open_ranges(RUN, SLOW_NS), RUN);
    for (unsigned i = 1; i <= 20; i++) {
        assert_int_equal(open_ranges(PAUSE, SLOW_NS), 0);
        assert_int_equal(hak_counters.huge_page_skipped, pause + i * PAUSE);
        assert_int_equal(open_ranges(1, SLOW_NS), 1); /* a probe */
    }
}

HUGE_PRICE_TEST(cheap_probe_brings_huge_pages_back) {
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(open_ranges(RUN, SLOW_NS), RUN);
        assert_int_equal(open_ranges(PAUSE, FAST_NS), 0);
        assert_int_equal(open_ranges(100, FAST_NS), 100);
    }
}

/* As where the CPU was taken from the thread. */
HUGE_PRICE_TEST(few_slow_touches_change_nothing) {
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(open_ranges(RUN - 1, SLOW_NS), RUN - 1);
        assert_int_equal(open_ranges(1, FAST_NS), 1);
    }
}

/* As of threads that were interrupted between both: only the first one is asked. */
HUGE_PRICE_TEST(ranges_opened_at_once_are_one_trial) {
    hak_span_t spans[8];
    hak_os_fault_stop_clock();
    hak_os_fault_slow_touches(SLOW_NS);
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        open_range(&spans[i]);
    }
    for (unsigned i = UNIT_COUNT(spans); i-- > 0;) {
        hak_span_touch(spans[i].base);
        hak_span_touch(spans[i].base);
    }
    assert_int_equal(hak_span_state.huge_price, 1);
    assert_int_equal(hak_huge_page_due, 0);
}

/* A slow touch takes long: ranges that open meanwhile do not take its place. */
HUGE_PRICE_TEST(slow_touch_is_not_overtaken) {
    hak_span_t slow, spans[100];
    hak_os_fault_stop_clock();
    hak_os_fault_slow_touches(SLOW_NS);
    for (unsigned run = 1; run <= RUN; run++) {
        open_range(&slow);
        uintptr_t due = hak_huge_page_due;
        for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
            hak_span_touch(open_range(&spans[i]));
            assert_int_equal(is_huge(&spans[i]), 1);
        }
        assert_int_equal(hak_huge_page_due, due);
        hak_span_touch(slow.base);
        assert_int_equal(hak_span_state.huge_price, run < RUN ? run : RUN + PAUSE);
        unit_span_free_all(spans, UNIT_COUNT(spans), 32);
        unit_span_free(&slow, 32);
        hak_span_purge(0);
    }
}

/* The price of a range within a span is not asked, and is no trial. */
HUGE_PRICE_TEST(ranges_that_no_taker_touches_first_are_no_trial) {
    hak_span_t small[21], wide;
    assert_int_equal(open_ranges(RUN, SLOW_NS), RUN);
    assert_int_equal(open_ranges(PAUSE, SLOW_NS), 0);
    uint64_t pause = hak_counters.huge_page_skipped;
    for (unsigned i = 0; i < UNIT_COUNT(small); i++) { /* part of a range, the rest too little */
        assert_true(
            hak_span_alloc(HAK_PARTITION_ANY, 1, HAK_UNIT_BYTES, HAK_SPAN_SPARSE, &small[i]));
    }
    assert_true(hak_span_alloc(HAK_PARTITION_ANY, 16, HAK_UNIT_BYTES, HAK_SPAN_DENSE, &wide));
    assert_int_equal(hak_huge_page_due, 0);
    assert_true(hak_counters.huge_page_skipped > pause);
    assert_int_equal(open_ranges(1, FAST_NS), 1); /* the trial */
    assert_int_equal(hak_span_state.huge_price, 0);
}

/* Its thread was stopped for ever, by a fork or a handler. */
HUGE_PRICE_TEST(touch_that_never_ends_begins_no_pause_and_ends_one) {
    hak_huge_page_due = HAK_UNIT_BYTES;
    assert_int_equal(open_ranges(256, SLOW_NS), 256);
    hak_span_state.huge_price = RUN + PAUSE;
    assert_int_equal(open_ranges(PAUSE, FAST_NS), 0);
    assert_int_equal(open_ranges(100, FAST_NS), 100);
}

HUGE_PRICE_TEST(without_learning_prices_change_nothing) {
    hak_knobs.learn = HAK_LEARN_OFF;
    uint64_t pause = hak_counters.huge_page_skipped;
    assert_int_equal(open_ranges(100, SLOW_NS), 100);
    hak_knobs.learn = HAK_LEARN_COUNTERFACTUAL;
    assert_int_equal(open_ranges(100, SLOW_NS), 100);
    assert_int_equal(hak_counters.huge_page_skipped, pause + 100 - (RUN + 1)); /* one is a probe */

    hak_knobs.learn = HAK_LEARN_OFF; /* forgets the pause */
    assert_int_equal(open_ranges(1, SLOW_NS), 1);
    hak_knobs.learn = HAK_LEARN_ON;
    assert_int_equal(open_ranges(RUN, SLOW_NS), RUN);
}
