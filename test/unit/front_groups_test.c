/* SPDX-License-Identifier: MIT
 *
 * The memory of tcaches that no thread has. */
#include "front/abandoned.h"
#include "front/attach.h"
#include "os/libc.h"
#include "span/span.h"
#include "unit/front.h"
#include "unit/lock_waiter.h"

enum { CROWD_GROUPS = 8, CROWD_SOME = CROWD_GROUPS * HAK_GROUP_TCACHES, CROWD = 600 };

static hak_tcache_t *crowd[CROWD];

/* As a thread that begins. Without their addresses no search takes the tcaches for lost. */
static void crowd_begin(unsigned count) {
    self()->thread = NULL;
    uintptr_t mine = hak_tcache_offset;
    for (unsigned i = 0; i < count; i++) {
        hak_tcache_offset = 0;
        crowd[i] = hak_tcache_attach();
        assert_non_null(crowd[i]);
        crowd[i]->thread = NULL;
        hak_free(unit_malloc(64));
        hak_free(unit_malloc(4096));
        crowd[i]->counters.oom++;
    }
    hak_tcache_offset = mine;
}

static void crowd_end(unsigned from, unsigned count) {
    uintptr_t mine = hak_tcache_offset;
    for (unsigned i = from; i < count; i++) {
        if (hak_tcache_detach(crowd[i])) {
            hak_tcache_trim();
        }
    }
    hak_tcache_offset = mine;
}

typedef struct totals {
    uint64_t tcaches, oom, refills;
} crowd_totals_t;

static bool totals_add(hak_tcache_t *tcache, void *context) {
    crowd_totals_t *totals = context;
    totals->tcaches += tcache != &hak_tcache_fallback;
    totals->oom += tcache->counters.oom;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        totals->refills += hak_bin_side(tcache, sc)->counters.refill;
    }
    return true;
}

static crowd_totals_t crowd_totals(void) {
    crowd_totals_t totals = {0};
    hak_tcache_visit(totals_add, &totals);
    assert_int_equal(totals.tcaches, hak_tcache_count);
    return totals;
}

static bool is_all_zero(const void *from, size_t bytes) {
    const char *byte = from;
    size_t i = 0;
    while (i < bytes && byte[i] == 0) {
        i++;
    }
    return i == bytes;
}

/* All but the group of the newest. */
UNIT_TEST(trim_ends_groups_without_threads_and_keeps_their_counts) {
    crowd_begin(CROWD_SOME);
    crowd_end(0, CROWD_SOME);
    crowd_totals_t before = crowd_totals();
    size_t metadata = hak_meta_bytes();
    hak_tcache_trim();
    crowd_totals_t after = crowd_totals();
    assert_int_equal(before.tcaches - after.tcaches, CROWD_SOME - HAK_GROUP_TCACHES);
    assert_int_equal(after.oom, before.oom);
    assert_int_equal(after.refills, before.refills);
    assert_true(hak_meta_bytes() <= metadata - (CROWD_GROUPS - 1) * HAK_GROUP_TCACHES * 2048);
    for (hak_tcache_group_t *group = hak_spare_groups; group != NULL; group = group->next) {
        assert_true(is_all_zero(group, offsetof(hak_tcache_group_t, next)));
        assert_int_equal(group->unused, 0);
    }
    crowd_begin(CROWD_SOME);
    assert_null(hak_spare_groups);
    assert_int_equal(hak_meta_bytes(), metadata);
    assert_int_equal(crowd_totals().tcaches, before.tcaches);
    crowd_end(0, CROWD_SOME);
}

UNIT_TEST(trim_leaves_a_group_that_a_thread_is_in) {
    crowd_begin(CROWD_SOME);
    crowd_end(0, CROWD_SOME / 2);
    crowd_end(CROWD_SOME / 2 + 1, CROWD_SOME);
    uint32_t before = hak_tcache_count;
    hak_tcache_trim();
    assert_int_equal(before - hak_tcache_count, CROWD_SOME - 2 * HAK_GROUP_TCACHES);
    assert_true(crowd[CROWD_SOME / 2]->is_attached);
    crowd_end(CROWD_SOME / 2, CROWD_SOME / 2 + 1);
    hak_tcache_trim();
    assert_int_equal(before - hak_tcache_count, CROWD_SOME - HAK_GROUP_TCACHES);
}

/* Of threads that lived at once and ended, a quarter or 256 stay, without a call of trim. */
UNIT_TEST(tcaches_of_many_threads_that_ended_go_by_themselves) {
    crowd_begin(CROWD);
    assert_true(hak_tcache_count > CROWD);
    crowd_end(0, CROWD);
    assert_true(hak_tcache_count <= 256 + 2 * HAK_GROUP_TCACHES);
}

