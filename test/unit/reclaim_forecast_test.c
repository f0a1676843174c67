/* SPDX-License-Identifier: MIT
 *
 * The learner's forecast and what is really paid: bounds that it knows, and what it does when it is
 * wrong. */
#include "unit/learner.h"

static const uint64_t STEP_NS = HAK_EVENT_STEP_NS;

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

/* Ten seconds, then twice as long each time, 64 times at most. */
static void wrong_forecast_brings_the_standard_back_for_a_while(void **state) {
    (void)state;
    program_t program = {0};
    for (unsigned i = 0; i < 9; i++) {
        (void)steps_until_kept(&program);
        uint64_t interlocks = hak_counters.learner_interlock, start_ns = 0;
        assert_in_range(steps_until_locked(&program), 2, 30); /* not by a single report */
        assert_int_equal(hak_counters.learner_interlock, interlocks + 1);
        assert_int_equal(program.kept, SIZE_MAX);
        start_ns = hak_os_now_ns();
        while (program_view().is_locked) {
            assert_int_equal(program.kept, SIZE_MAX);
            assert_int_equal(program_keep_ms(), 400);
            program_run(&program, STEP_TICKS, 150, 100, LOAD_BYTES);
        }
        uint64_t locked_s = (hak_os_now_ns() - start_ns + STEP_NS) / 1000000000;
        assert_int_equal(locked_s, 10u << (i < 6 ? i : 6));
    }
}

static uint64_t debt(const hak_learner_view_t *view) {
    hak_price_t foretold = view->price[view->strategy];
    return hak_excess(view->real.taken + view->real.held, foretold.taken + foretold.held);
}

/* Else a load that changes its mind often would never be found wrong. */
static void what_was_paid_beyond_the_forecast_outlives_a_change(void **state) {
    (void)state;
    program_t program = {0};
    (void)steps_until_kept(&program);
    hak_learner_view_t before = program_view(), view = before;
    for (unsigned i = 0; i < 1000 && view.strategy == before.strategy; i++) {
        before = view;
        program.pool.taken += LOAD_BYTES / 16;
        program_run(&program, STEP_TICKS, 400, 300, LOAD_BYTES);
        view = program_view();
    }
    assert_int_not_equal(view.strategy, before.strategy);
    assert_false(view.is_locked);
    assert_true(debt(&before) > LOAD_BYTES >> 10);
    assert_true(debt(&view) > debt(&before) / 10 * 9);
}

/* Swings of 256 MiB, of which 128 may stay: no keep time saves the rest. */
static void beyond_the_bound_no_keep_time_is_foretold_to_help(void **state) {
    (void)state;
    program_t program = {.bound = LOAD_BYTES / 2};
    uint64_t interlocks = hak_counters.learner_interlock;
    program_run(&program, LOAD_TICKS, 150, 100, LOAD_BYTES);
    hak_learner_view_t view = program_view();
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        assert_in_range(view.price[i].taken, view.price[HAK_STRATEGY_step].taken / 3,
                        view.price[HAK_STRATEGY_step].taken);
    }
    assert_true(hak_strategy_ms(view.strategy) > 1000); /* for the 128 MiB */
    assert_int_equal(hak_counters.learner_interlock, interlocks);
    hak_price_t foretold = view.price[view.strategy];
    assert_in_range(view.real.taken, foretold.taken / 10 * 9, foretold.taken / 10 * 11);
}

static const struct CMUnitTest tests[] = {
    LEARNER_TEST(wrong_forecast_brings_the_standard_back_for_a_while),
    LEARNER_TEST(what_was_paid_beyond_the_forecast_outlives_a_change),
    LEARNER_TEST(beyond_the_bound_no_keep_time_is_foretold_to_help),
};

UNIT_MAIN(tests)
