/* SPDX-License-Identifier: MIT
 *
 * Forks beside threads that attach. */
#include "os/libc.h"
#include "unit/front.h"

static void count_users(hak_owner_t *owner, void *context) {
    *(uint32_t *)context += hak_load_relaxed(&owner->users);
}

static uint32_t all_users(void) {
    uint32_t users = 0;
    hak_owner_visit(count_users, &users);
    return users;
}

static void *allocate_one(void *context) {
    (void)context;
    hak_free(unit_malloc(64));
    return NULL;
}

/* OWNER-1: it has a home, and no tcache yet. A fork waits for the registry's lock, too, which keeps
 * it there: so the child is made without the handlers that would wait. */
UNIT_TEST(child_of_a_fork_beside_the_first_other_threads_start_has_one_user) {
    pthread_t thread;
    int status = -1;
    if (unit_is_emulated() || UNIT_IS_TSAN) { /* which takes the child for the parent's thread */
        skip();
    }
    (void)self();
    hak_owner_part(hak_owner_join(HAK_PARTITION_ANY)); /* the next home needs no lock */
    assert_int_equal(all_users(), 1);
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    assert_int_equal(pthread_create(&thread, NULL, allocate_one, NULL), 0);
    while (all_users() == 1) {
        sched_yield();
    }
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        hak_libc_left_threads = true;
        hak_tcache_after_fork(true);
        _exit(all_users() == 1 && hak_budget_threads == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    hak_lock_release(HAK_LOCK_REGISTRY);
    pthread_join(thread, NULL);
    assert_int_equal(status, 0);
    assert_int_equal(all_users(), 1);
}
