/* SPDX-License-Identifier: MIT
 *
 * Idle pages of slabs are purged by time: when, how many at a time, and what stops it. */
#include "reclaim/slabs.h"
#include "unit/purged_pages.h"

enum { SLABS_EVERY = 64, SLABS = 40, ALL = 1 << 30 };

static const uint64_t PAUSE_NS = 400u * 1000 * 1000;
static uint64_t now;

static int slabs_begin(void **state) {
    unit_one_owner_begin(state);
    owner.purge_pass = (hak_purge_pass_t){0};
    hak_knobs.retain_idle_bytes = 0;
    now = PAUSE_NS;
    return 0;
}

#define SLABS_TEST(name) UNIT_TEST_WITH(name, slabs_begin, unit_one_owner_end)

static void rounds_pass(unsigned count) {
    for (; count > 0; count--) {
        hak_slabs_decay(&owner, now, ALL);
        now += PAUSE_NS << owner.purge_pass.backoff;
    }
}

static size_t resident(const hak_slab_t *slab) {
    return hak_os_resident(slab->base, (size_t)slab->units * HAK_UNIT_BYTES);
}

SLABS_TEST(idle_slab_is_purged_in_the_second_round) {
    hak_slab_t *slab = partly_used_slab(SC_1024, SLABS_EVERY);
    size_t all = resident(slab);
    rounds_pass(1);
    assert_int_equal(resident(slab), all);
    assert_int_equal(hak_slabs_decay(&owner, now - 1, ALL), 0); /* not due */
    rounds_pass(1);
    assert_int_equal(resident(slab), all - purged_pages_expected(slab, SLABS_EVERY));
    for (unsigned i = 0; i < held.count; i += SLABS_EVERY) {
        check_filled(held.block[i], 1024, i);
    }
}

SLABS_TEST(slab_that_changed_stays_for_a_round) {
    hak_slab_t *slab = partly_used_slab(SC_1024, SLABS_EVERY / 2);
    rounds_pass(1);
    unit_give(&owner, held.block[0]);
    held.block[0] = held.block[SLABS_EVERY / 2];
    rounds_pass(1);
    assert_false(slab->is_purged);
    rounds_pass(1);
    assert_true(slab->is_purged);
}

SLABS_TEST(little_is_not_worth_it) {
    enum { LITTLE = 31 }; /* KiB: less than half of the slab */
    hak_slab_t *slab = partly_used_slab(SC_1024, SLABS_EVERY);
    hak_knobs.retain_idle_bytes = HAK_UNIT_BYTES;
    rounds_pass(4);
    assert_false(slab->is_purged);
    give_the_rest(SLABS_EVERY);
    slab = partly_used_slab(SC_1024, 1); /* all are in use but those given here */
    hak_knobs.retain_idle_bytes = 0;
    for (unsigned i = 0; i < LITTLE; i++) {
        unit_give(&owner, held.block[i]);
    }
    rounds_pass(4);
    assert_false(slab->is_purged);
}

