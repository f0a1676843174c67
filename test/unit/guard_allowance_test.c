/* SPDX-License-Identifier: MIT
 *
 * The allowance of extra guarded blocks (GUARD-7): number, memory; whatever the clock does, and in
 * the child of a fork. */
#include "base/bits.h"
#include "conf/conf.h"
#include "guard/allowance.h"
#include "unit/guard.h"

static const uint64_t SECOND_NS = 1000000000, GAP_NS = HAK_ALLOWANCE_GAP_NS;
static const uint64_t START_NS = 5000000000; /* of each test; 0 would be "not yet" */

/* A new process that has a region, and no guarded block in use. */
UNIT_AROUND(allowance_begin) {
    hak_fast_free(guard_sample(48, HAK_BLOCK_ALIGN));
    hak_store_relaxed(&hak_counters.guard_free, hak_load_relaxed(&hak_counters.guard_sample));
    hak_store_relaxed(&hak_knobs.guard_rate, HAK_GUARD_RATE);
    hak_allowance_full_ns = UINT64_MAX;
    self()->guard_is_extra = false;
    return 0;
}

#define ALLOWANCE_TEST(name) UNIT_TEST_WITH(name, allowance_begin, NULL)

/* How many extra blocks may begin now. */
static unsigned take_all(uint64_t now) {
    unsigned count = 0;
    while (hak_allowance_take(now, true)) {
        count++;
    }
    assert_false(hak_allowance_has(now));
    return count;
}

ALLOWANCE_TEST(bucket_has_so_many_and_fills_up_by_time) {
    uint64_t now = START_NS;
    assert_int_equal(take_all(now), 0); /* it is empty at first */
    assert_int_equal(take_all(now + GAP_NS - 1), 0);
    assert_int_equal(take_all(now + GAP_NS), 1);
    assert_int_equal(take_all(now + 10 * GAP_NS), 9);
    assert_int_equal(take_all(now + 3600 * SECOND_NS), HAK_ALLOWANCE_BLOCKS);
}

ALLOWANCE_TEST(blocks_of_the_rate_are_taken_from_the_bucket_and_never_refused) {
    uint64_t now = START_NS;
    hak_allowance_has(now);
    now += SECOND_NS;
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(hak_allowance_take(now, false));
    }
    assert_int_equal(take_all(now), 0);
    assert_int_equal(take_all(now + GAP_NS), 1); /* no more debts than an empty bucket */
}

ALLOWANCE_TEST(extra_block_makes_no_region) {
    char *base = hak_guard_region.base;
    hak_guard_region.base = NULL;
    hak_allowance_has(START_NS);
    assert_false(hak_allowance_has(START_NS + 3600 * SECOND_NS)); /* it may be in a sandbox */
    hak_guard_region.base = base;
    assert_true(hak_allowance_has(START_NS + 3600 * SECOND_NS));
}

ALLOWANCE_TEST(blocks_in_use_are_bounded) {
    uint64_t freed = hak_load_relaxed(&hak_counters.guard_free);
    size_t most = hak_most(HAK_ALLOWANCE_BYTES / hak_os_page_bytes(), HAK_ALLOWANCE_LEAST_PAGES);
    hak_allowance_has(START_NS);
    hak_store_relaxed(&hak_counters.guard_sample, freed + most);
    assert_false(hak_allowance_has(START_NS + SECOND_NS));
    hak_store_relaxed(&hak_counters.guard_sample, freed + most - 1);
    assert_true(hak_allowance_has(START_NS + SECOND_NS));
    hak_store_relaxed(&hak_counters.guard_sample, freed);
}

ALLOWANCE_TEST(clock_that_goes_back_begins_anew_without_a_gift) {
    uint64_t now = START_NS + 1000 * SECOND_NS;
    hak_allowance_has(now);
    now += 4 * SECOND_NS;
    assert_int_equal(take_all(now), HAK_ALLOWANCE_BLOCKS);
    now -= 900 * SECOND_NS;
    assert_int_equal(take_all(now), 0);
    assert_int_equal(take_all(now + GAP_NS), 1); /* neither stuck nor full */
}

