/* SPDX-License-Identifier: MIT
 *
 * Remote frees between owners that the test plays itself. Threads do it in test/model/. */
#include "unit/fatal.h"
#include "unit/one_owner.h"

ONE_OWNER_TEST(messages_of_every_length_arrive_whole) {
    unit_take(&owner, SC_64, &held, hak_sc_info[SC_64].blocks);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    unsigned pushed = 1; /* one block stays in use */
    for (unsigned length = 1; pushed + length <= held.count; length++) {
        unit_push(held.block + pushed, length);
        pushed += length;
    }
    assert_int_equal(slab->free_count, 0);
    assert_true(hak_remote_is_pending(&owner));
    assert_true(hak_remote_drain(&owner, 1));
    assert_false(hak_remote_is_pending(&owner));
    assert_int_equal(slab->free_count, pushed - 1);
    assert_int_equal(unit_marked(slab), pushed - 1);
}

ONE_OWNER_TEST(messages_drained_one_by_one_add_up) {
    unit_take(&owner, SC_64, &held, hak_sc_info[SC_64].blocks);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    for (unsigned i = 1; i <= 10; i++) {
        unit_push(held.block + i, 1);
        assert_true(hak_remote_drain(&owner, 1));
        assert_int_equal(slab->free_count, i);
        assert_int_equal(unit_marked(slab), i);
    }
}

ONE_OWNER_TEST(message_that_empties_a_full_slab_retires_it) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, capacity + 1);
    char *first = held.block[0];
    unit_push(held.block, capacity);
    hak_remote_drain(&owner, 1);
    assert_int_equal(owner.slab_count[SC_1024], 1);
    assert_int_equal(hak_pagemap_get(hak_pagemap_base(), first), 0);
}

/* SLAB-7 */
ONE_OWNER_TEST(slab_is_queued_once_until_drained) {
    unit_take(&owner, SC_64, &held, 300);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    for (unsigned i = 0; i < held.count; i++) {
        unit_push(held.block + i, 1);
    }
    assert_ptr_equal(owner.queue, slab);
    assert_null(slab->queue_next);
    hak_remote_drain(&owner, UINT32_MAX);
    assert_null(owner.queue);
    assert_null(owner.ready);
    assert_false(hak_remote_drain(&owner, UINT32_MAX));
}

/* By one load of each slab: no lock is taken. */
ONE_OWNER_TEST(blocks_that_wait_are_told_by_the_number_of_their_slab) {
    unsigned capacity = hak_sc_info[SC_64].blocks;
    unit_take(&owner, SC_64, &held, capacity);
    const hak_slab_t *slab = hak_slab_of(held.block[0]);
    assert_int_equal(unit_waiting(slab), 0);
    for (unsigned done = 0, length = 1; done < capacity; length++) {
        unsigned count = length < capacity - done ? length : capacity - done;
        unit_push(held.block + done, count);
        done += count;
        assert_int_equal(unit_waiting(slab), done);
    }
    hak_remote_drain(&owner, UINT32_MAX);
}

ONE_OWNER_TEST(drain_stops_at_its_budget) {
    enum { SLABS = 5 };
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, SLABS * capacity);
    for (unsigned i = 0; i < SLABS; i++) {
        unit_push(held.block + i * capacity, 1);
    }
    for (unsigned left = SLABS; left > 0; left--) {
        unsigned waiting = 0;
        assert_true(hak_remote_is_pending(&owner));
        assert_true(hak_remote_drain(&owner, 1));
        for (unsigned i = 0; i < SLABS; i++) {
            waiting += unit_waiting(hak_slab_of(held.block[i * capacity])) != 0;
        }
        assert_int_equal(waiting, left - 1);
    }
    assert_false(hak_remote_drain(&owner, 1));
}

ONE_OWNER_TEST(refill_finds_what_others_gave_back) {
    unsigned count = unit_refill(&owner, SC_64, &held);
    unit_push(held.block, count);
    hak_blocks_t blocks = hak_slab_refill(&owner, SC_64, UINT32_MAX);
    assert_int_equal(blocks.count, count);
    assert_int_equal(hak_slab_of(held.block[0])->carved, count); /* none is fresh */
    unit_give_all(&owner, &held);
}

/* The slab changed hands between push and drain: whoever finds it in a queue passes it on. */
ONE_OWNER_TEST(queued_slab_of_a_new_owner_is_forwarded) {
    static hak_owner_t other;
    unit_owner_begin(&other, 2);
    unsigned count = unit_refill(&owner, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    unit_push(held.block, count - 1);
    owner.current[SC_64] = NULL;
    slab->state = HAK_SLAB_FULL;
    hak_slab_change_owner(slab, &other);
    assert_int_equal(hak_pagemap_get(hak_pagemap_base(), held.block[0]),
                     hak_sc_entry(other.first_entry, SC_64));
    assert_false(hak_remote_drain(&owner, UINT32_MAX));
    assert_int_equal(slab->free_count, 0);
    assert_true(hak_remote_is_pending(&other));
    assert_true(hak_remote_drain(&other, UINT32_MAX));
    assert_int_equal(slab->free_count, count - 1);
    assert_int_equal(slab->state, HAK_SLAB_PARTIAL);
    unit_give(&other, held.block[--held.count]);
    assert_int_equal(other.slab_count[SC_64], 0);
}

/* At the end of the process: no slab retires, so no lock but the owner's is taken. */
ONE_OWNER_TEST(merge_of_marks_alone_retires_nothing) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, 2 * capacity + 1);
    unit_push(held.block + 1, capacity - 1);
    unit_push(held.block + capacity, capacity);
    hak_slab_t *slab = hak_slab_of(held.block[capacity]);
    hak_remote_merge(&owner, 0); /* its work is bounded */
    assert_int_equal(unit_marked(slab), 0);
    owner.ready = owner.queue;
    owner.queue = NULL;
    hak_remote_merge(&owner, UINT32_MAX);
    assert_int_equal(unit_marked(slab), capacity);
    assert_int_equal(slab->free_count, 0);
    assert_int_equal(unit_waiting(slab), capacity);
    assert_int_equal(owner.slab_count[SC_1024], 3);
    hak_remote_drain(&owner, UINT32_MAX);
    assert_int_equal(owner.slab_count[SC_1024], 2);
}

ONE_OWNER_TEST(merge_of_marks_alone_finds_a_double_free) {
    unit_take(&owner, SC_64, &held, 2);
    hak_marks_t marks = unit_marks(held.block[1]);
    unit_push(held.block + 1, 1);
    hak_slab_of(held.block[1])->bits[marks.word] |= marks.bits; /* the home flushed it, too */
    UNIT_EXPECT_FATAL(hak_remote_merge(&owner, UINT32_MAX), "double free");
    assert_true(hak_remote_drain(&owner, 1));
}

UNIT_GROUP(unit_slab_begin)
