/* SPDX-License-Identifier: MIT
 *
 * The learner of huge blocks where they really come and go, by a clock that the test sets: what it
 * chose is kept, within the bounds by size, whatever the kernel refuses. */
#include "unit/large.h"
#include "unit/learner.h"

enum { BLOCKS = 6, HELD_STEPS = 3, PAUSE_STEPS = 8, SWINGS_MOST = 60, HUGE_LONG_STEPS = 400 };

static const size_t BYTES = 2u * MIB;
static char *huge_held[BLOCKS];

static int huge_begin(void **state) {
    large_begin(state);
    hak_os_fault_stop_clock();
    hak_os_fault_advance_clock(1ull << 40); /* no window of an earlier test counts */
    hak_knobs.huge_cache_bytes = 8u * MIB;
    hak_knobs.retain_idle_bytes = MIB;
    hak_knobs.retain_percent = 50;
    hak_knobs.learn = HAK_LEARN_ON;
    hak_target_after_fork(); /* nothing is learned yet */
    return 0;
}

#define HUGE_TEST(name) UNIT_TEST_WITH(name, huge_begin, large_end)

static void huge_steps_pass(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        hak_os_fault_advance_clock(HAK_EVENT_STEP_NS);
        hak_target_huge();
    }
}

static void huge_take(void) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        huge_held[i] = large(BYTES, 16);
        for (size_t at = 0; at < BYTES - GUARD; at += 4096) {
            huge_held[i][at] = 1;
        }
    }
}

static void huge_give(void) {
    large_free_all(huge_held, BLOCKS);
}

/* 12 MiB for 0.3 s, none for 0.8 s, longer than the standard keeps them. Returns the bytes mapped
 * meanwhile. */
static uint64_t swing(unsigned count) {
    uint64_t before = hak_counters.huge_map_bytes;
    for (unsigned i = 0; i < count; i++) {
        huge_take();
        huge_steps_pass(HELD_STEPS);
        huge_give();
        huge_steps_pass(PAUSE_STEPS);
    }
    return hak_counters.huge_map_bytes - before;
}

static void huge_learn(void) {
    unsigned swings = 0;
    while (HAK_STRATEGY_MS[learner_view(HAK_LEARNER_HUGE).strategy] <= 400 &&
           swings++ < SWINGS_MOST) {
        (void)swing(1);
    }
    UNIT_EXPECT(HAK_STRATEGY_MS[learner_view(HAK_LEARNER_HUGE).strategy] > 400, "%u swings",
                swings);
}

static size_t huge_cached(void) {
    return large_stats().huge_cached_bytes;
}

HUGE_TEST(taken_again_soon_enough_is_kept) {
    huge_learn();
    (void)swing(1); /* what the standard gave back is mapped again */
    /* pieces that the standard left fit no block, so one in each swing is mapped */
    assert_true(swing(10) <= 10 * BYTES);
    assert_int_equal(huge_cached(), BLOCKS * BYTES);
    huge_steps_pass(HUGE_LONG_STEPS); /* it ended */
    assert_true(huge_cached() <= MIB + BYTES);
}

HUGE_TEST(standard_maps_it_anew_each_time) {
    static const hak_learn_t modes[] = {HAK_LEARN_OFF, HAK_LEARN_COUNTERFACTUAL};
    for (unsigned i = 0; i < UNIT_COUNT(modes); i++) {
        hak_knobs.learn = modes[i];
        (void)swing(20);
        assert_true(swing(10) >= 9 * (BLOCKS - 1) * BYTES);
    }
    assert_true(HAK_STRATEGY_MS[learner_view(HAK_LEARNER_HUGE).strategy] >
                400); /* as the counterfactual would have it */
}

/* Beyond five times the knob no memory stays, whatever was learned. Guards hold none, so addresses
 * may be more where a sample meets one. */
HUGE_TEST(bound_by_size_holds) {
    uint64_t resets = hak_counters.learner_resets;
    huge_learn();
    hak_knobs.huge_cache_bytes = MIB;
    for (unsigned i = 0; i < 20; i++) {
        huge_take();
        huge_steps_pass(HELD_STEPS);
        huge_give();
        assert_true(large_stats().huge_cached_dirty_bytes <= 5u * MIB);
        assert_true(huge_cached() <= (GUARD == 0 ? 5u : 8u) * MIB);
        huge_steps_pass(PAUSE_STEPS);
    }
    assert_int_equal(hak_counters.learner_resets, resets); /* it knows the bound */
}

/* Blocks can be used meanwhile, and the memory goes once the kernel does as it is told. */
HUGE_TEST(huge_refused_calls_of_each_kind_do_no_harm) {
    for (hak_os_call_t call = 0; call < HAK_OS_CALL_COUNT; call++) {
        huge_learn();
        hak_os_fault_plan(call, 0, 1u << 30);
        for (unsigned i = 0; i < 4; i++) { /* what is huge_cached needs no call */
            hak_large_result_t made = hak_large_alloc(HAK_PARTITION_ANY, BYTES - GUARD, 16);
            huge_steps_pass(HELD_STEPS);
            if (made.block != NULL) {
                memset(made.block, 1, BYTES - GUARD);
                large_free(made.block);
            }
            huge_steps_pass(PAUSE_STEPS);
        }
        huge_steps_pass(HUGE_LONG_STEPS);
        hak_os_fault_plan(call, 0, 0);
        (void)swing(1);
        huge_steps_pass(HUGE_LONG_STEPS);
        UNIT_EXPECT(huge_cached() <= MIB + BYTES, "call %u: %zu bytes", (unsigned)call,
                    huge_cached());
        hak_os_fault_advance_clock(40960ull * HAK_EVENT_STEP_NS); /* every interlock has ended */
        huge_steps_pass(1);
    }
}