/* A thread that ended in the child of a fork had blocks, which are told as lost. */
UNIT_TEST(trim_counts_blocks_that_a_fork_lost) {
    unsigned sc = hak_sc_of(64);
    crowd_begin(CROWD_SOME);
    uint32_t cached = 0;
    for (unsigned i = 0; i < CROWD_SOME; i++) {
        cached += (uint32_t)(hak_bin_side(crowd[i], sc)->total - crowd[i]->bin[sc].slots_left);
    }
    assert_true(cached >= CROWD_SOME);
    hak_libc_left_threads = true;
    hak_tcache_after_fork(true);
    hak_tcache_trim();
    assert_true(hak_tcache_lost[sc] >= cached / CROWD_GROUPS * (CROWD_GROUPS - 1));
    assert_true(hak_tcache_count <= 1 + HAK_GROUP_TCACHES);
}

/* Others wait for no more than a section. */
UNIT_TEST(trim_takes_few_groups_in_a_section) {
    enum { MANY = 200 }; /* from 256 on they go by themselves */
    crowd_begin(MANY);
    crowd_end(0, MANY);
    uint32_t before = hak_tcache_count, generation = hak_tcache_generation;
    assert_int_equal(generation % 2, 0);
    hak_tcache_trim();
    uint32_t gone = before - hak_tcache_count, sections = (hak_tcache_generation - generation) / 2;
    assert_int_equal(hak_tcache_generation % 2, 0);
    assert_true(gone >= MANY - 2 * HAK_GROUP_TCACHES);
    assert_true(gone <= sections * HAK_TRIM_GROUPS * HAK_GROUP_TCACHES);
}

/* What the kernel does not take back is still metadata, and is used again. */
UNIT_TEST(trim_counts_memory_that_the_kernel_does_not_take) {
    crowd_begin(CROWD_SOME);
    crowd_end(0, CROWD_SOME);
    size_t metadata = hak_meta_bytes();
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, UINT64_MAX);
    hak_tcache_trim();
    hak_os_fault_clear();
    assert_non_null(hak_spare_groups);
    assert_int_equal(hak_meta_bytes(), metadata);
    for (hak_tcache_group_t *group = hak_spare_groups; group != NULL; group = group->next) {
        assert_true(is_all_zero(group, offsetof(hak_tcache_group_t, next)));
    }
    crowd_begin(CROWD_SOME);
    assert_int_equal(hak_meta_bytes(), metadata);
    crowd_end(0, CROWD_SOME);
}

/* Another thread was about to clear a group when this one forked. Until then no other trim begins.
 */
UNIT_TEST(trim_that_a_fork_cuts_ends_in_the_child) {
    crowd_begin(CROWD_SOME);
    crowd_end(0, CROWD_SOME);
    hak_tcache_trim();
    hak_tcache_group_t *group = hak_spare_groups;
    assert_non_null(group);
    hak_spare_groups = group->next;
    hak_going_groups = group;
    group->next = NULL;
    memset(group->tcache, 1, sizeof group->tcache);
    hak_meta_note_used((ptrdiff_t)group->purged_bytes);
    crowd_begin(CROWD_SOME);
    crowd_end(0, CROWD_SOME);
    hak_tcache_group_t *others = hak_spare_groups;
    uint32_t count = hak_tcache_count;
    size_t metadata = hak_meta_bytes();
    hak_tcache_trim();
    assert_true(hak_tcache_count == count && hak_spare_groups == others);
    hak_going_thread = &hak_tcache_offset; /* a hook of this one's forks: it goes on itself */
    hak_tcache_after_fork(true);
    assert_ptr_equal(hak_going_groups, group);
    hak_going_thread = NULL;
    hak_tcache_after_fork(true);
    assert_null(hak_going_groups);
    assert_ptr_equal(hak_spare_groups, group);
    assert_ptr_equal(group->next, others);
    assert_true(is_all_zero(group, offsetof(hak_tcache_group_t, next)));
    assert_int_equal(hak_meta_bytes(), metadata - group->purged_bytes);
}

static bool trim_was_inside, trim_is_handled;

static void trim_signalled(int signal) {
    (void)signal;
    trim_was_inside = trim_was_inside || !hak_lock_holds_none();
    trim_is_handled = true;
}

static void *trim_alone(void *unused) {
    hak_tcache_trim();
    return unused;
}

UNIT_TEST(trim_is_interrupted_by_no_signal) {
    struct sigaction action = {.sa_handler = trim_signalled}, before;
    pthread_t thread;
    if (UNIT_IS_TSAN) { /* which calls handlers later */
        skip();
    }
    crowd_begin(CROWD_SOME);
    crowd_end(0, CROWD_SOME);
    sigaction(SIGUSR1, &action, &before);
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    assert_int_equal(pthread_create(&thread, NULL, trim_alone, NULL), 0);
    unit_signal_waiter(HAK_LOCK_REGISTRY, thread, SIGUSR1);
    sigaction(SIGUSR1, &before, NULL);
    assert_true(trim_is_handled);
    assert_false(trim_was_inside);
}
