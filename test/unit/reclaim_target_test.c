/* SPDX-License-Identifier: MIT
 *
 * Unused memory below the bound is purged after a window without use, or when the learner says so,
 * by a clock that the test sets. */
#include "unit/learner.h"
#include "unit/target.h"

DECAY_TEST(idle_is_a_little_of_what_is_in_use_up_to_the_bound) {
    assert_int_equal(hak_target_idle_bytes(0), MIB);
    assert_int_equal(hak_target_idle_bytes(320u * MIB), 10u * MIB);
    hak_knobs.retain_idle_bytes = 200u * MIB;
    assert_int_equal(hak_target_idle_bytes(0), 64u * MIB);
    hak_knobs.retain_min_bytes = 0;
    assert_int_equal(hak_target_idle_bytes(0), 0);
}

DECAY_TEST(unneeded_for_a_window_goes) {
    give(0, SPANS);
    size_t before = unused();
    hak_target_spans();
    assert_int_equal(unused(), before);
    window_passes(); /* the end of one in which they were in use, if not for long */
    assert_int_equal(unused(), before);
    hak_os_fault_advance_clock(WINDOW_NS - 1);
    hak_target_spans();
    assert_int_equal(unused(), before);
    hak_os_fault_advance_clock(1);
    hak_target_spans();
    assert_true(unused() <= (size_t)KEPT_MIB * MIB);
    assert_true(unused() >= MIB);
    uint64_t calls = hak_counters.purge_calls;
    window_passes(); /* nothing is left to do */
    assert_int_equal(hak_counters.purge_calls, calls);
}

DECAY_TEST(needed_within_the_window_stays) {
    uint64_t calls = hak_counters.purge_calls;
    for (unsigned breath = 0; breath < 10; breath++) {
        give(0, SPANS);
        window_passes();
        take(0, SPANS);
        window_passes();
    }
    assert_int_equal(hak_counters.purge_calls, calls);
}

/* Of 30 MiB unused a load takes 3.75 now and then: the rest goes, no unit more. */
DECAY_TEST(needed_in_part_stays_in_part) {
    give(0, SPANS);
    for (unsigned breath = 0; breath < 4; breath++) {
        take(0, 1);
        give(0, 1);
        window_passes();
    }
    size_t needed = (size_t)SPAN_UNITS * HAK_UNIT_BYTES;
    assert_true(unused() >= needed + MIB);
    assert_true(unused() <= needed + (size_t)KEPT_MIB * MIB);
    uint64_t regret = hak_counters.purge_regret_units;
    take(0, 1);
    assert_int_equal(hak_counters.purge_regret_units, regret); /* the youngest went */
    give(0, 1);
}

/* Of 30 MiB unused a load takes 15: its next peak may need the rest. */
DECAY_TEST(what_a_load_goes_up_and_down_by_stays) {
    uint64_t calls = hak_counters.purge_calls;
    give(0, SPANS);
    for (unsigned breath = 0; breath < 6; breath++) {
        take(0, SPANS / 2);
        give(0, SPANS / 2);
        window_passes();
    }
    assert_int_equal(hak_counters.purge_calls, calls);
    window_passes(); /* it ended */
    assert_true(unused() <= (size_t)KEPT_MIB * MIB);
}

/* A purge is no breath: what it left decays at the end of the same window. */
DECAY_TEST(what_a_purge_left_decays) {
    give(0, SPANS);
    window_passes();
    hak_span_purge(8u * MIB);
    assert_true(unused() <= 8u * MIB);
    assert_true(unused() > 4u * MIB);
    window_passes();
    assert_true(unused() <= (size_t)KEPT_MIB * MIB);
}

/* 30 MiB unused, which the bound of 20 allows for a window. */
DECAY_TEST(up_to_twice_the_bound_stays_for_a_window) {
    unit_span_retain(20u * MIB, 0);
    give(0, SPANS);
    assert_int_equal(unused(), 30u * MIB);
    hak_target_spans();
    assert_int_equal(unused(), 30u * MIB);
    hak_os_fault_advance_clock(WINDOW_NS + 1);
    hak_target_spans();
    assert_true(unused() <= 15u * MIB);
}

/* Nothing happened for long: at the first tick after that. */
DECAY_TEST(unneeded_for_long_goes_at_once) {
    give(0, SPANS);
    window_passes();
    hak_os_fault_advance_clock(100 * WINDOW_NS);
    hak_target_spans();
    assert_true(unused() <= (size_t)KEPT_MIB * MIB);
}

