/* SPDX-License-Identifier: MIT
 *
 * Locks of owners: a thread whose home is kept goes elsewhere, and waits only when all are. */
#include "unit/owner.h"

#include <sys/resource.h>

OWNER_TEST(enter_takes_the_home) {
    assert_ptr_equal(hak_owner_lock(a), a);
    assert_int_equal(a->lock.is_taken, 1);
    assert_false(hak_lock_try(&a->lock));
    hak_owner_unlock(a);
    assert_int_equal(a->lock.is_taken, 0);
}

OWNER_TEST(enter_goes_elsewhere_while_the_home_is_kept) {
    hak_store_relaxed(&a->lock.is_taken, 1); /* its holder sleeps */
    hak_owner_t *other = hak_owner_lock(a);
    assert_ptr_not_equal(other, a);
    assert_int_equal(other->lock.is_taken, 1);
    hak_owner_unlock(other);
    assert_false(hak_owner_try_lock(a));
    hak_store_relaxed(&a->lock.is_taken, 0);
}

static void set_state(hak_owner_t *owner, void *context) {
    hak_store_release(&owner->lock.is_taken, *(uint32_t *)context);
}

static void set_all(uint32_t state) {
    hak_owner_visit(set_state, &state);
}

static uint32_t is_entered; /* [atomic] */

static void *free_one_soon(void *context) {
    usleep(20000);
    assert_int_equal(hak_load_relaxed(&is_entered), 0);
    hak_store_release(&b->lock.is_taken, 0); /* not the one it asked for */
    return context;
}

/* More owners come to be while all are kept at a time, but not without end. */
OWNER_TEST(enter_waits_when_every_owner_is_kept) {
    pthread_t thread;
    unsigned before = owner_count();
    unsigned cpus = unit_owner_limit();
    hak_owner_t *owner = NULL;
    set_all(1);
    for (unsigned i = 0; i < 2 * cpus - before; i++) {
        owner = hak_owner_lock(a);
        assert_int_equal(owner_count(), before + i + 1);
        hak_owner_unlock(owner);
        set_all(1);
    }
    assert_int_equal(pthread_create(&thread, NULL, free_one_soon, NULL), 0);
    owner = hak_owner_lock(a);
    hak_store_relaxed(&is_entered, 1);
    assert_ptr_equal(owner, b);
    hak_owner_unlock(owner);
    pthread_join(thread, NULL);
    assert_int_equal(owner_count(), before > 2 * cpus ? before : 2 * cpus);
    set_all(0);
}

/* Twice as many owners as CPUs are kept: a thread naps then, and makes one more after 10 000 naps,
 * unless it runs on a CPU that nobody was on before. */
OWNER_TEST(enter_on_a_cpu_nobody_was_on_makes_an_owner_without_a_nap) {
    struct rusage before, after;
    hak_os_fault_run_on(3999);
    assert_true(hak_os_cpu_count() >= 2); /* fewer have as many owners as two */
    set_all(1);
    while (owner_count() < 2 * unit_owner_limit()) {
        hak_owner_unlock(hak_owner_lock(a));
        set_all(1);
    }
    unsigned owners = owner_count();
    hak_os_fault_run_on(4000);
    assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
    hak_owner_t *owner = hak_owner_lock(a);
    assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
    assert_int_equal(owner_count(), owners + 1);
    assert_int_equal(owner->lock.is_taken, 1);
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 0, 1000);
    set_all(0);
}

UNIT_GROUP(unit_slab_begin)
