/* SPDX-License-Identifier: MIT
 *
 * The allowance of extra guarded blocks (GUARD-7): time, number, memory; whatever the clock does,
 * and in the child of a fork. */
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
    hak_allowance = (hak_allowance_t){0};
    self()->guard_is_extra = false;
    return 0;
}

#define ALLOWANCE_TEST(name) UNIT_TEST_WITH(name, allowance_begin, NULL)

/* Work of any duration. */
static void spend(uint64_t ns) {
    hak_add_relaxed(&hak_allowance.spent_ns, ns);
}

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
    assert_int_equal(take_all(now), 0); /* no time yet */
    now += SECOND_NS;
    assert_int_equal(take_all(now), HAK_ALLOWANCE_BLOCKS);
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

ALLOWANCE_TEST(time_spent_ends_it_until_its_share_has_passed) {
    uint64_t now = START_NS;
    hak_allowance_has(now);
    now += SECOND_NS;
    spend(SECOND_NS / HAK_ALLOWANCE_SHARE - HAK_ALLOWANCE_COST_NS);
    assert_true(hak_allowance_has(now));
    spend(1);
    assert_false(hak_allowance_has(now));
    assert_true(hak_allowance_has(now + HAK_ALLOWANCE_SHARE));
    spend(SECOND_NS); /* as blocks of the rate may */
    assert_int_equal(take_all(now + 255 * SECOND_NS), 0);
    assert_int_equal(take_all(now + 257 * SECOND_NS), HAK_ALLOWANCE_BLOCKS);
}

ALLOWANCE_TEST(credit_alone_makes_a_region) {
    char *base = hak_guard_region.base;
    hak_guard_region.base = NULL;
    hak_allowance_has(START_NS);
    assert_false(hak_allowance_has(START_NS + 3600 * SECOND_NS)); /* it may be in a sandbox */
    hak_allowance = (hak_allowance_t){0};
    assert_true(hak_allowance_draw(0));
    assert_true(hak_allowance_has(START_NS));
    hak_guard_region.base = base;
}

ALLOWANCE_TEST(blocks_in_use_are_few_in_a_young_process_and_bounded_in_an_old_one) {
    static const struct {
        uint64_t age_ns;
        unsigned pages;
    } rows[] = {{5000000, 4}, {64000000, 5}, {192000000, 6}, {SECOND_NS, 8}, {60 * SECOND_NS, 13}};
    uint64_t freed = hak_load_relaxed(&hak_counters.guard_free);
    size_t most = hak_most(HAK_ALLOWANCE_BYTES / hak_os_page_bytes(), HAK_ALLOWANCE_LEAST_PAGES);
    hak_allowance_has(START_NS);
    for (unsigned i = 0; i < UNIT_COUNT(rows); i++) {
        uint64_t now = START_NS + rows[i].age_ns, pages = hak_least(rows[i].pages, most);
        hak_store_relaxed(&hak_counters.guard_sample, freed + pages - 1);
        UNIT_EXPECT(hak_allowance_has(now), "row %u", i);
        hak_store_relaxed(&hak_counters.guard_sample, freed + pages);
        UNIT_EXPECT(!hak_allowance_has(now), "row %u", i);
    }
    hak_store_relaxed(&hak_counters.guard_sample, freed + most);
    assert_false(hak_allowance_has(UINT64_MAX / 4));
    hak_store_relaxed(&hak_counters.guard_sample, freed + most - 1);
    assert_true(hak_allowance_has(UINT64_MAX / 4));
    hak_store_relaxed(&hak_counters.guard_sample, freed);
}

ALLOWANCE_TEST(clock_that_goes_back_begins_anew_without_a_gift) {
    uint64_t now = START_NS + 1000 * SECOND_NS;
    hak_allowance_has(now);
    now += SECOND_NS;
    assert_int_equal(take_all(now), HAK_ALLOWANCE_BLOCKS);
    spend(SECOND_NS);
    now -= 900 * SECOND_NS; /* before the begin */
    assert_int_equal(take_all(now), 0);
    assert_int_equal(take_all(now + GAP_NS), 1); /* neither stuck nor full */
    now += 100 * SECOND_NS;
    assert_int_equal(take_all(now), HAK_ALLOWANCE_BLOCKS);
    now -= 60 * SECOND_NS; /* behind the begin */
    assert_int_equal(take_all(now), 0);
    assert_int_equal(take_all(now + GAP_NS), 1);
}

