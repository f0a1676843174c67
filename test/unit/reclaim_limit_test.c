/* SPDX-License-Identifier: MIT
 *
 * The bound that follows from what control groups leave: the double says what the files say and
 * when, and counts who reads them. */
#include "base/counters.h"
#include "base/knobs.h"
#include "double/os_fault.h"
#include "front/event.h"
#include "large/large.h"
#include "reclaim/reclaim.h"
#include "span/span.h"
#include "unit/unit.h"

enum { MEBIBYTE = 1 << 20, EACH_UNITS = 32, SPANS_MADE = 50, HALF = 50 * MEBIBYTE };

static const uint64_t SECOND = 1000000000;
static size_t limit, used; /* what the files say; limit 0: max */
static hak_span_t made[SPANS_MADE];

static size_t serve(const char *path, char *buffer, size_t capacity) {
    const char *file = strrchr(path, '/') + 1;
    size_t number = strcmp(file, "memory.current") == 0 ? used : limit;
    if (strcmp(file, "cgroup") == 0) {
        return (size_t)snprintf(buffer, capacity, "0::/\n");
    }
    if (strcmp(file, "memory.high") != 0 && strcmp(file, "memory.current") != 0) {
        return strcmp(file, "memory.max") == 0 ? (size_t)snprintf(buffer, capacity, "max\n") : 0;
    }
    return number == 0 ? (size_t)snprintf(buffer, capacity, "max\n")
                       : (size_t)snprintf(buffer, capacity, "%zu\n", number);
}

/* Two of them fill a superslab. */
static void spans_make(unsigned every) {
    for (unsigned i = 0; i < SPANS_MADE; i += every) {
        assert_true(hak_span_alloc(0, EACH_UNITS, HAK_UNIT_BYTES, HAK_SPAN_SPARSE, &made[i]));
    }
}

static void spans_free(unsigned every) {
    for (unsigned i = 0; i < SPANS_MADE; i += every) {
        hak_span_free(made[i].superslab, made[i].unit, EACH_UNITS, EACH_UNITS);
    }
}

static size_t unused_bytes(void) {
    hak_footprint_t has;
    hak_large_footprint(&has);
    return has.unused_bytes;
}

static uint64_t looks(void) {
    return hak_load_relaxed(&hak_counters.limit_reads);
}

/* Seconds pass, in ten steps each. */
static void seconds_pass(unsigned count) {
    for (unsigned step = 0; step < 10 * count; step++) {
        hak_os_fault_advance_clock(SECOND / 10);
        hak_limit_tick();
    }
}

/* The groups leave so much of 100 MiB and of what else is there. */
static void look_with(size_t is_used) {
    used = is_used;
    hak_os_fault_advance_clock(SECOND);
    hak_limit_tick();
}

UNIT_AROUND(limit_begin) {
    hak_os_fault_clear();
    hak_os_fault_stop_clock();
    hak_os_fault_files(serve);
    limit = 0;
    used = 0;
    hak_os_fault_groups_anew();
    hak_knobs.cgroup = true;
    hak_knobs.retain_min_bytes = (size_t)1 << 40;
    spans_make(1);
    hak_os_fault_advance_clock(100 * SECOND);
    hak_limit = (hak_limit_t){/* the process begins */
                              .due_bytes = SIZE_MAX,
                              .given = {hak_load_relaxed(&hak_counters.limit_purged_bytes),
                                        hak_load_relaxed(&hak_counters.limit_purged_huge_bytes)}};
    hak_limit.wanted[0] = hak_load_relaxed(&hak_counters.purge_regret_units) * HAK_UNIT_BYTES;
    hak_limit.wanted[1] = hak_load_relaxed(&hak_counters.huge_map_bytes);
    hak_knobs.limit_soft_bytes = SIZE_MAX;
    hak_knobs.is_tight = false;
    hak_knobs.limit_bytes = 0;
    return 0;
}

static int limit_end(void **state) {
    hak_os_fault_files(NULL);
    return unit_span_end(state);
}

#define PRESSURE_TEST(name) UNIT_TEST_WITH(name, limit_begin, limit_end)

PRESSURE_TEST(room_for_all_gives_nothing_back) {
    limit = 1000 * (size_t)MEBIBYTE;
    used = 150 * MEBIBYTE;
    spans_free(2);
    seconds_pass(5);
    assert_int_equal(unused_bytes(), HALF);
    assert_false(hak_knobs.is_tight);
    assert_int_equal(hak_knobs.limit_bytes, limit);
}

