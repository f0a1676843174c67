/* SPDX-License-Identifier: MIT */
#include "reclaim/reclaim.h"

#include "base/atomics.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "double/os_fault.h"
#include "reclaim/learner.h"
#include "unit/unit.h"

UNIT_AROUND(calm) {
    for (unsigned i = 0; i < 300; i++) {
        hak_regret_learn(1000, 0);
    }
    assert_int_equal(hak_knobs.retain_learned_percent, 0);
    hak_knobs.learn = HAK_LEARN_ON;
    return 0;
}

#define REGRET_TEST(name) UNIT_TEST_WITH(name, calm, NULL)

REGRET_TEST(regret_raises_what_is_retained_to_its_bound) {
    size_t before = 0;
    unsigned windows = 0;
    while (hak_knobs.retain_learned_percent < 100 && windows < 1000) {
        hak_regret_learn(1000, 900);
        size_t now = hak_knobs.retain_learned_percent;
        assert_true(now >= before && now - before <= 10 && now <= 100);
        before = now;
        windows++;
    }
    assert_true(windows < 30); /* quickly */
    for (unsigned i = 0; i < 100; i++) {
        hak_regret_learn(1000, 1000);
        assert_int_equal(hak_knobs.retain_learned_percent, 100);
    }
}

REGRET_TEST(no_regret_lowers_it_slowly_to_zero) {
    hak_knobs.retain_learned_percent = 100;
    size_t before = 100;
    unsigned windows = 0;
    while (hak_knobs.retain_learned_percent > 0 && windows < 1000) {
        hak_regret_learn(windows % 2 == 0 ? 1000 : 0, 0); /* also when nothing is purged */
        size_t now = hak_knobs.retain_learned_percent;
        assert_true(now <= before && before - now <= 1);
        before = now;
        windows++;
    }
    assert_true(windows >= 100 && windows < 1000);
    hak_regret_learn(1000, 0);
    assert_int_equal(hak_knobs.retain_learned_percent, 0);
}

REGRET_TEST(middling_regret_changes_nothing) {
    hak_knobs.retain_learned_percent = 40;
    for (unsigned i = 0; i < 20; i++) {
        hak_regret_learn(1000, 150);
    }
    size_t settled = hak_knobs.retain_learned_percent;
    for (unsigned i = 0; i < 100; i++) {
        hak_regret_learn(1000, 150);
        assert_int_equal(hak_knobs.retain_learned_percent, settled);
    }
}

REGRET_TEST(one_bad_window_is_averaged_away) {
    hak_regret_learn(1000, 1000);
    assert_int_equal(hak_knobs.retain_learned_percent, 0);
}

/* More was wanted than this window purged: units of windows before. */
REGRET_TEST(regret_above_all_that_was_purged_counts_as_all) {
    for (unsigned i = 0; i < 100; i++) {
        hak_regret_learn(1, UINT32_MAX);
        assert_true(hak_knobs.retain_learned_percent <= 100);
    }
    assert_int_equal(hak_knobs.retain_learned_percent, 100);
    calm(state);
}

/* 200 ms each, in all of which everything purged was wanted again. */
static void regretful_steps(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        hak_count_by(purge_units, 1000);
        hak_count_by(purge_regret_units, 1000);
        hak_os_fault_advance_clock(200000000);
        hak_regret_tick();
    }
}

static void without_learning_for(size_t learn) {
    hak_os_fault_stop_clock();
    hak_knobs.learn = HAK_LEARN_ON;
    regretful_steps(30);
    assert_int_equal(hak_knobs.retain_learned_percent, 100);
    hak_knobs.learn = learn;
    unsigned steps = 0;
    for (; steps < 2000 && hak_knobs.retain_learned_percent != 0; steps++) {
        size_t before = hak_knobs.retain_learned_percent;
        regretful_steps(1);
        assert_in_range(before - hak_knobs.retain_learned_percent, 0, 1);
    }
    assert_in_range(steps, 100, 200); /* a percent a step, once the average is low */
    regretful_steps(100);
    assert_int_equal(hak_knobs.retain_learned_percent, 0);
    hak_knobs.learn = HAK_LEARN_ON;
    regretful_steps(1); /* what happened meanwhile is no matter of the next test */
    hak_os_fault_clear();
}

REGRET_TEST(tick_without_the_option_learns_nothing_and_forgets) {
    without_learning_for(HAK_LEARN_OFF);
}

REGRET_TEST(tick_that_only_keeps_score_learns_nothing_and_forgets) {
    without_learning_for(HAK_LEARN_COUNTERFACTUAL);
}

REGRET_TEST(tick_learns_once_a_window) {
    hak_os_fault_stop_clock();
    hak_regret_tick(); /* whatever happened before */
    hak_knobs.retain_learned_percent = 50;
    for (unsigned i = 0; i < 1000; i++) {
        hak_regret_tick();
    }
    assert_true(hak_knobs.retain_learned_percent >= 49);
    for (unsigned i = 0; i < 3; i++) {
        hak_os_fault_advance_clock(120000000);
        hak_regret_tick();
    }
    hak_os_fault_clear();
    assert_true(hak_knobs.retain_learned_percent <= 48);
    assert_true(hak_knobs.retain_learned_percent >= 45);
}

/* As when a thread reads the counters, and another thread's whole step passes before it goes on:
 * the difference is below 0. */
REGRET_TEST(counters_read_late_teach_nothing) {
    uint64_t before = 50;
    assert_int_equal(hak_regret_growth(&before, 30), 0);
    assert_int_equal(hak_regret_growth(&before, 51), 21);
    hak_os_fault_stop_clock();
    regretful_steps(1);
    size_t learned = hak_knobs.retain_learned_percent;
    hak_counters.purge_units -= 3000;
    hak_counters.purge_regret_units -= 3000;
    regretful_steps(1);
    assert_int_equal(hak_knobs.retain_learned_percent, learned);
    hak_counters.purge_units += 2000;
    hak_counters.purge_regret_units += 2000;
    hak_os_fault_clear();
}
