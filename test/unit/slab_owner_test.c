/* SPDX-License-Identifier: MIT
 *
 * Owners: homes of threads, which come and go in test/model/. */
#include "unit/owner.h"

OWNER_TEST(threads_spread_over_owners) {
    hak_owner_t *more[200];
    unsigned cpus = unit_owner_limit();
    assert_ptr_not_equal(a, b);
    for (unsigned i = 2; i < UNIT_COUNT(more); i++) {
        more[i] = hak_owner_join(HAK_PARTITION_ANY);
        assert_in_range(more[i]->users, 1, i / cpus + 1);
        for (unsigned k = 2; k < i && i < cpus; k++) {
            assert_ptr_not_equal(more[i], more[k]);
        }
    }
    for (unsigned i = 2; i < UNIT_COUNT(more); i++) {
        hak_owner_quit(more[i]);
    }
    assert_int_equal(a->users, 1);
    assert_int_equal(b->users, 1);
}

OWNER_TEST(owner_that_a_thread_parted_from_is_the_next_ones_home) {
    hak_owner_t *before = a;
    part_from(&a);
    a = hak_owner_join(HAK_PARTITION_ANY);
    assert_int_equal(a->users, 1);
    assert_int_equal(before->users + (a != before), 1); /* or another one was idle, too */
}

OWNER_TEST(last_user_leaves_no_current_slab) {
    hak_owner_t *owner = a;
    unit_refill(owner, SC_64, &held);
    unit_give_all(owner, &held);
    assert_int_equal(owner->slab_count[SC_64], 1);
    part_from(&a);
    assert_int_equal(owner->slab_count[SC_64], 0);
}

OWNER_TEST(first_of_two_users_leaves_everything) {
    hak_owner_move(b, a);
    clear_counters();
    unit_refill(a, SC_64, &held);
    hak_owner_quit(a);
    assert_non_null(a->current[SC_64]);
    b = NULL;
    unit_give_all(a, &held);
}

UNIT_GROUP(unit_slab_begin)