PRESSURE_TEST(little_room_takes_what_is_missing_and_no_more) {
    limit = 400 * (size_t)MEBIBYTE;
    spans_free(2);
    look_with(395 * MEBIBYTE); /* 5 left, 25 wanted */
    assert_in_range(unused_bytes(), HALF - (20 + 2) * MEBIBYTE, HALF - 20 * MEBIBYTE);
}

PRESSURE_TEST(no_room_takes_all_but_a_rest) {
    limit = 400 * (size_t)MEBIBYTE;
    spans_free(2);
    used = 450 * (size_t)MEBIBYTE;
    seconds_pass(10);
    assert_in_range(unused_bytes(), 0, MEBIBYTE);
}

PRESSURE_TEST(tight_begins_at_an_eighth_and_ends_at_a_quarter) {
    limit = 1024 * (size_t)MEBIBYTE;
    static const struct {
        unsigned room;
        bool is_tight;
    } steps[] = {{140, false}, {129, false}, {127, true},  {130, true},
                 {250, true},  {257, false}, {129, false}, {100, true}};
    for (size_t i = 0; i < UNIT_COUNT(steps); i++) {
        look_with(limit - (size_t)steps[i].room * MEBIBYTE);
        UNIT_EXPECT(hak_knobs.is_tight == steps[i].is_tight, "%zu", i);
    }
    limit = 0;
    seconds_pass(10); /* it might be that files cannot be read just now */
    assert_false(hak_knobs.is_tight);
}

PRESSURE_TEST(without_a_limit_files_are_read_once) {
    uint64_t before = looks();
    seconds_pass(1000);
    assert_int_equal(looks() - before, 1);
}

PRESSURE_TEST(files_are_read_seldom) {
    limit = 1024 * (size_t)MEBIBYTE;
    look_with(1);
    uint64_t before = looks();
    seconds_pass(10);
    assert_in_range(looks() - before, 9, 11);
    look_with(limit - 100 * MEBIBYTE);
    before = looks();
    seconds_pass(1);
    assert_in_range(looks() - before, 4, 6);
    spans_free(2);
    look_with(2 * limit);
    before = looks();
    for (unsigned i = 0; i < 1000; i++) { /* far above, at every event */
        hak_os_fault_advance_clock(SECOND / 1000);
        hak_limit_tick();
    }
    assert_in_range(looks() - before, 5, 21);
    before = looks();
    seconds_pass(1); /* nothing is left to give */
    assert_in_range(looks() - before, 4, 6);
}

PRESSURE_TEST(small_process_looks_once_and_with_the_option_off_never) {
    limit = 1;
    used = 1;
    hak_knobs.cgroup = false;
    uint64_t before = hak_os_fault_calls(HAK_OS_CALL_READ);
    seconds_pass(1);
    hak_knobs.cgroup = true;
    assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_READ), before);
    spans_free(1);
    hak_span_purge(0);
    seconds_pass(1);
    before = hak_os_fault_calls(HAK_OS_CALL_READ);
    assert_true(before > 0);
    seconds_pass(1);
    assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_READ), before);
    spans_make(1);
    seconds_pass(1);
    assert_true(hak_os_fault_calls(HAK_OS_CALL_READ) > before);
}

/* Reads of the files while 80 MiB are taken, as long as the clock stands still. */
static uint64_t looks_of_growth(size_t is_used) {
    look_with(is_used);
    uint64_t before = looks();
    for (unsigned i = 10; i < SPANS_MADE; i++) {
        hak_span_free(made[i].superslab, made[i].unit, EACH_UNITS, EACH_UNITS);
    }
    hak_span_purge(0);
    hak_limit_give_back(0);
    for (unsigned i = 10; i < SPANS_MADE; i++) {
        assert_true(hak_span_alloc(0, EACH_UNITS, HAK_UNIT_BYTES, HAK_SPAN_SPARSE, &made[i]));
        hak_wanted_serve();
    }
    return looks() - before;
}

PRESSURE_TEST(near_the_limit_files_are_read_as_memory_is_taken) {
    limit = 640 * (size_t)MEBIBYTE;
    assert_int_equal(looks_of_growth(100 * MEBIBYTE), 0); /* a quarter of 380 is more */
    assert_int_equal(looks_of_growth(200 * MEBIBYTE), 1);
    assert_in_range(looks_of_growth(500 * (size_t)MEBIBYTE), 6, 8); /* a 64th of the limit each */
}

