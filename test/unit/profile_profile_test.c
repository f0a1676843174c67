/* SPDX-License-Identifier: MIT
 *
 * Start, stop, reset and fork of the heap profile. */
#include "double/profile_state.h"
#include "unit/front.h"

static hak_profile_state_t look(void) {
    hak_profile_state_t state;
    hak_profile_look(&state);
    return state;
}

UNIT_AROUND(profile_begin) {
    (void)self();
    return !hak_profile_set_rate(1);
}

UNIT_AROUND(profile_end) {
    assert_int_equal(look().live, 0);
    return !hak_profile_set_rate(0);
}

#define PROFILE_TEST(name) UNIT_TEST_WITH(name, profile_begin, profile_end)

UNIT_TEST(the_option_starts_and_stops_sampling) {
    (void)self();
    assert_int_equal(look().rate, 0);
    if (HAK_HARDEN) {
        hak_store_relaxed(&hak_knobs.profile_rate, (size_t)1);
        hak_profile_follow(NULL);
    } else {
        assert_int_equal(hak_option_set("profile_rate", "1"), 0); /* acts at once */
    }
    assert_int_equal(look().rate, 1);
    void *block = unit_malloc(100);
    assert_int_equal(look().live, 1);
    assert_true(look().own_bytes > 0);
    hak_store_relaxed(&hak_knobs.profile_rate, (size_t)0);
    hak_profile_follow(NULL);
    assert_int_equal(look().rate, 0);
    void *other = unit_malloc(100);
    assert_int_equal(look().taken, 1);
    hak_free(other);
    assert_int_equal(look().live, 1);
    hak_free(block); /* is seen, though nothing is sampled */
    assert_int_equal(look().live, 0);
    assert_false(hak_profile_store.is_whole);
}

static void take_samples(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        void *block = unit_malloc(16 << 20); /* each is one, at rates far below */
        hak_free(block);
    }
}

/* Samples in a fifth of a second, then an event. */
static size_t rate_after(unsigned samples) {
    take_samples(samples);
    hak_os_fault_advance_clock(200 * 1000 * 1000);
    hak_profile_follow(NULL);
    return look().rate;
}

/* 400 in a fifth of a second, and 100 more for each time the rate doubles. */
UNIT_TEST(a_rate_gives_way_to_too_many_samples_and_comes_back) {
    enum { RATE = 256 << 10 };
    (void)self();
    hak_os_fault_stop_clock();
    assert_true(hak_profile_set_rate(RATE));
    (void)rate_after(0);
    assert_int_equal(rate_after(399), RATE);
    take_samples(400);
    assert_int_equal(look().rate, 2 * RATE); /* at once */
    assert_int_equal(rate_after(199), 4 * RATE);
    assert_int_equal(rate_after(0), 2 * RATE); /* one step at a time */
    assert_int_equal(rate_after(300), 2 * RATE);
    for (unsigned i = 0; i < 5; i++) {
        (void)rate_after(10);
    }
    assert_int_equal(look().rate, RATE);
    assert_true(hak_profile_set_rate(RATE - 1));
    assert_int_equal(rate_after(2000), RATE - 1); /* who asks for it gets it */
    assert_true(hak_profile_set_rate(0));
    hak_os_fault_clear();
}

static void pass_window(void) {
    hak_os_fault_advance_clock(200 * 1000 * 1000);
}

/* No event there: small blocks come of their bins, and samples alone look. */
UNIT_TEST(a_rate_gives_way_in_a_program_that_hits_its_bins) {
    enum { RATE = 256 << 10, WINDOWS = 4, PAIRS = 40000 }; /* 1,230 samples in each */
    (void)self();
    hak_os_fault_stop_clock();
    assert_true(hak_profile_set_rate(RATE));
    for (unsigned i = 0; i < WINDOWS * PAIRS; i++) {
        void *block = unit_malloc(8000);
        hak_free(block);
        if (i % PAIRS == PAIRS - 1) {
            pass_window();
        }
    }
    assert_in_range(look().rate, 4 * RATE, 16 * RATE);
    assert_true(hak_profile_set_rate(0));
    hak_os_fault_clear();
}

/* What was sampled at another rate says nothing of this one, and nobody waits for the lock in code
 * that a handler interrupted. */
UNIT_TEST(a_pace_begins_with_its_rate) {
    enum { RATE = 256 << 10 };
    (void)self();
    hak_os_fault_stop_clock();
    assert_true(hak_profile_set_rate(RATE));
    pass_window();
    assert_true(hak_profile_set_rate(4096));
    take_samples(3000);
    assert_true(hak_profile_set_rate(RATE));
    pass_window();
    hak_profile_follow(NULL);
    assert_int_equal(look().rate, RATE);
    take_samples(399);
    hak_lock_acquire(HAK_LOCK_PROFILE);
    hak_sample_pace(true);
    hak_lock_release(HAK_LOCK_PROFILE);
    assert_int_equal(look().rate, RATE);
    hak_sample_pace(true);
    assert_int_equal(look().rate, 2 * RATE);
    assert_true(hak_profile_set_rate(0));
    hak_os_fault_clear();
}

UNIT_TEST(a_rate_lasts_until_the_option_changes) {
    assert_true(hak_profile_set_rate(4096)); /* as by POST */
    hak_profile_follow(NULL);
    assert_int_equal(look().rate, 4096);
    hak_store_relaxed(&hak_knobs.profile_rate, (size_t)8192);
    hak_profile_follow(NULL);
    assert_int_equal(look().rate, 8192);
    hak_store_relaxed(&hak_knobs.profile_rate, (size_t)0);
    hak_profile_follow(NULL);
    assert_int_equal(look().rate, 0);
}

PROFILE_TEST(reset_forgets_blocks_that_are_still_in_use) {
    void *small = unit_malloc(100), *large = unit_malloc(1 << 20);
    assert_int_equal(look().live, 2);
    hak_profile_reset();
    assert_int_equal(look().live, 0);
    assert_int_equal(look().sites, 0);
    hak_free(small);
    hak_free(large);
    assert_int_equal(look().live, 0);
    void *block = unit_malloc(100);
    assert_int_equal(look().live, 1);
    hak_free(block);
}

/* The exit status of a child says what failed there. */
static int child_of(bool is_clean, void *block) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!is_clean) {
            hak_profile_after_fork(false);
        }
        bool is_empty = look().live == 0 && look().taken == 0 && look().sites == 0;
        bool is_on = (look().rate != 0) == is_clean;
        hak_free(block); /* the parent's sample */
        void *own = unit_malloc(100);
        bool is_seen = (look().live == 1) == is_clean;
        hak_free(own);
        _exit(!is_empty ? 1 : !is_on ? 2 : !is_seen ? 3 : look().live != 0 ? 4 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

PROFILE_TEST(a_child_starts_empty) {
    void *block = unit_malloc(100);
    assert_int_equal(look().live, 1);
    assert_int_equal(child_of(true, block), 0);
    assert_int_equal(look().live, 1);
    hak_free(block);
}

PROFILE_TEST(a_child_of_an_unclean_fork_has_no_profile) {
    void *block = unit_malloc(100);
    assert_int_equal(child_of(false, block), 0);
    hak_free(block);
}
