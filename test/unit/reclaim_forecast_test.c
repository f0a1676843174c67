/* SPDX-License-Identifier: MIT
 *
 * The learner's forecast and what is really paid: bounds that it knows, and what it does when it is
 * wrong. */
#include "unit/learner.h"

/* Much more is taken than foretold until the forecast is called wrong: steps till then. */
static unsigned steps_until_locked(program_t *program) {
    unsigned steps = 0;
    while (!program_view().is_locked && steps < 1000) {
        program->pool.taken += LOAD_BYTES;
        program_run(program, STEP_TICKS, 150, 100, LOAD_BYTES);
        steps++;
    }
    return steps;
}

/* A minute each time. */
LEARNER_TEST(wrong_forecast_brings_the_standard_back_for_a_while) {
    program_t program = {0};
    for (unsigned i = 0; i < 3; i++) {
        (void)steps_until_kept(&program);
        uint64_t resets = hak_counters.learner_resets, start_ns = 0;
        assert_in_range(steps_until_locked(&program), 2, 30); /* not by a single report */
        assert_int_equal(hak_counters.learner_resets, resets + 1);
        assert_int_equal(program.kept, SIZE_MAX);
        start_ns = hak_os_now_ns();
        while (program_view().is_locked) {
            assert_int_equal(program.kept, SIZE_MAX);
            assert_int_equal(program_keep_ms(), 400);
            program_run(&program, STEP_TICKS, 150, 100, LOAD_BYTES);
        }
        uint64_t locked_s = (hak_os_now_ns() - start_ns + HAK_EVENT_STEP_NS) / 1000000000;
        assert_int_equal(locked_s, 60);
    }
}

/* Else a load that changes its mind often would never be found wrong: what was paid beyond the
 * forecast outlives a change, to the standard too. */
LEARNER_TEST(what_was_paid_beyond_the_forecast_outlives_a_change) {
    program_t program = {0};
    unsigned changes = 0, rounds = 0;
    uint64_t resets = hak_counters.learner_resets;
    (void)steps_until_kept(&program);
    for (; hak_counters.learner_resets == resets && rounds < 100; rounds++) {
        uint64_t before = program_keep_ms();
        for (unsigned i = 0; i < 16; i++) { /* kept for long; then pauses of 3 s: kept shortly */
            bool is_long = rounds % 2 == 0;
            program.pool.taken += LOAD_BYTES / 24;
            program_run(&program, STEP_TICKS, is_long ? 150 : 400, is_long ? 100 : 300, LOAD_BYTES);
        }
        changes += program_keep_ms() != before;
    }
    assert_true(rounds < 10 && changes > 1); /* 11 if a change forgave the debt */
}

/* What it forecasts is what is really paid, of swings of `times` halves of the bound. */
static void check_forecast_with_bound(unsigned times, unsigned period, unsigned low_ticks) {
    size_t bound = LOAD_BYTES / 2;
    program_t program = {.bound = bound};
    program_begin(NULL);
    uint64_t resets = hak_counters.learner_resets;
    program_run(&program, LOAD_TICKS, period, low_ticks, bound / 2 * times);
    learner_view_t view = program_view();
    assert_int_equal(hak_counters.learner_resets, resets);
    hak_price_t foretold = view.price[view.strategy];
    assert_in_range(view.real.taken, foretold.taken / 10 * 7, foretold.taken / 10 * 13 + 64);
}

LEARNER_TEST(beyond_the_bound_no_keep_time_is_foretold_to_help) {
    check_forecast_with_bound(3, 150, 100); /* beyond the bound, for longer than a window */
    check_forecast_with_bound(4, 150, 100);
    check_forecast_with_bound(6, 150, 100); /* beyond twice the bound */
    check_forecast_with_bound(6, 20, 10);   /* and for a short time */
    check_forecast_with_bound(3, 20, 10);
}

/* Swings of what stays anyway cost nothing, whatever the keep time. */
LEARNER_TEST(what_stays_for_good_has_no_price) {
    program_t program = {.stay = LOAD_BYTES};
    program_run(&program, 2 * LOAD_TICKS, 500, 400, LOAD_BYTES);
    learner_view_t view = program_view();
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        assert_int_equal(view.price[i].taken + view.price[i].held, 0); /* all has faded */
    }
    assert_int_equal(view.strategy, HAK_STRATEGY_STANDARD);
}
