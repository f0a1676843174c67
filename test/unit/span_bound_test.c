/* SPDX-License-Identifier: MIT
 *
 * How many calls to the kernel a purge makes at a time when very much is unused, and how it goes
 * on. Every second unit of the superslabs is in use, so each call returns one unit. */
#include "unit/span.h"

enum { APART_MANY = 1600, EACH = HAK_SUPERSLAB_UNITS / 2, CALLS_MOST = 256 };

static const uint64_t WINDOW_NS = 400u * 1000 * 1000;
static const uint64_t STEP_NS = 100u * 1000 * 1000;

static hak_span_t bound_spans[2 * APART_MANY];

/* 100 MiB in use, nothing purged unasked, on a clock that obeys. */
static int bound_begin(void **state) {
    unit_span_begin(state);
    hak_os_fault_stop_clock();
    hak_os_fault_advance_clock(60 * WINDOW_NS); /* no earlier refusal counts */
    UNIT_TAKE_ALL(bound_spans, 2 * APART_MANY, unit_span_dirty(1));
    hak_span_purge(0); /* what was mapped ahead */
    return 0;
}

#define BOUND_TEST(name) UNIT_TEST_WITH(name, bound_begin, unit_span_end)

/* Of 100 MiB unused, all apart, the last is kept for the test to free. */
static void give_every_second(void) {
    for (unsigned i = 0; i < 2 * APART_MANY - 2; i += 2) {
        unit_span_free(&bound_spans[i], 1);
    }
}

static size_t unused(void) {
    return unit_span_check().unused_dirty_bytes;
}

static uint64_t calls(void) {
    return hak_os_fault_calls(HAK_OS_CALL_PURGE) + hak_os_fault_calls(HAK_OS_CALL_UNMAP);
}

/* Calls of a free, or of an event. */
static uint64_t calls_of(const hak_span_t *span) {
    uint64_t before = calls();
    if (span != NULL) {
        unit_span_free(span, 1);
    } else {
        hak_target_spans();
    }
    return calls() - before;
}

BOUND_TEST(free_far_above_the_bound_makes_few_calls) {
    give_every_second();
    unit_span_retain(8u * MIB, 0);
    uint64_t made = calls_of(&bound_spans[2 * APART_MANY - 2]);
    UNIT_EXPECT(made != 0 && made <= CALLS_MOST, "%llu calls", (unsigned long long)made);
    unsigned events = 0;
    for (; unused() > 16u * MIB; events++) {
        made = calls_of(NULL);
        UNIT_EXPECT(made != 0 && made <= CALLS_MOST, "%llu calls", (unsigned long long)made);
    }
    UNIT_EXPECT(events >= 4 && events <= 6, "%u events", events);
    hak_os_fault_advance_clock(2 * WINDOW_NS);
    calls_of(NULL);
    hak_os_fault_advance_clock(2 * WINDOW_NS);
    calls_of(NULL);
    assert_true(unused() <= 8u * MIB);
}

BOUND_TEST(decay_of_very_much_goes_on_at_the_next_events) {
    unit_span_retain(512u * MIB, 0);
    hak_knobs.retain_idle_bytes = MIB;
    give_every_second();
    unit_span_free(&bound_spans[2 * APART_MANY - 2], 1);
    calls_of(NULL); /* the end of a window in which they were in use */
    assert_true(unused() > 90u * MIB);
    hak_os_fault_advance_clock(WINDOW_NS);
    unsigned events = 0;
    for (uint64_t made = CALLS_MOST; made > CALLS_MOST / 2; events++) {
        made = calls_of(NULL);
        UNIT_EXPECT(made <= CALLS_MOST, "%llu calls", (unsigned long long)made);
        hak_os_fault_advance_clock(STEP_NS);
    }
    UNIT_EXPECT(unused() <= 6u * MIB, "%zu bytes stay", unused());
    UNIT_EXPECT(events >= 6 && events <= 9, "%u events", events);
}

/* Of 100 MiB unused 20 are needed in every window: they stay also while the rest goes. */
BOUND_TEST(decay_in_parts_leaves_what_the_window_needed) {
    enum { NEEDED = 20 * MIB / HAK_UNIT_BYTES };
    static hak_span_t breath[NEEDED];
    unit_span_retain(512u * MIB, 0);
    hak_knobs.retain_idle_bytes = MIB;
    give_every_second();
    unit_span_free(&bound_spans[2 * APART_MANY - 2], 1);
    calls_of(NULL);
    for (unsigned window = 0; window < 5; window++) {
        UNIT_TAKE_ALL(breath, NEEDED, unit_span_dirty(1));
        unit_span_free_all(breath, NEEDED, 1);
        for (unsigned event = 0; event < 4; event++) {
            hak_os_fault_advance_clock(STEP_NS);
            assert_true(calls_of(NULL) <= CALLS_MOST);
            assert_true(unused() >= 20u * MIB);
        }
    }
    assert_true(unused() <= 64u * MIB);
}

/* Units of locked memory that the kernel refuses do not count: they would keep the others. */
BOUND_TEST(refused_calls_leave_the_rest_its_turn) {
    give_every_second();
    unit_span_retain(8u * MIB, 0);
    size_t before = unused();
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 2 * CALLS_MOST);
    calls_of(&bound_spans[2 * APART_MANY - 2]);
    assert_true(unused() + (CALLS_MOST - EACH) * HAK_UNIT_BYTES <= before);
}

BOUND_TEST(purge_of_all_makes_as_many_calls_as_it_takes) {
    give_every_second();
    unit_span_free(&bound_spans[2 * APART_MANY - 2], 1);
    assert_int_equal(hak_span_purge(0), (size_t)APART_MANY * HAK_UNIT_BYTES);
    assert_int_equal(unused(), 0);
}
