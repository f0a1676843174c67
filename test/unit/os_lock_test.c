/* SPDX-License-Identifier: MIT */
#include "unit/fatal.h"
#include "unit/os.h"

enum { THREADS = 4, LOCK_ROUNDS = 20000 };

static uint64_t counter; /* deliberately plain: the lock is what keeps it right */
static uint32_t waiting; /* [atomic] */

static void *count_under_lock(void *context) {
    (void)context;
    for (unsigned i = 0; i < LOCK_ROUNDS; i++) {
        hak_lock_acquire(HAK_LOCK_SPAN);
        counter++;
        if (i % 1000 == 0) {
            sched_yield(); /* others pile up and sleep */
        }
        hak_lock_release(HAK_LOCK_SPAN);
    }
    return NULL;
}

UNIT_TEST(lock_under_contention_excludes) {
    pthread_t threads[THREADS];
    counter = 0;
    unit_pthread_create_all(threads, THREADS, count_under_lock, NULL, 0);
    unit_pthread_join_all(threads, THREADS);
    assert_int_equal(counter, THREADS * LOCK_ROUNDS);
    assert_int_equal(hak_locks[HAK_LOCK_SPAN].state, 0);
}

static void *take_once(void *context) {
    (void)context;
    hak_add_relaxed(&waiting, 1);
    hak_lock_acquire(HAK_LOCK_META);
    counter++;
    hak_lock_release(HAK_LOCK_META);
    return NULL;
}

UNIT_TEST(lock_held_long_puts_waiters_to_sleep_and_wakes_all) {
    pthread_t threads[THREADS];
    counter = waiting = 0;
    hak_lock_acquire(HAK_LOCK_META);
    unit_pthread_create_all(threads, THREADS, take_once, NULL, 0);
    while (hak_load_relaxed(&waiting) < THREADS ||
           hak_load_relaxed(&hak_locks[HAK_LOCK_META].state) != 2) {
        sched_yield();
    }
    assert_int_equal(counter, 0);
    hak_lock_release(HAK_LOCK_META);
    unit_pthread_join_all(threads, THREADS);
    assert_int_equal(counter, THREADS);
    assert_int_equal(hak_locks[HAK_LOCK_META].state, 0);
}

/* Each takes it once; the holder goes on until all have. */
UNIT_TEST(lock_that_is_passed_reaches_all_who_wait) {
    pthread_t threads[THREADS];
    counter = 0;
    hak_lock_acquire(HAK_LOCK_META);
    hak_lock_pass(HAK_LOCK_META); /* to nobody */
    unit_pthread_create_all(threads, THREADS, take_once, NULL, 0);
    while (counter < THREADS) {
        hak_lock_pass(HAK_LOCK_META);
        sched_yield();
    }
    assert_int_not_equal(hak_locks[HAK_LOCK_META].state, 0); /* still held */
    hak_lock_release(HAK_LOCK_META);
    unit_pthread_join_all(threads, THREADS);
}

UNIT_TEST(locks_in_rank_order_are_taken_together) {
    for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
        hak_lock_acquire((hak_lock_rank_t)rank);
        assert_int_equal(hak_locks[rank].state, 1);
    }
    for (unsigned rank = HAK_LOCK_COUNT; rank-- > 0;) {
        hak_lock_release((hak_lock_rank_t)rank);
        assert_int_equal(hak_locks[rank].state, 0);
    }
}

static bool fork_begin(void) {
    assert_true(hak_lock_fork_begin(false));
    return hak_lock_fork_is_clean;
}

/* Handlers of the program run between: for the forking thread locks are no obstacle. */
UNIT_TEST(locks_during_fork_are_all_held_and_pass_their_holder) {
    for (unsigned is_child = 0; is_child < 2; is_child++) {
        assert_true(hak_lock_fork_begin(is_child != 0));
        for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
            assert_int_equal(hak_locks[rank].state, 1);
        }
        hak_lock_acquire(HAK_LOCK_SPAN);
        hak_lock_acquire(HAK_LOCK_START); /* in any order */
        hak_lock_release(HAK_LOCK_SPAN);
        hak_lock_release(HAK_LOCK_START);
        assert_int_equal(hak_locks[HAK_LOCK_SPAN].state, 1);
        if (is_child) {
            hak_locks[HAK_LOCK_HUGE].state = 2; /* sleepers of the parent */
        }
        hak_lock_fork_end(is_child != 0);
        for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
            assert_int_equal(hak_locks[rank].state, 0);
        }
        hak_lock_acquire(HAK_LOCK_HUGE);
        hak_lock_release(HAK_LOCK_HUGE);
    }
}

static hak_owner_lock_t first, second; /* stay in the list: locks of owners never go away */

UNIT_TEST(owner_locks_are_tried_not_waited_for) {
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    hak_lock_add(&first);
    hak_lock_add(&second);
    hak_lock_release(HAK_LOCK_REGISTRY);
    assert_true(hak_lock_try(&first));
    assert_false(hak_lock_try(&first));
    assert_true(hak_lock_try(&second));
    hak_lock_unlock(&second);
    hak_lock_unlock(&first);
    assert_int_equal(first.is_taken | second.is_taken, 0);
}

static void *try_first(void *context) {
    for (unsigned *refused = context; !hak_lock_try(&first); ++*refused) {
        if (*refused == 100) {
            hak_store_release(&waiting, 1);
        }
    }
    hak_lock_unlock(&first);
    return NULL;
}

