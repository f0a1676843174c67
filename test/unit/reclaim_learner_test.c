/* SPDX-License-Identifier: MIT
 *
 * When the learner decides, when it stands back, and that odd reports do no harm: LEARN-1. What it
 * chooses: reclaim_oracle_test.c. */
#include "unit/learner.h"

/* One report, a step after the last. */
static size_t report(hak_learner_reading_t reading) {
    hak_os_fault_advance_clock(HAK_EVENT_STEP_NS);
    reading.now_ns = hak_os_now_ns();
    return hak_learner_maintain(HAK_LEARNER_UNITS, &reading);
}

LEARNER_TEST(nothing_is_decided_before_a_second) {
    program_t program = {0};
    for (unsigned i = 0; i < 10; i++) {
        program_run(&program, STEP_TICKS, 2 * STEP_TICKS, STEP_TICKS, 900u * MIB);
        assert_int_equal(program.kept, SIZE_MAX);
        assert_int_equal(program_keep_ms(), 400);
    }
}

/* Sums fade to a half in 44 steps. After three such times an eighth is left of the last phase, and
 * that is what has to be clearly cheaper; the load's own period, of up to 4 s, comes on top. */
LEARNER_TEST(change_of_phase_is_followed) {
    enum { FOLLOW_STEPS = 3 * 44 + 40 };
    program_t program = {0};
    for (unsigned i = 0; i < 4; i++) {
        unsigned longer = steps_until_kept(&program);
        program_run(&program, LOAD_TICKS, 150, 100, LOAD_BYTES);
        assert_true(program_keep_ms() > 1000); /* it stays so */
        /* unused for 3 s of 4: not worth its price */
        unsigned shorter = steps_until(&program, 400, 300, 0, 200);
        program_run(&program, LOAD_TICKS, 400, 300, LOAD_BYTES);
        assert_true(program_keep_ms() <= 200);
        assert_true(longer <= FOLLOW_STEPS && shorter <= FOLLOW_STEPS);
    }
}

LEARNER_TEST(what_is_foretold_is_kept_and_no_more) {
    program_t program = {0};
    assert_in_range(steps_until_kept(&program), 10, 200);
    program_run(&program, LOAD_TICKS, 150, 100, LOAD_BYTES);
    uint64_t taken = program.pool.taken;
    for (unsigned i = 0; i < 3000; i++) {
        program_run(&program, 1, 150, 100, LOAD_BYTES);
        assert_in_range(program.pool.held, LOAD_BYTES, LOAD_BYTES);
    }
    assert_int_equal(program.pool.taken, taken);
    program_run(&program, 6000, 1, 1, 0); /* it ended */
    assert_int_equal(program.pool.held, 0);
}

LEARNER_TEST(steady_load_changes_nothing) {
    uint64_t changes = hak_counters.learner_change;
    program_t program = {.pool.held = LOAD_BYTES};
    program_run(&program, LOAD_TICKS, 1, 0, LOAD_BYTES);
    for (unsigned i = 0; i < LOAD_TICKS; i++) { /* up and down by 64 KiB in 3 s, then in 0.2 */
        program_tick(&program, LOAD_BYTES + (i % 300 < 150 ? 0 : 64u << 10));
    }
    for (unsigned i = 0; i < LOAD_TICKS; i++) {
        program_tick(&program, LOAD_BYTES + (i % 20 < 10 ? 0 : 64u << 10));
        assert_int_equal(program.kept, SIZE_MAX);
    }
    assert_int_equal(hak_counters.learner_change, changes);
}

/* Of 2.3 s unused neither keeping nor giving back is clearly cheaper: it does not go to and fro. */
LEARNER_TEST(about_the_same_price_changes_little) {
    program_t program = {0};
    program_run(&program, LOAD_TICKS, 280, 230, LOAD_BYTES);
    uint64_t changes = hak_counters.learner_change;
    program_run(&program, LOAD_TICKS, 280, 230, LOAD_BYTES);
    assert_true(hak_counters.learner_change - changes <= 3);
}

LEARNER_TEST(counterfactual_keeps_score_only) {
    hak_knobs.learn = HAK_LEARN_COUNTERFACTUAL;
    program_t program = {0};
    for (unsigned i = 0; i < LOAD_TICKS; i++) {
        program_run(&program, 1, 150, 100, LOAD_BYTES);
        assert_int_equal(program.kept, SIZE_MAX);
    }
    learner_view_t view = program_view();
    assert_true(view.mode == HAK_LEARN_COUNTERFACTUAL && !view.acts);
    assert_true(HAK_STRATEGY_MS[view.strategy] > 1000);
    assert_true(HAK_STRATEGY_MS[view.cheapest] > 1000);
    assert_true(view.price[HAK_STRATEGY_STANDARD].taken > view.price[view.strategy].taken);
    hak_knobs.learn = HAK_LEARN_ON; /* what was learned decides at once */
    program_run(&program, STEP_TICKS, 150, 100, LOAD_BYTES);
    assert_int_not_equal(program.kept, SIZE_MAX);
    program_run(&program, LOAD_TICKS, 150, 100, LOAD_BYTES);
    assert_int_equal(program.pool.held, LOAD_BYTES);
    assert_false(program_view().is_locked);
    hak_knobs.learn = HAK_LEARN_COUNTERFACTUAL;
    program_run(&program, STEP_TICKS, 150, 100, LOAD_BYTES);
    assert_int_equal(program.kept, SIZE_MAX);
}