ALLOWANCE_TEST(one_process_in_so_many_has_a_credit_drawn_once) {
    assert_false(hak_allowance_draw(HAK_ALLOWANCE_CREDIT_ODDS + 1));
    assert_false(hak_allowance_draw(0)); /* it was drawn */
    assert_int_equal(hak_allowance.spent_ns, 0);
    hak_allowance = (hak_allowance_t){0};
    assert_true(hak_allowance_draw(7 * HAK_ALLOWANCE_CREDIT_ODDS));
    assert_false(hak_allowance_draw(0));
    assert_true(hak_allowance_has(START_NS)); /* at once */
    spend(HAK_ALLOWANCE_CREDIT_NS - 2 * HAK_ALLOWANCE_COST_NS);
    hak_allowance_spend();
    assert_true(hak_allowance_has(START_NS));
    hak_allowance_spend();
    assert_false(hak_allowance_has(START_NS));
}

ALLOWANCE_TEST(child_of_a_fork_begins_anew_and_makes_no_region) {
    uint64_t now = START_NS;
    hak_allowance_has(now);
    now += 3600 * SECOND_NS;
    hak_allowance_after_fork();
    assert_true(hak_allowance_take(now, false)); /* the rate's, before the first look */
    assert_int_equal(take_all(now), 0);
    assert_int_equal(take_all(now + GAP_NS), 1);
    char *base = hak_guard_region.base;
    hak_guard_region.base = NULL;
    hak_allowance_after_fork();
    assert_int_equal(take_all(now), 0);
    assert_int_equal(take_all(now + 3600 * SECOND_NS), 0);
    hak_guard_region.base = base; /* of the rate's first block */
    assert_int_equal(take_all(now + 3601 * SECOND_NS), HAK_ALLOWANCE_BLOCKS);
}

typedef struct model {
    uint64_t random, now, begin; /* the time is measured from there */
    uint64_t spent, extra;       /* since then */
    uint64_t total;
} model_t;

/* Time passes, or the clock goes back. */
static bool model_pass(model_t *model) {
    uint64_t kind = hak_random_next(&model->random) % 1000, draw = hak_random_next(&model->random);
    model->now += draw % (kind < 3 ? 30 * SECOND_NS : GAP_NS / 20);
    if (kind == 999) {
        model->now = hak_most(hak_excess(model->now, draw % (40 * SECOND_NS)), 1);
    }
    return kind == 999;
}

static void model_take(model_t *model, bool is_back) {
    uint64_t draw = hak_random_next(&model->random);
    bool is_extra = draw % 8 != 0, is_taken = hak_allowance_take(model->now, is_extra);
    if (hak_allowance.begin_ns != model->begin) {
        assert_true(is_back || model->begin == 0);
        model->begin = hak_allowance.begin_ns;
        model->spent = model->extra = 0;
    }
    if (is_taken) {
        uint64_t age = hak_excess(model->now, model->begin);
        model->extra += is_extra;
        model->total += is_extra;
        assert_true(!is_extra || model->spent <= age / HAK_ALLOWANCE_SHARE);
        assert_true(model->extra <= HAK_ALLOWANCE_BLOCKS + age / GAP_NS + 1);
        uint64_t cost = (draw >> 8) % (draw >> 32 & 0xff ? 30000 : 5000000);
        spend(cost);
        model->spent += cost;
    }
}

/* GUARD-7, with any work, any cost, and a clock that jumps both ways. */
ALLOWANCE_TEST(random_process_never_exceeds_its_allowance) {
    enum { STEPS = 200000 };
    model_t model = {.random = 20261125, .now = START_NS};
    bool is_back = false;
    for (unsigned i = 0; i < STEPS; i++) {
        is_back = model_pass(&model) || is_back;
        model_take(&model, is_back);
        is_back = is_back && hak_allowance.begin_ns > model.now; /* not yet seen */
    }
    /* it refuses some, not all */
    UNIT_EXPECT(model.total > 2000 && model.total < STEPS / 2, "%lu", (unsigned long)model.total);
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
