/* SPDX-License-Identifier: MIT
 *
 * The owner of sampled blocks stays locked: its holder sits in a signal handler, or is missing in
 * the child of a fork. Samples are dropped and counted, and do not wait one after the other. */
#include "os/lock.h"
#include "unit/profile.h"

#include <sys/wait.h>

enum { STUCK_SAMPLES = 100, NAPS_MOST = 1000 };

static void owner_set_locked(bool is_locked) {
    hak_store_release(&hak_sample_owner.lock.is_taken, is_locked);
}

static uint64_t dropped(void) {
    hak_profile_state_t state;
    hak_profile_look(&state);
    return state.dropped;
}

static unsigned sample_some(void) {
    unsigned sampled = 0;
    for (unsigned i = 0; i < STUCK_SAMPLES; i++) {
        void *block = hak_malloc(100);
        sampled += is_sampled(block);
        hak_free(block);
    }
    return sampled;
}

UNIT_TEST(samples_wait_once_for_an_owner_that_stays_locked) {
    begin(1);
    owner_set_locked(true);
    uint64_t before = hak_sample_naps;
    assert_int_equal(sample_some(), 0);
    assert_int_equal(hak_sample_naps - before, NAPS_MOST);
    assert_int_equal(dropped(), STUCK_SAMPLES);
    assert_int_equal(sample_some(), 0);
    assert_int_equal(hak_sample_naps - before, NAPS_MOST);
    owner_set_locked(false);
    assert_int_equal(sample_some(), STUCK_SAMPLES);
    assert_int_equal(dropped(), 2 * STUCK_SAMPLES);
    owner_set_locked(true); /* it was free once */
    assert_int_equal(sample_some(), 0);
    assert_int_equal(hak_sample_naps - before, 2 * NAPS_MOST);
    owner_set_locked(false);
    assert_int_equal(sample_some(), STUCK_SAMPLES);
    finish();
}

/* The fork gave up on the lock, as its holder was in a signal handler. */
UNIT_TEST(child_of_a_fork_never_waits_for_an_owner_that_was_locked) {
    int status;
    begin(1);
    owner_set_locked(true);
    hak_store_relaxed(&hak_sample_owner.lock.has_refused_fork,
                      true); /* an earlier one: waits less */
    pid_t child = fork();
    if (child == 0) {
        uint64_t before = hak_sample_naps;
        bool is_right =
            sample_some() == 0 && hak_sample_naps == before && dropped() == STUCK_SAMPLES;
        _exit(is_right ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    owner_set_locked(false);
    assert_int_equal(sample_some(), STUCK_SAMPLES);
    finish();
}