PRESSURE_TEST(caches_of_threads_go_where_pools_have_too_little) {
    limit = 150 * MEBIBYTE;
    spans_free(2);
    look_with(100 * MEBIBYTE);
    uint8_t before = hak_load_relaxed(&hak_event_flush_round);
    look_with(145 * MEBIBYTE);
    assert_int_equal(hak_load_relaxed(&hak_event_flush_round), before);
    look_with(205 * MEBIBYTE);
    assert_int_equal(hak_load_relaxed(&hak_event_flush_round), (uint8_t)(before + 1));
    look_with(206 * MEBIBYTE); /* in vain, as long as there is no more memory */
    assert_int_equal(hak_load_relaxed(&hak_event_flush_round), (uint8_t)(before + 1));
}

/* Above what is left free, but below the limit: what is taken again at once stays by and by. */
PRESSURE_TEST(memory_wanted_at_once_is_given_back_less_and_less) {
    uint64_t first = 0, last = 0;
    limit = 1600 * (size_t)MEBIBYTE;
    for (unsigned breath = 0; breath < 100; breath++) {
        uint64_t before = hak_load_relaxed(&hak_counters.limit_purged_bytes);
        spans_free(2);
        look_with(1520 * (size_t)MEBIBYTE); /* 80 left, 100 wanted */
        last = hak_load_relaxed(&hak_counters.limit_purged_bytes) - before;
        first = breath == 0 ? last : first;
        spans_make(2);
    }
    UNIT_EXPECT(first >= 20 * MEBIBYTE && last <= 2 * MEBIBYTE, "%zu, %zu", (size_t)first,
                (size_t)last);
    spans_free(2); /* nobody wants it any more */
    for (unsigned i = 0; i < 10; i++) {
        look_with(1600 * (size_t)MEBIBYTE);
    }
    assert_in_range(unused_bytes(), 0, MEBIBYTE);
}

PRESSURE_TEST(reads_that_go_on_failing_are_no_limit) {
    limit = 100 * MEBIBYTE;
    look_with(limit);
    assert_true(hak_knobs.is_tight);
    hak_os_fault_plan(HAK_OS_CALL_READ, 0, UINT64_MAX);
    seconds_pass(1); /* it may be that memory is out */
    assert_true(hak_knobs.limit_soft_bytes != SIZE_MAX && hak_knobs.is_tight);
    seconds_pass(10);
    assert_true(hak_knobs.limit_soft_bytes == SIZE_MAX && !hak_knobs.is_tight);
}

/* They may have been those of a thread with descriptors of its own. */
PRESSURE_TEST(limit_that_can_be_read_again_counts_again) {
    limit = 100 * MEBIBYTE;
    look_with(limit);
    hak_os_fault_plan(HAK_OS_CALL_READ, 0, UINT64_MAX);
    seconds_pass(20);
    assert_int_equal(hak_knobs.limit_bytes, 0);
    hak_os_fault_plan(HAK_OS_CALL_READ, 0, 0);
    seconds_pass(2);
    assert_int_equal(hak_knobs.limit_bytes, limit);
    assert_true(hak_knobs.is_tight);
}

PRESSURE_TEST(kernel_that_takes_nothing_is_asked_seldom) {
    limit = 150 * MEBIBYTE;
    spans_free(2);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, UINT64_MAX);
    look_with(limit);
    uint64_t before = hak_os_fault_calls(HAK_OS_CALL_PURGE);
    for (unsigned i = 0; i < 1000; i++) {
        hak_os_fault_advance_clock(SECOND / 1000);
        hak_limit_tick();
        hak_limit_give_back(MEBIBYTE);
    }
    assert_in_range(hak_os_fault_calls(HAK_OS_CALL_PURGE) - before, 0, SPANS_MADE);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 0);
}

/* As when a thread reads the counters, and another thread's whole read passes before it goes on:
 * the difference is below 0. */
PRESSURE_TEST(counters_read_late_teach_nothing) {
    uint64_t before = 50;
    assert_int_equal(hak_regret_growth(&before, 30), 0);
    assert_int_equal(hak_regret_growth(&before, 51), 21);
}