/* Entered without an atomic operation an owner keeps out the threads that start then; one that was
 * entered with one may be left when the C library says that there is one thread. */
UNIT_TEST(owner_of_the_only_thread_keeps_out_those_that_start_then) {
    pthread_t thread;
    unsigned refused = 0;
    if (&__libc_single_threaded == NULL) {
        skip();
    }
    waiting = 0;
    __libc_single_threaded = 1;
    assert_true(hak_lock_try(&first));
    assert_false(hak_lock_try(&first));
    __libc_single_threaded = 0;
    unit_pthread_create_all(&thread, 1, try_first, &refused, 0);
    while (hak_load_acquire(&waiting) == 0) {
        sched_yield();
    }
    hak_lock_unlock(&first);
    unit_pthread_join_all(&thread, 1);
    assert_true(refused > 100);
    assert_true(hak_lock_try(&first));
    __libc_single_threaded = 1;
    hak_lock_unlock(&first);
    assert_int_equal(first.is_taken, 0);
    __libc_single_threaded = 0;
}

/* Its holder sits in the handler of a fatal error, say. */
UNIT_TEST(fork_leaves_out_an_owner_that_stays_taken) {
    hak_store_relaxed(&first.is_taken, 1);
    for (unsigned is_child = 0; is_child < 2; is_child++) {
        assert_true(fork_begin());
        assert_int_equal(second.is_taken, 1);
        assert_true(hak_lock_try(&second)); /* the forking thread passes what it holds, */
        hak_lock_unlock(&second);
        assert_int_equal(second.is_taken, 1);
        assert_false(hak_lock_try(&first)); /* and nothing else */
        hak_lock_fork_end(is_child != 0);
        assert_int_equal(first.is_taken, 1);
        assert_int_equal(second.is_taken, 0);
    }
    hak_store_relaxed(&first.is_taken, 0);
}

/* A signal handler forks inside a section of an owner, or of a rank. */
UNIT_TEST(fork_inside_a_section_keeps_its_locks) {
    assert_true(hak_lock_try(&first));
    assert_false(fork_begin());
    assert_int_equal(second.is_taken, 1);
    hak_lock_fork_end(false);
    assert_int_equal(first.is_taken, 1);
    assert_int_equal(second.is_taken, 0);
    hak_lock_acquire(HAK_LOCK_SPAN);
    assert_false(fork_begin());
    hak_lock_fork_end(true);
    assert_int_equal(hak_locks[HAK_LOCK_SPAN].state, 1);
    for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
        assert_int_equal(hak_locks[rank].state, rank == HAK_LOCK_SPAN);
    }
    hak_lock_release(HAK_LOCK_SPAN);
    hak_lock_unlock(&first);
}

/* Another thread has a lock, and waits in a handler for the streams, which the caller has. */
UNIT_TEST(fork_that_may_fail_lets_go_of_all_locks) {
    for (unsigned stuck = 0; stuck < HAK_LOCK_COUNT; stuck++) {
        hak_store_relaxed(&hak_locks[stuck].state, 1);
        assert_true(hak_lock_fork_begin(true) == (stuck == HAK_LOCK_FALLBACK));
        if (stuck == HAK_LOCK_FALLBACK) {
            hak_lock_fork_end(false);
        }
        for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
            assert_int_equal(hak_locks[rank].state, rank == stuck);
        }
        assert_int_equal(first.is_taken | second.is_taken, 0);
        assert_true(hak_lock_holds_none());
        hak_store_relaxed(&hak_locks[stuck].state, 0);
        assert_true(hak_lock_fork_begin(true));
        hak_lock_fork_end(false);
    }
}

/* Another thread has a lock, and waits for what the handler's thread has. */
UNIT_TEST(fork_inside_a_section_waits_for_nobody) {
    assert_true(hak_lock_try(&first));
    hak_store_relaxed(&hak_locks[HAK_LOCK_START].state, 1);
    assert_false(fork_begin());
    hak_lock_fork_end(false);
    assert_int_equal(hak_locks[HAK_LOCK_START].state, 1);
    assert_false(fork_begin());
    hak_lock_fork_end(true); /* in the child its holder is gone */
    assert_int_equal(hak_locks[HAK_LOCK_START].state, 0);
    hak_lock_unlock(&first);
}

UNIT_TEST(lock_of_lower_rank_is_refused_in_audit_builds) {
    if (!HAK_AUDIT) {
        skip();
    }
    hak_lock_acquire(HAK_LOCK_SPAN);
    UNIT_EXPECT_FATAL(hak_lock_acquire(HAK_LOCK_HUGE), "LOCK-1");
    UNIT_EXPECT_FATAL(hak_lock_acquire(HAK_LOCK_SPAN), "LOCK-1");
    UNIT_EXPECT_FATAL(hak_lock_release(HAK_LOCK_META), "LOCK-2");
    hak_lock_release(HAK_LOCK_SPAN);
}

/* LOCK-3 */
UNIT_TEST(third_owner_is_refused) {
    static hak_owner_lock_t third;
    assert_true(hak_lock_try(&first));
    assert_true(hak_lock_try(&second));
    assert_false(hak_lock_try(&third));
    hak_lock_unlock(&second);
    assert_true(hak_lock_try(&third));
    hak_lock_unlock_owners();
}
