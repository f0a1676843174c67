/* SPDX-License-Identifier: MIT
 *
 * Holes of slabs that nobody uses go back by themselves: when, how many at a time, and what stops
 * it. */
#include "base/knobs.h"
#include "unit/holes.h"

enum { EVERY = 64, SLABS = 40, ALL = 1 << 30 };

static const uint64_t PAUSE_NS = 400u * 1000 * 1000;
static uint64_t now;

static int begin(void **state) {
    unit_one_owner_begin(state);
    owner.holes = (hak_holes_round_t){0};
    hak_knobs.retain_idle_bytes = 0;
    now = PAUSE_NS;
    return 0;
}

static void round_passes(void) {
    hak_slab_decay_holes(&owner, now, ALL);
    now += PAUSE_NS << owner.holes.backoff;
}

static size_t resident(const hak_slab_t *slab) {
    return hak_os_resident(slab->base, (size_t)slab->units * HAK_UNIT_BYTES);
}

static void idle_slab_is_purged_in_the_second_round(void **state) {
    (void)state;
    hak_slab_t *slab = partly_used_slab(SC_1024, EVERY);
    size_t all = resident(slab);
    round_passes();
    assert_int_equal(resident(slab), all);
    assert_int_equal(hak_slab_decay_holes(&owner, now - 1, ALL), 0); /* not due */
    round_passes();
    assert_int_equal(resident(slab), all - holes_expected(slab, EVERY));
    for (unsigned i = 0; i < held.count; i += EVERY) {
        check_filled(held.block[i], 1024, i);
    }
    give_the_rest(EVERY);
}

static void slab_that_changed_stays_for_a_round(void **state) {
    (void)state;
    hak_slab_t *slab = partly_used_slab(SC_1024, EVERY / 2);
    round_passes();
    unit_give(&owner, held.block[0]);
    held.block[0] = held.block[EVERY / 2];
    round_passes();
    assert_false(slab->is_purged);
    round_passes();
    assert_true(slab->is_purged);
    unit_give(&owner, held.block[0]);
    held.count = 0;
}

static void little_is_not_worth_it(void **state) {
    (void)state;
    hak_slab_t *slab = partly_used_slab(SC_1024, EVERY);
    hak_knobs.retain_idle_bytes = HAK_UNIT_BYTES;
    for (unsigned i = 0; i < 4; i++) {
        round_passes();
    }
    assert_false(slab->is_purged);
    give_the_rest(EVERY);
    slab = partly_used_slab(SC_1024, 1); /* all are in use but those given here: 12 KiB */
    hak_knobs.retain_idle_bytes = 0;
    for (unsigned i = 0; i < 12; i++) {
        unit_give(&owner, held.block[i]);
    }
    for (unsigned i = 0; i < 4; i++) {
        round_passes();
    }
    assert_false(slab->is_purged);
    for (unsigned i = 12; i < held.count; i++) {
        unit_give(&owner, held.block[i]);
    }
    held.count = 0;
}

/* SLABS slabs, of which one block each stays. */
static void many_partly_used_slabs(void) {
    uint32_t capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, SLABS * capacity);
    for (unsigned i = 0; i < held.count; i++) {
        if (i % capacity != 0) {
            unit_give(&owner, held.block[i]);
        }
    }
    hak_slab_release_current(&owner);
    assert_int_equal(owner.partial_count[SC_1024], SLABS);
}

static unsigned purged_slabs(void) {
    unsigned count = 0;
    for (unsigned i = 0; i < held.count; i += hak_sc_info[SC_1024].blocks) {
        count += hak_slab_of(held.block[i])->is_purged;
    }
    return count;
}

static void work_of_one_step_is_bounded(void **state) {
    (void)state;
    enum { WORK = 256, MOST = 8, PURGE_WORK = 32 + 64 }; /* its blocks are on a list */
    many_partly_used_slabs();
    round_passes();
    unsigned purged = 0;
    for (unsigned steps = 0; purged < SLABS; steps++) {
        assert_true(steps <= SLABS * PURGE_WORK / WORK);
        assert_true(hak_slab_decay_holes(&owner, now, WORK) < WORK + PURGE_WORK);
        assert_true(purged_slabs() <= purged + MOST);
        purged = purged_slabs();
    }
    give_the_rest(hak_sc_info[SC_1024].blocks);
}

static void slabs_that_are_needed_again_make_rounds_rarer(void **state) {
    (void)state;
    many_partly_used_slabs();
    round_passes();
    round_passes();
    assert_int_equal(purged_slabs(), SLABS);
    assert_int_equal(owner.holes.backoff, 0);
    static unit_blocks_t again;
    unit_take(&owner, SC_1024, &again, 20 * (hak_sc_info[SC_1024].blocks - 1));
    for (unsigned i = 0; i < again.count; i++) {
        fill(again.block[i], 1024, i);
    }
    round_passes();
    assert_int_equal(owner.holes.backoff, 2);
    uint64_t due = owner.holes.due_ns;
    assert_int_equal(due, now);
    for (unsigned i = 0; i < again.count; i++) {
        check_filled(again.block[i], 1024, i);
        unit_give(&owner, again.block[i]);
    }
    hak_slab_release_current(&owner);
    round_passes(); /* nothing was regretted */
    assert_int_equal(owner.holes.backoff, 1);
    round_passes();
    assert_int_equal(owner.holes.backoff, 0);
    assert_int_equal(purged_slabs(), SLABS);
    give_the_rest(hak_sc_info[SC_1024].blocks);
}

static const struct CMUnitTest tests[] = {
#define DECAY_TEST(test) cmocka_unit_test_setup_teardown(test, begin, unit_one_owner_end)
    DECAY_TEST(idle_slab_is_purged_in_the_second_round),
    DECAY_TEST(slab_that_changed_stays_for_a_round),
    DECAY_TEST(little_is_not_worth_it),
    DECAY_TEST(work_of_one_step_is_bounded),
    DECAY_TEST(slabs_that_are_needed_again_make_rounds_rarer),
};

int main(void) {
    return cmocka_run_group_tests(tests, unit_slab_begin, NULL);
}
