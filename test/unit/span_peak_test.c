/* SPDX-License-Identifier: MIT
 *
 * When a heap that grows is to give back first what it can spare. */
#include "base/atomics.h"
#include "unit/span.h"

enum {
    PEAK_SPANS = 64,
    MOST = 256,
    PEAK_SPAN_UNITS = 32,
    SPAN_BYTES = PEAK_SPAN_UNITS * HAK_UNIT_BYTES
};

static hak_span_t peak_spans[MOST]; /* the peak stays from test to test */
static unsigned taken;

static size_t asked(void) {
    bool is_asked = (hak_swap_relaxed(&hak_wanted, 0) & HAK_WANTED_PEAK) != 0;
    return is_asked ? hak_target_over_peak() : 0;
}

/* Returns what was asked for meanwhile. */
static size_t take(unsigned count) {
    size_t most = 0;
    for (; count > 0; count--) {
        assert_true(taken < MOST);
        peak_spans[taken++] = unit_span(PEAK_SPAN_UNITS, HAK_UNIT_BYTES);
        size_t bytes = asked();
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void give_all(void) {
    while (taken > 0) {
        unit_span_free(&peak_spans[--taken], PEAK_SPAN_UNITS);
    }
}

static size_t in_use(void) {
    hak_span_stats_t stats = unit_span_check();
    return stats.in_use_bytes;
}

static int peak_end(void **state) {
    give_all();
    hak_span_purged_bytes = 0;
    asked();
    return unit_span_end(state);
}

UNIT_TEST_WITH(growing_heap_asks_a_step_at_a_time, NULL, peak_end) {
    unsigned times = 0;
    for (unsigned i = 0; i < PEAK_SPANS; i++) {
        size_t wanted = take(1);
        times += wanted != 0;
        assert_true(wanted == 0 || (wanted > in_use() / 16 && wanted < in_use() + 2 * MIB));
    }
    assert_true(times >= 3);
    assert_true(times <= PEAK_SPANS - PEAK_SPANS / 4);
}

UNIT_TEST_WITH(load_below_its_peak_is_left_alone, NULL, peak_end) {
    take(PEAK_SPANS);
    for (unsigned i = 0; i < 5; i++) {
        give_all();
        assert_int_equal(take(PEAK_SPANS), 0);
    }
}

UNIT_TEST_WITH(each_request_is_a_step_above_the_one_before, NULL, peak_end) {
    take(PEAK_SPANS / 2);
    while (take(1) == 0) {
    }
    size_t before = in_use();
    while (take(1) == 0) {
    }
    assert_true(in_use() > before + before / 16);
}

UNIT_TEST_WITH(purged_pages_count_as_given_back, NULL, peak_end) {
    take(PEAK_SPANS / 2);
    while (take(1) == 0) {
    }
    hak_span_purged_bytes = in_use() / 2;
    for (unsigned i = 0; i < PEAK_SPANS / 4; i++) {
        assert_int_equal(take(1), 0);
    }
}