LEARNER_TEST(without_the_option_all_is_forgotten) {
    program_t program = {0};
    (void)steps_until_kept(&program);
    for (unsigned i = 0; i < 3; i++) {
        hak_knobs.learn = HAK_LEARN_OFF;
        program_run(&program, STEP_TICKS, 150, 100, LOAD_BYTES);
        assert_int_equal(program.kept, SIZE_MAX);
        learner_view_t view = program_view();
        assert_true(view.mode == HAK_LEARN_OFF && !view.acts);
        assert_int_equal(view.strategy, HAK_STRATEGY_STANDARD);
        assert_int_equal(view.cheapest, HAK_STRATEGY_STANDARD);
        assert_false(view.is_locked);
        hak_knobs.learn = HAK_LEARN_ON;
        program_run(&program, STEP_TICKS, 150, 100, LOAD_BYTES);
        assert_int_equal(program.kept, SIZE_MAX);
        assert_in_range(steps_until_kept(&program), 9, 200);
    }
}

LEARNER_TEST(near_a_limit_it_keeps_score_only) {
    program_t program = {0};
    (void)steps_until_kept(&program);
    assert_true(program_view().acts);
    hak_knobs.is_tight = true;
    assert_true(program_view().mode == HAK_LEARN_ON && !program_view().acts);
    program_run(&program, STEP_TICKS, 150, 100, LOAD_BYTES);
    assert_int_equal(program.kept, SIZE_MAX);
    hak_knobs.is_tight = false;
    program_run(&program, STEP_TICKS, 150, 100, LOAD_BYTES);
    assert_int_not_equal(program.kept, SIZE_MAX);
}

LEARNER_TEST(odd_sizes_do_no_harm) {
    static const size_t sizes[] = {0, SIZE_MAX / 2, 1, (size_t)1 << 47, SIZE_MAX, 0, SIZE_MAX / 2};
    static const size_t percents[] = {0, 1, 100, 1000};
    uint64_t random = 1;
    for (unsigned i = 0; i < 20000; i++) {
        hak_knobs.retain_percent = percents[i / 100 % UNIT_COUNT(percents)];
        uint64_t dice = hak_rng_next(&random);
        size_t in_use = sizes[dice % UNIT_COUNT(sizes)];
        size_t bound = sizes[(dice >> 32) % UNIT_COUNT(sizes)];
        size_t kept = report((hak_learner_reading_t){
            .in_use_bytes = in_use,
            .most_bytes = sizes[(dice >> 8) % UNIT_COUNT(sizes)],
            .idle_bytes = sizes[(dice >> 16) % UNIT_COUNT(sizes)],
            .stay_bytes = sizes[(dice >> 24) % UNIT_COUNT(sizes)],
            .bound_bytes = bound,
            .hard_bytes = bound,
            .cut_bytes = bound,
            .taken_bytes = dice >> 40,
        });
        assert_true(kept >= HAK_LEARNER_ALL || kept <= bound);
    }
    hak_knobs.retain_percent = 100;
    hak_learner_reset();
    program_t program = {0};
    assert_in_range(steps_until_kept(&program), 10, 200); /* it works as before */
}

/* The largest sizes that a program can have: no sum wraps, so a price grows with the load. */
LEARNER_TEST(sums_of_large_sizes_do_not_wrap) {
    uint64_t last = 0;
    for (size_t bytes = (size_t)1 << 30; bytes <= (size_t)1 << 47; bytes *= 2) {
        program_begin(NULL);
        for (unsigned i = 0; i < 1000; i++) {
            (void)report((hak_learner_reading_t){.in_use_bytes = i % 2 == 0 ? 0 : bytes,
                                                 .most_bytes = bytes,
                                                 .bound_bytes = SIZE_MAX,
                                                 .hard_bytes = SIZE_MAX,
                                                 .taken_bytes = (uint64_t)bytes * i});
        }
        hak_price_t price = program_view().price[HAK_STRATEGIES - 1];
        assert_true(price.held > last + last / 2);
        last = price.held;
    }
}

/* Nothing of what came before a jump back counts; long gaps count as a second. */
LEARNER_TEST(clock_may_jump) {
    program_t program = {0};
    (void)steps_until_kept(&program);
    hak_learner_reading_t reading = {.now_ns = 1, .in_use_bytes = MIB, .most_bytes = MIB};
    assert_int_equal(hak_learner_maintain(HAK_LEARNER_UNITS, &reading), SIZE_MAX);
    assert_int_equal(program_keep_ms(), 400);
    reading.now_ns = UINT64_MAX / 2;
    reading.idle_bytes = 64u * MIB;
    assert_int_equal(hak_learner_maintain(HAK_LEARNER_UNITS, &reading), SIZE_MAX);
    assert_int_equal(program_view().real.held, 32u << 10);
}

/* As when another thread was faster to the lock: it is no jump. */
LEARNER_TEST(report_a_little_late_is_no_jump) {
    program_t program = {0};
    (void)steps_until_kept(&program);
    uint64_t keep_ms = program_keep_ms();
    hak_learner_reading_t reading = {.now_ns = hak_os_now_ns() - HAK_EVENT_STEP_NS / 2};
    assert_int_not_equal(hak_learner_maintain(HAK_LEARNER_UNITS, &reading), SIZE_MAX);
    assert_int_equal(program_keep_ms(), keep_ms);
}
