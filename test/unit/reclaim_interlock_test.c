/* SPDX-License-Identifier: MIT
 *
 * The learner where nothing goes as it foretold: a kernel that refuses each call, a clock that
 * jumps, forks in the middle of a window, while real units come and go. */
#include "unit/target.h"

enum { INTERLOCK_LONG_STEPS = 400, UNUSED_STEPS = 10, USED_STEPS = 4 };

static hak_learner_view_t interlock_view(void) {
    hak_learner_view_t found;
    hak_learner_look_at(HAK_LEARNER_UNITS, &found);
    return found;
}

static bool is_kept_longer(void) {
    return hak_strategy_ms(interlock_view().strategy) > 400;
}

/* Unused for 1 s of 1.4: kept for longer than that. */
static void interlock_learn(void) {
    for (unsigned i = 0; i < 200 && !is_kept_longer(); i++) {
        (void)breathe(1, UNUSED_STEPS, USED_STEPS);
    }
    assert_true(is_kept_longer());
}

/* Whatever the kernel refuses meanwhile: the spans can be used, and once it does as it is told
 * again the memory goes, and the learner decides. */
LEARNED_TEST(interlock_refused_calls_of_each_kind_do_no_harm) {
    for (hak_os_call_t call = 0; call < HAK_OS_CALL_COUNT; call++) {
        interlock_learn();
        hak_os_fault_plan(call, 0, 1u << 30);
        (void)breathe(4, UNUSED_STEPS, USED_STEPS);
        give(0, SPANS);
        steps_pass(INTERLOCK_LONG_STEPS);
        hak_os_fault_plan(call, 0, 0);
        steps_pass(INTERLOCK_LONG_STEPS);
        UNIT_EXPECT(unused() <= (size_t)KEPT_MIB * MIB, "call %u: %zu bytes", (unsigned)call,
                    unused());
        take(0, SPANS);
        hak_os_fault_advance_clock(40960ull * HAK_EVENT_STEP_NS); /* every interlock has ended */
        steps_pass(INTERLOCK_LONG_STEPS);
    }
}

/* What it gave up is held all the same: that costs more than foretold. */
LEARNED_TEST(kernel_that_takes_nothing_brings_the_standard_back) {
    uint64_t interlocks = hak_counters.learner_interlock;
    interlock_learn();
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 1u << 30);
    give(0, SPANS);
    unsigned steps = 0;
    for (; !interlock_view().is_locked && steps < INTERLOCK_LONG_STEPS; steps++) {
        steps_pass(1);
    }
    assert_in_range(steps, 10, INTERLOCK_LONG_STEPS - 1);
    assert_int_equal(hak_counters.learner_interlock, interlocks + 1);
    assert_int_equal(interlock_view().strategy, HAK_STRATEGY_standard);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 0);
    steps_pass(INTERLOCK_LONG_STEPS);
    assert_true(unused() <= (size_t)KEPT_MIB * MIB);
    take(0, SPANS);
}

/* Ten years on, or hours: what is unused goes, and nothing is kept for so long again. */
LEARNED_TEST(interlock_clock_that_jumps_on_returns_memory) {
    for (uint64_t hours = 1; hours <= 24 * 3650; hours *= 24) {
        interlock_learn();
        give(0, SPANS);
        hak_os_fault_advance_clock(hours * 3600 * 1000000000);
        steps_pass(INTERLOCK_LONG_STEPS);
        assert_true(unused() <= (size_t)KEPT_MIB * MIB);
        take(0, SPANS);
        steps_pass(INTERLOCK_LONG_STEPS);
    }
}

/* As life/fork.c does. What the parent learned says nothing of the child, and the other way round.
 */
LEARNED_TEST(child_of_a_fork_in_a_window_begins_anew) {
    interlock_learn();
    for (unsigned at = 0; at < UNUSED_STEPS; at++) {
        give(0, SPANS);
        steps_pass(at);
        hak_os_fault_advance_clock(HAK_EVENT_STEP_NS / 2);
        pid_t child = fork();
        if (child == 0) {
            hak_target_after_fork();
            bool is_new = interlock_view().strategy == HAK_STRATEGY_standard &&
                          interlock_view().age_ms == 0 &&
                          interlock_view().price[HAK_STRATEGY_minute].held == 0;
            take(0, SPANS);
            interlock_learn();
            _exit(is_new ? 0 : 1);
        }
        assert_int_equal(unit_wait(child), 0);
        assert_true(is_kept_longer());
        steps_pass(UNUSED_STEPS - at);
        take(0, SPANS);
        steps_pass(USED_STEPS);
    }
}
