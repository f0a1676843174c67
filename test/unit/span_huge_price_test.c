/* SPDX-License-Identifier: MIT
 *
 * Huge pages pause while their first touches are dear. */
#include "unit/huge_page.h"

#include <sys/mman.h>

static int huge_price_begin(void **state) {
    hak_span_state.huge_price = (hak_huge_price_t){0};
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

enum { CHEAP_NS = 1990000, DEAR_NS = 2000001 };

HUGE_PRICE_TEST(dear_touches_end_huge_pages_for_longer_each_time) {
    uint64_t dear = hak_counters.huge_page_dear, pause = hak_counters.huge_page_pause;
    assert_int_equal(open_ranges(4, DEAR_NS), 4);
    assert_int_equal(open_ranges(64, DEAR_NS), 0);
    assert_int_equal(open_ranges(1, DEAR_NS), 1); /* a trial */
    assert_int_equal(open_ranges(128, DEAR_NS), 0);
    assert_int_equal(hak_counters.huge_page_dear, dear + 5);
    assert_int_equal(hak_counters.huge_page_pause, pause + 192);
    unsigned trials = 0;
    for (unsigned i = 0; i < 40; i++) {
        trials += open_ranges(256, DEAR_NS);
    }
    assert_int_equal(trials, 12); /* at 0, 257, 770, then after each 1024 */
}

HUGE_PRICE_TEST(cheap_touches_bring_huge_pages_back) {
    assert_int_equal(open_ranges(4, DEAR_NS), 4);
    assert_int_equal(open_ranges(64, CHEAP_NS), 0);
    assert_int_equal(open_ranges(100, CHEAP_NS), 100);
    assert_int_equal(open_ranges(4, DEAR_NS), 4);
    assert_int_equal(open_ranges(65, DEAR_NS), 1); /* the pause is short again */
}

/* As where the CPU was taken from the thread. */
HUGE_PRICE_TEST(few_dear_touches_change_nothing) {
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(open_ranges(3, DEAR_NS), 3);
        assert_int_equal(open_ranges(1, CHEAP_NS), 1);
    }
}

/* As of threads that were interrupted between both: only the first one is asked. */
HUGE_PRICE_TEST(ranges_opened_at_once_are_one_trial) {
    hak_span_t spans[8];
    hak_os_fault_stop_clock();
    hak_os_fault_slow_touches(DEAR_NS);
    uint64_t dear = hak_counters.huge_page_dear;
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        open_range(&spans[i]);
    }
    for (unsigned i = UNIT_COUNT(spans); i-- > 0;) {
        hak_span_touch(spans[i].base);
        hak_span_touch(spans[i].base);
    }
    assert_int_equal(hak_counters.huge_page_dear, dear + 1);
    assert_int_equal(hak_huge_page_due, 0);
}

/* A dear touch takes long: ranges that open meanwhile do not take its place. */
HUGE_PRICE_TEST(dear_touch_is_not_overtaken) {
    hak_span_t slow, spans[100];
    hak_os_fault_stop_clock();
    hak_os_fault_slow_touches(DEAR_NS);
    for (unsigned run = 1; run <= 4; run++) {
        open_range(&slow);
        uintptr_t due = hak_huge_page_due;
        hak_huge_page_due |= HAK_HUGE_PAGE_IS_TOUCHED; /* by another thread */
        for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
            hak_span_touch(open_range(&spans[i]));
            assert_int_equal(is_huge(&spans[i]), 1);
        }
        assert_int_equal(hak_huge_page_due, due | HAK_HUGE_PAGE_IS_TOUCHED);
        hak_huge_page_due = due; /* the other thread ends its touch */
        hak_span_touch(slow.base);
        assert_int_equal(hak_span_state.huge_price.dear_run, run < 4 ? run : 3);
        unit_span_free_all(spans, UNIT_COUNT(spans), 32);
        unit_span_free(&slow, 32);
        hak_span_purge(0);
    }
    assert_int_equal(hak_span_state.huge_price.pause, 64);
}

/* The price of a range within a span is not asked, and is no trial. */
HUGE_PRICE_TEST(ranges_that_no_taker_touches_first_are_no_trial) {
    hak_span_t small[21], wide;
    assert_int_equal(open_ranges(4, DEAR_NS), 4);
    assert_int_equal(open_ranges(64, DEAR_NS), 0);
    uint64_t pause = hak_counters.huge_page_pause;
    for (unsigned i = 0; i < UNIT_COUNT(small); i++) { /* part of a range, the rest too little */
        assert_true(
            hak_span_alloc(HAK_PARTITION_ANY, 1, HAK_UNIT_BYTES, HAK_SPAN_SPARSE, &small[i]));
    }
    assert_true(hak_span_alloc(HAK_PARTITION_ANY, 16, HAK_UNIT_BYTES, HAK_SPAN_DENSE, &wide));
    assert_int_equal(hak_huge_page_due, 0);
    assert_true(hak_counters.huge_page_pause > pause);
    assert_int_equal(open_ranges(1, CHEAP_NS), 1); /* the trial */
    assert_int_equal(hak_span_state.huge_price.pause, 0);
}

HUGE_PRICE_TEST(touch_that_never_ends_is_given_up) {
    hak_huge_page_due = HAK_HUGE_PAGE_IS_TOUCHED; /* by a thread that fork or a handler stopped */
    assert_int_equal(open_ranges(256, DEAR_NS), 256);
    assert_int_equal(open_ranges(100, DEAR_NS), 4 + 1);
    hak_huge_page_due = HAK_HUGE_PAGE_IS_TOUCHED; /* 31 of 128 went before */
    assert_int_equal(open_ranges(97, DEAR_NS) + open_ranges(159, DEAR_NS), 0);
    assert_int_equal(open_ranges(1, DEAR_NS), 1);
}

HUGE_PRICE_TEST(without_learning_prices_change_nothing) {
    hak_knobs.learn = HAK_LEARN_OFF;
    uint64_t dear = hak_counters.huge_page_dear, pause = hak_counters.huge_page_pause;
    assert_int_equal(open_ranges(100, DEAR_NS), 100);
    assert_int_equal(hak_counters.huge_page_dear, dear);
    hak_knobs.learn = HAK_LEARN_COUNTERFACTUAL;
    assert_int_equal(open_ranges(100, DEAR_NS), 100);
    assert_int_equal(hak_counters.huge_page_dear, dear + 5);
    assert_int_equal(hak_counters.huge_page_pause, pause + 95);
    hak_knobs.learn = HAK_LEARN_OFF; /* forgets the pause */
    assert_int_equal(open_ranges(1, DEAR_NS), 1);
    hak_knobs.learn = HAK_LEARN_ON;
    assert_int_equal(open_ranges(4, DEAR_NS), 4);
}
