/* SPDX-License-Identifier: MIT
 *
 * The learner where nothing goes as it foretold: a kernel that refuses each call, a clock that
 * jumps, forks in the middle of a window, while real units come and go. */
#include "unit/learner.h"
#include "unit/target.h"

enum { LONG_STEPS = 400, UNUSED_STEPS = 10, USED_STEPS = 4 };

static bool is_kept_longer(void) {
    return program_keep_ms() > 400;
}

/* Unused for 1 s of 1.4: kept for longer than that. */
static void learn_to_keep(void) {
    for (unsigned i = 0; i < 200 && !is_kept_longer(); i++) {
        (void)breathe(1, UNUSED_STEPS, USED_STEPS);
    }
    assert_true(is_kept_longer());
}

/* Whatever the kernel refuses meanwhile: the spans can be used, and once it does as it is told
 * again the memory goes, and the learner decides. */
LEARNED_TEST(interlock_refused_calls_of_each_kind_do_no_harm) {
    for (hak_os_call_t call = 0; call < HAK_OS_CALL_COUNT; call++) {
        learn_to_keep();
        hak_os_fault_plan(call, 0, 1u << 30);
        (void)breathe(4, UNUSED_STEPS, USED_STEPS);
        give(0, SPANS);
        steps_pass(LONG_STEPS);
        hak_os_fault_plan(call, 0, 0);
        steps_pass(LONG_STEPS);
        UNIT_EXPECT(unused() <= (size_t)KEPT_MIB * MIB, "call %u: %zu bytes", (unsigned)call,
                    unused());
        take(0, SPANS);
        hak_os_fault_advance_clock(40960ull * HAK_EVENT_STEP_NS); /* every interlock has ended */
        steps_pass(LONG_STEPS);
    }
}

/* What it gave up is held all the same: that costs more than foretold. */
LEARNED_TEST(kernel_that_takes_nothing_brings_the_standard_back) {
    uint64_t resets = hak_counters.learner_resets;
    learn_to_keep();
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 1u << 30);
    give(0, SPANS);
    unsigned steps = 0;
    for (; !program_view().is_locked && steps < LONG_STEPS; steps++) {
        steps_pass(1);
    }
    assert_in_range(steps, 10, LONG_STEPS - 1);
    assert_int_equal(hak_counters.learner_resets, resets + 1);
    assert_int_equal(program_view().strategy, HAK_STRATEGY_STANDARD);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 0);
    steps_pass(LONG_STEPS);
    assert_true(unused() <= (size_t)KEPT_MIB * MIB);
    take(0, SPANS);
}

/* Ten years on, or hours: what is unused goes, and nothing is kept for so long again. */
LEARNED_TEST(interlock_clock_that_jumps_on_returns_memory) {
    for (uint64_t hours = 1; hours <= 24 * 3650; hours *= 24) {
        learn_to_keep();
        give(0, SPANS);
        hak_os_fault_advance_clock(hours * 3600 * 1000000000);
        steps_pass(LONG_STEPS);
        assert_true(unused() <= (size_t)KEPT_MIB * MIB);
        take(0, SPANS);
        steps_pass(LONG_STEPS);
    }
}

/* As life/fork.c does. What the parent learned says nothing of the child, and the other way round.
 */
LEARNED_TEST(child_of_a_fork_in_a_window_begins_anew) {
    learn_to_keep();
    for (unsigned at = 0; at < UNUSED_STEPS; at++) {
        give(0, SPANS);
        steps_pass(at);
        hak_os_fault_advance_clock(HAK_EVENT_STEP_NS / 2);
        pid_t child = fork();
        if (child == 0) {
            hak_target_after_fork();
            bool is_new = program_view().strategy == HAK_STRATEGY_STANDARD &&
                          program_view().age_ms == 0 &&
                          program_view().price[HAK_STRATEGIES - 1].held == 0;
            take(0, SPANS);
            learn_to_keep();
            _exit(is_new ? 0 : 1);
        }
        assert_int_equal(unit_wait(child), 0);
        assert_true(is_kept_longer());
        steps_pass(UNUSED_STEPS - at);
        take(0, SPANS);
        steps_pass(USED_STEPS);
    }
}