LEARNED_TEST(taken_again_soon_enough_stays) {
    assert_true(breathe(10, 10, 4) > 0); /* longer than a window */
    assert_int_equal(breathe(10, 10, 4), 0);
    give(0, SPANS);
    steps_pass(100); /* it ended */
    assert_true(unused() <= (size_t)KEPT_MIB * MIB);
    take(0, SPANS);
    hak_knobs.learn = HAK_LEARN_OFF;
    assert_true(breathe(10, 10, 4) >= 9 * (SPANS - 1) * SPAN_UNITS);
}

/* A counterfactual changes nothing. */
LEARNED_TEST(taken_again_goes_where_the_learner_only_keeps_score) {
    hak_knobs.learn = HAK_LEARN_COUNTERFACTUAL;
    assert_true(breathe(20, 10, 4) >= 19 * (SPANS - 1) * SPAN_UNITS);
    assert_true(program_keep_ms() > 400);
}

LEARNED_TEST(what_is_learned_is_bounded_as_all_unused_memory_is) {
    (void)breathe(10, 10, 4);
    hak_knobs.retain_percent = 0;
    hak_knobs.retain_min_bytes = 8u * MIB;
    hak_knobs.retain_learned_percent = 0;
    give(0, SPANS);
    steps_pass(6); /* a window, and a step */
    assert_true(unused() <= 8u * MIB);
    hak_knobs.retain_min_bytes = 0;
    steps_pass(1);
    assert_true(unused() <= HAK_SUPERSLAB_BYTES);
}

/* Where holding costs much, unused memory goes before a window has passed. */
LEARNED_TEST(taken_again_late_goes_early) {
    hak_knobs.retain_percent = 1;
    (void)breathe(4, 10, 10);
    give(0, SPANS);
    steps_pass(3);
    assert_true(unused() <= (size_t)KEPT_MIB * MIB);
}

DECAY_TEST(refused_is_not_asked_for_again_soon) {
    give(0, SPANS);
    window_passes();
    size_t before = unused();
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 1u << 30);
    window_passes();
    assert_int_equal(unused(), before);
    uint64_t calls = hak_counters.purge_calls;
    window_passes();
    window_passes();
    assert_int_equal(hak_counters.purge_calls, calls);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 0);
    for (unsigned i = 0; i < 12; i++) {
        window_passes();
    }
    assert_true(unused() <= (size_t)KEPT_MIB * MIB);
}

/* Locked memory does not keep memory that is freed after the refusal. */
DECAY_TEST(refused_does_not_keep_what_is_freed_later) {
    hak_reclaim_order_t order = {.pools = 1 << HAK_POOL_UNITS, .wanted_bytes = 8 * MIB};
    give(0, 3);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 1u << 30);
    assert_int_equal(hak_reclaim_order(&order), 0);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 0);
    assert_int_equal(hak_reclaim_order(&order), 0); /* not again so soon */
    give(3, SPANS);
    assert_true(hak_reclaim_order(&order) >= 8 * MIB);
}

/* Windows in each of which so many units were purged, and wanted again. */
static size_t percent_after(unsigned windows, uint64_t purged, uint64_t again) {
    for (unsigned i = 0; i < windows; i++) {
        hak_count_by(purge_units, purged);
        hak_count_by(purge_regret_units, again);
        window_passes();
    }
    return hak_knobs.retain_learned_percent;
}

LEARNED_TEST(regret_raises_the_bound_to_its_double) {
    (void)percent_after(1, 0, 0); /* whatever happened before */
    hak_knobs.retain_learned_percent = 0;
    assert_int_equal(percent_after(1, 1000, 250), 0); /* little, or none, is no regret */
    assert_int_equal(percent_after(1, 3, 3), 0);      /* nor are a few: chance */
    assert_int_equal(percent_after(1, 1000, 251), 25);
    assert_int_equal(percent_after(1, 0, 5), 50); /* purged in a window before */
    assert_int_equal(percent_after(10, 1000, 1000), 100);
    assert_int_equal(percent_after(5, 1000, 100), 80); /* and falls slowly */
    assert_int_equal(percent_after(25, 0, 0), 0);
}

LEARNED_TEST(regret_fades_without_the_option) {
    hak_knobs.retain_learned_percent = 100;
    hak_knobs.learn = HAK_LEARN_OFF;
    assert_int_equal(percent_after(5, 1000, 1000), 80);
    hak_knobs.learn = HAK_LEARN_COUNTERFACTUAL;
    assert_int_equal(percent_after(25, 1000, 1000), 0);
}