ALLOWANCE_TEST(child_of_a_fork_begins_with_an_empty_bucket) {
    uint64_t now = START_NS;
    hak_allowance_has(now);
    now += 3600 * SECOND_NS;
    hak_allowance_full_ns = UINT64_MAX;          /* as hak_guard_after_fork does */
    assert_true(hak_allowance_take(now, false)); /* the rate's */
    assert_int_equal(take_all(now), 0);
    assert_int_equal(take_all(now + GAP_NS), 1);
}

/* GUARD-7, with a clock that jumps both ways: never more than a full bucket and what time brought
 * since the clock last went back. */
ALLOWANCE_TEST(random_process_never_exceeds_its_allowance) {
    enum { STEPS = 200000 };
    uint64_t random = 20261125, now = START_NS, begin = now, extra = 0, total = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t kind = hak_random_next(&random) % 1000, draw = hak_random_next(&random);
        now += draw % (kind < 3 ? 30 * SECOND_NS : GAP_NS / 20);
        if (kind == 999) {
            now = hak_most(hak_excess(now, draw % (40 * SECOND_NS)), 1);
            begin = now;
            extra = 0;
        }
        bool is_extra = draw % 8 != 0;
        bool is_taken = hak_allowance_take(now, is_extra) && is_extra;
        extra += is_taken;
        total += is_taken;
        assert_true(extra <= HAK_ALLOWANCE_BLOCKS + (now - begin) / GAP_NS + 1);
    }
    /* it refuses some, not all */
    UNIT_EXPECT(total > 2000 && total < STEPS / 2, "%lu", (unsigned long)total);
}

/* Blocks watched while so many steps of time pass; each brings some refills and an event. The draws
 * are the same in every run: the rate has blocks of its own, which the allowance never refuses. */
static unsigned watch(unsigned steps) {
    static void *block[200];
    self()->guard_random = 20261127;
    uint64_t before = hak_load_relaxed(&hak_counters.guard_sample);
    for (unsigned i = 0; i < steps; i++) {
        hak_os_fault_advance_clock(GAP_NS);
        hak_guard_follow(self());
        for (unsigned j = 0; j < UNIT_COUNT(block); j++) {
            block[j] = hak_fast_malloc(16 + 16 * (size_t)(j % 8));
        }
        for (unsigned j = 0; j < UNIT_COUNT(block); j++) {
            hak_fast_free(block[j]);
        }
        hak_collect_thread(); /* bins are empty, each class is refilled */
    }
    return (unsigned)(hak_load_relaxed(&hak_counters.guard_sample) - before);
}

ALLOWANCE_TEST(process_with_few_allocations_has_extra_blocks_by_default_only) {
    hak_os_fault_stop_clock();
    self()->guard_left = 1 << 20;
    unsigned count = watch(200);
    UNIT_EXPECT(count >= 100 && count <= HAK_ALLOWANCE_BLOCKS + 200, "%u", count);
    allowance_begin(state);
    hak_store_relaxed(&hak_knobs.guard_rate, HAK_GUARD_RATE + 1); /* as it was told to */
    self()->guard_left = 1 << 20;
    count = watch(200);
    UNIT_EXPECT(count <= 4, "%u", count);
    hak_os_fault_clear();
}

ALLOWANCE_TEST(rate_0_watches_none_until_there_is_another) {
    hak_os_fault_stop_clock();
    hak_store_relaxed(&hak_knobs.guard_rate, 0);
    self()->guard_left = 1;
    assert_int_equal(watch(50), 0);
    hak_store_relaxed(&hak_knobs.guard_rate, 100);
    assert_true(watch(50) > 10);
    hak_os_fault_clear();
}

/* The number stands in options.def as well, for documents. */
ALLOWANCE_TEST(default_of_the_option_is_the_rate_with_an_allowance) {
    uint64_t value = 0;
    hak_conf_apply();
    assert_true(hak_conf_get("guard_rate", &value));
    assert_int_equal(value, HAK_GUARD_RATE);
}