/* SLABS slabs, of which so many blocks each stay. */
static void many_partly_used_slabs(unsigned stay) {
    uint32_t capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, SLABS * capacity);
    for (unsigned i = 0; i < held.count; i++) {
        if (i % capacity >= stay) {
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

SLABS_TEST(work_of_one_step_is_bounded) {
    enum { WORK = 256, PURGE_WORK = 1 + 32, MOST = WORK / PURGE_WORK + 1 };
    many_partly_used_slabs(1);
    rounds_pass(1);
    unsigned purged = 0, steps = 0;
    for (; purged < SLABS; steps++) {
        assert_true(steps < SLABS);
        assert_true(hak_slabs_decay(&owner, now, WORK) < WORK + PURGE_WORK);
        assert_in_range(purged_slabs(), purged + 1, purged + MOST);
        purged = purged_slabs();
    }
    assert_true(steps >= SLABS / MOST);
}

/* Others leave the list meanwhile, so that a slab comes by again. */
SLABS_TEST(slab_seen_twice_in_a_round_is_not_idle) {
    enum { LOOKS = 5, TAKEN = 3 };
    uint32_t capacity = hak_sc_info[SC_1024].blocks;
    static unit_blocks_t taken;
    many_partly_used_slabs(2);
    rounds_pass(1);
    for (unsigned i = 1; i < held.count; i += capacity) { /* each has changed */
        unit_give(&owner, held.block[i]);
    }
    hak_slabs_decay(&owner, now, LOOKS);
    taken.count = 0;
    unit_take(&owner, SC_1024, &taken, TAKEN * (capacity - 1));
    rounds_pass(1);
    assert_int_equal(purged_slabs(), 0);
    unit_give_all(&owner, &taken);
    hak_slab_release_current(&owner);
}

/* How much longer the pause becomes when so many of SLABS purged slabs are used again. */
static unsigned backoff_after(unsigned used) {
    static unit_blocks_t again;
    many_partly_used_slabs(1);
    rounds_pass(2);
    assert_int_equal(purged_slabs(), SLABS);
    assert_int_equal(owner.purge_pass.backoff, 0);
    again.count = 0;
    unit_take(&owner, SC_1024, &again, used * (hak_sc_info[SC_1024].blocks - 1));
    for (unsigned i = 0; i < again.count; i++) {
        fill(again.block[i], 1024, i);
    }
    rounds_pass(1);
    unsigned backoff = owner.purge_pass.backoff;
    assert_int_equal(owner.purge_pass.due_ns, now);
    for (unsigned i = 0; i < again.count; i++) {
        check_filled(again.block[i], 1024, i);
    }
    unit_give_all(&owner, &again);
    hak_slab_release_current(&owner);
    return backoff;
}

SLABS_TEST(slabs_that_are_needed_again_make_rounds_rarer) {
    assert_int_equal(backoff_after(20), 2);
    rounds_pass(1); /* nothing was regretted */
    assert_int_equal(owner.purge_pass.backoff, 1);
    rounds_pass(1);
    assert_int_equal(owner.purge_pass.backoff, 0);
    assert_int_equal(purged_slabs(), SLABS);
}

SLABS_TEST(few_that_are_needed_again_do_not) {
    assert_int_equal(backoff_after(10), 0);
}

SLABS_TEST(slab_that_is_adopted_is_regretted_by_who_purged_it) {
    many_partly_used_slabs(1);
    rounds_pass(2);
    hak_slab_t *slab = hak_slab_take_partial(&owner, SC_1024);
    assert_int_equal(owner.purge_pass.regretted, 1);
    assert_int_equal(slab->purged_bytes, 0);
    slab->state = HAK_SLAB_FULL;
    hak_slab_note_freed(&owner, slab);
}

/* Each slab is asked about once, for long; where much is refused, the pause becomes longer. */
SLABS_TEST(kernel_that_refuses_is_left_alone) {
    many_partly_used_slabs(1);
    rounds_pass(1);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, UINT64_MAX);
    uint64_t calls = hak_counters.purge_calls;
    rounds_pass(1);
    assert_int_equal(hak_counters.purge_calls - calls, SLABS);
    assert_int_equal(owner.purge_pass.backoff, 2);
    while (owner.purge_pass.number != 0) {
        rounds_pass(1);
    }
    assert_int_equal(hak_counters.purge_calls - calls, SLABS);
    hak_os_fault_clear();
    rounds_pass(2);
    assert_int_equal(purged_slabs(), SLABS);
}

/* An OS page in the hole of every `every`th slab cannot be given back; false: nor can it be locked.
 */
static bool slabs_lock(unsigned every) {
    uint32_t capacity = hak_sc_info[SC_1024].blocks;
    bool is_done = true;
    for (unsigned i = 0; i < SLABS; i += every) {
        char *page = hak_slab_of(held.block[i * capacity])->base + HAK_UNIT_BYTES / 2;
        is_done = is_done && unit_lock_memory(page, 1);
    }
    return is_done;
}

static void decay_meets_locked_page(unsigned every) {
    many_partly_used_slabs(1);
    unsigned locked = (SLABS + every - 1) / every;
    if (!slabs_lock(every)) {
        skip();
    }
    uint64_t calls = hak_counters.purge_calls;
    rounds_pass(2);
    assert_int_equal(purged_slabs(), SLABS - locked);
    rounds_pass(2);
    assert_int_equal(hak_counters.purge_calls - calls, SLABS); /* what refuses is remembered */
    (void)syscall(SYS_munlockall);
    while (owner.purge_pass.number != 0) {
        rounds_pass(1);
    }
    rounds_pass(2);
    assert_int_equal(purged_slabs(), SLABS);
}

SLABS_TEST(one_locked_page_keeps_only_its_slab) {
    decay_meets_locked_page(SLABS);
}

SLABS_TEST(locked_pages_keep_only_their_slabs) {
    decay_meets_locked_page(3);
}

UNIT_GROUP(unit_slab_begin)
