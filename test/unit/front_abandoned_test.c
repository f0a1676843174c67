/* SPDX-License-Identifier: MIT
 *
 * Forks beside threads that attach. */
#include "front/abandoned.h"
#include "front/attach.h"
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
    hak_owner_quit(hak_owner_join(HAK_PARTITION_ANY)); /* the next home needs no lock */
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

static hak_tcache_t *others;

static void *hold_tcache(void *barrier) {
    hak_free(unit_malloc(64));
    others = self();
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

/* Its blocks stay lost, and are told so. */
static bool child_uses_others(void) {
    unsigned sc = hak_sc_of(64);
    hak_libc_left_threads = true;
    hak_tcache_after_fork(true);
    uint32_t held = (uint32_t)(hak_bin_side(others, sc)->total - others->bin[sc].slots_left);
    hak_tcache_offset = 0; /* as of a thread that begins */
    hak_tcache_t *mine = hak_tcache_attach();
    bool is_empty =
        mine == others && mine->begun == 0 && mine->bin[sc].head == NULL && mine->changing == 0;
    hak_free(hak_malloc(48));
    return is_empty && held > 0 && hak_tcache_lost[sc] == held;
}

/* A thread with that word for notes marked a block, and did not tell the number. */
static hak_slab_t *cut_message(hak_slab_t **sending) {
    void *block = unit_malloc(64);
    hak_slab_t *slab = hak_slab_of(block);
    hak_superslab_t *superslab = hak_pagemap_superslab(block);
    uint32_t index = hak_slab_index(slab, block);
    hak_marks_t marks = {superslab, 1ull << index % 64, 1, slab->unit, (uint8_t)(index / 64)};
    hak_libc_left_threads = true;
    hak_remote_note(hak_remote_begin(sending), slab);
    hak_remote_mark(&marks);
    return slab;
}

static bool is_complete(hak_slab_t *slab) {
    return hak_remote_waiting(hak_pagemap_superslab(slab->base), slab->unit) == 1 &&
           others->sending == NULL && hak_remote_unnoted == 0 && hak_remote_drain(slab->owner, 1) &&
           !hak_remote_is_pending(slab->owner);
}

static bool child_completes_message_with_note(void) {
    hak_slab_t *slab = cut_message(&others->sending);
    hak_tcache_after_fork(true);
    return is_complete(slab);
}

static bool child_completes_message_without_note(void) {
    hak_slab_t *slab = cut_message(NULL);
    hak_tcache_after_fork(true);
    return is_complete(slab);
}

/* Which nothing mended, as the fork was in the middle of a change. */
static bool child_completes_message_of_its_parents_fork(void) {
    hak_slab_t *slab = cut_message(&others->sending);
    hak_tcache_after_fork(false);
    hak_tcache_after_fork(true);
    return is_complete(slab);
}

static bool child_completes_messages_of_many(void) {
    static hak_tcache_t many[40];
    hak_slab_t *slab = cut_message(&others->sending);
    for (unsigned i = 0; i < UNIT_COUNT(many); i++) {
        many[i].sending = slab;
        many[i].next = hak_all_tcaches;
        hak_all_tcaches = &many[i];
    }
    hak_tcache_after_fork(true);
    return is_complete(slab) && many[0].sending == NULL;
}

/* A thread that is gone keeps an owner, at which the slab of another waited. */
static bool child_takes_slab_from_an_owner_that_is_kept(void) {
    hak_slab_t *slab = cut_message(NULL);
    hak_remote_end(NULL);
    hak_owner_t *kept = hak_owner_join(HAK_PARTITION_ANY);
    *hak_remote_number(hak_pagemap_superslab(slab->base), slab->unit) = 1;
    kept->ready = slab;
    kept->lock.is_taken = 1;
    hak_tcache_after_fork(true);
    return kept != slab->owner && is_complete(slab) && kept->ready == NULL;
}

/* Children that know a thread of this process which is gone there. */
typedef struct holder {
    pthread_t thread;
    pthread_barrier_t barrier;
} holder_t;

static void holder_begin(holder_t *holder) {
    if (unit_is_emulated() || UNIT_IS_TSAN) {
        skip();
    }
    (void)self();
    pthread_barrier_init(&holder->barrier, NULL, 2);
    assert_int_equal(pthread_create(&holder->thread, NULL, hold_tcache, &holder->barrier), 0);
    pthread_barrier_wait(&holder->barrier);
}

static void holder_end(holder_t *holder) {
    pthread_barrier_wait(&holder->barrier);
    pthread_join(holder->thread, NULL);
}

static void expect_of_child(bool (*is_right)(void)) {
    int status = -1;
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        _exit(is_right() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

UNIT_TEST(child_of_a_fork_completes_messages_of_threads_that_are_gone) {
    holder_t holder;
    holder_begin(&holder);
    expect_of_child(child_completes_message_without_note);
    expect_of_child(child_completes_message_with_note);
    expect_of_child(child_completes_messages_of_many);
    expect_of_child(child_completes_message_of_its_parents_fork);
    expect_of_child(child_takes_slab_from_an_owner_that_is_kept);
    holder_end(&holder);
}

UNIT_TEST(child_of_a_fork_uses_the_tcaches_of_threads_that_are_gone) {
    holder_t holder;
    holder_begin(&holder);
    expect_of_child(child_uses_others);
    holder_end(&holder);
}
