/* SPDX-License-Identifier: MIT
 *
 * The two halves of a message of remote frees, marks and number: what comes between them, what
 * they are stored in, and what a fork leaves of them. */
#include "unit/fatal.h"
#include "unit/one_owner.h"

/* Every word of every line. */
ONE_OWNER_TEST(every_block_of_every_class_arrives) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        unit_owner_begin(&owner, 1);
        unsigned capacity = hak_sc_info[sc].blocks;
        unit_take(&owner, sc, &held, capacity);
        hak_slab_t *slab = hak_slab_of(held.block[0]);
        for (unsigned i = 0; i < capacity; i++) {
            unsigned at = (unsigned)((uint64_t)i * 20011 % capacity); /* without neighbours */
            hak_superslab_t *superslab = hak_pagemap_superslab(held.block[at]);
            assert_false(hak_remote_is_marked(superslab, slab->unit, at));
            unit_push(held.block + at, 1);
            assert_true(hak_remote_is_marked(superslab, slab->unit, at));
        }
        assert_int_equal(unit_waiting(slab), capacity);
        hak_remote_drain(&owner, 1);
        assert_int_equal(slab->free_count, capacity); /* it is current */
        assert_int_equal(unit_marked(slab), capacity);
        for (unsigned i = capacity; i < held.count; i++) {
            unit_give(&owner, held.block[i]);
        }
        held.count = 0;
        unit_owner_end(&owner);
    }
}

/* RF-10: of a thread that has not told their number yet. The blocks are there, but keep the slab.
 */
ONE_OWNER_TEST(marks_whose_number_comes_later_do_not_count) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, capacity + 1); /* one more: the full one is not current */
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    for (unsigned i = 2; i < capacity; i++) {
        unit_push(held.block + i, 1);
    }
    hak_marks_t early = unit_marks(held.block[0]);
    hak_link_set(held.block[0], NULL);
    hak_remote_mark(&early);
    hak_remote_drain(&owner, 1);
    assert_int_equal(unit_marked(slab), capacity - 1);
    assert_int_equal(slab->free_count, capacity - 2);
    unit_push(held.block + 1, 1);
    hak_remote_drain(&owner, 1);
    assert_int_equal(slab->state, HAK_SLAB_PARTIAL);
    assert_int_equal(owner.slab_count[SC_1024], 2);
    hak_remote_tell(&early, 1);
    hak_remote_drain(&owner, 1);
    assert_int_equal(owner.slab_count[SC_1024], 1); /* it retired */
}

ONE_OWNER_TEST(second_mark_of_a_block_is_a_double_free) {
    unit_refill(&owner, SC_64, &held);
    unit_push(held.block, 3);
    hak_marks_t marks = unit_marks(held.block[2]);
    UNIT_EXPECT_FATAL(hak_remote_send(&marks, NULL), "double free");
    assert_int_equal(unit_waiting(hak_slab_of(held.block[0])), 3);
    hak_remote_drain(&owner, 1);
}

/* Planes are counted as metadata from their first use on, and each once. */
ONE_OWNER_TEST(metadata_of_remote_frees_is_counted_when_it_is_used) {
    unit_take(&owner, SC_16, &held, hak_sc_info[SC_16].blocks);
    hak_superslab_t *superslab = hak_pagemap_superslab(held.block[0]);
    uint32_t used = superslab->planes_used;
    size_t before = hak_meta_bytes();
    for (unsigned i = 0; i < hak_sc_info[SC_16].blocks; i += 64) {
        unit_push(held.block + i, 64);
    }
    uint32_t fresh = superslab->planes_used & ~used;
    assert_int_equal(superslab->planes_used, (1u << HAK_SUPERSLAB_PLANES) - 1);
    assert_int_equal(hak_meta_bytes() - before, hak_popcount(fresh) * sizeof(hak_plane_t));
    assert_int_equal(sizeof(hak_plane_t), 4096);
    hak_remote_drain(&owner, 1);
}

/* A forked child: the thread that made the slab pending is gone before it queued the slab. With a
 * note or without one. */
ONE_OWNER_TEST(slab_missing_from_every_queue_is_queued_again) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, 3 * capacity);
    for (unsigned i = 0; i < 3; i++) {
        unit_push(held.block + i * capacity, 5);
    }
    hak_slab_t *last = hak_slab_of(held.block[2 * capacity]);
    assert_ptr_equal(owner.queue, last);
    owner.queue = last->queue_next;
    hak_remote_mend(last);
    assert_ptr_equal(owner.queue, last);
    owner.queue = NULL;
    hak_remote_mend(NULL);
    hak_remote_drain(&owner, 3);
    assert_false(hak_remote_is_pending(&owner));
    assert_int_equal(last->free_count, 5);
}

/* Its thread told the number and queued it, but did not come to say so. */
ONE_OWNER_TEST(slab_that_waits_in_a_queue_is_not_queued_twice) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, 2 * capacity);
    unit_push(held.block, 5);
    unit_push(held.block + capacity, 5);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    hak_remote_mend(slab);
    hak_remote_drain(&owner, 1); /* now it is in `ready` */
    assert_true(hak_remote_is_pending(&owner));
    hak_remote_mend(slab);
    hak_remote_drain(&owner, 1);
    assert_false(hak_remote_is_pending(&owner));
    assert_int_equal(slab->free_count, 5);
}

/* A note may be older than the slab. */
ONE_OWNER_TEST(slab_that_retired_is_left_alone) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, capacity + 1);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    unit_push(held.block, capacity);
    hak_remote_drain(&owner, 1);
    assert_int_equal(owner.slab_count[SC_1024], 1);
    hak_remote_mend(slab);
    assert_false(hak_remote_is_pending(&owner));
}

/* The same before it told the number, received or not. */
ONE_OWNER_TEST(marks_without_a_number_are_counted_in_the_child_of_a_fork) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, 2 * capacity);
    hak_marks_t first = unit_marks(held.block[0]), second = unit_marks(held.block[1]);
    hak_marks_t third = unit_marks(held.block[capacity]);
    hak_remote_mark(&first);
    unit_push(held.block + 2, 4);
    hak_remote_drain(&owner, 1);
    hak_remote_mark(&second);
    hak_remote_mark(&third);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    assert_int_equal(unit_waiting(slab), 0);
    assert_int_equal(slab->free_count, 4);
    hak_remote_mend(slab);
    assert_int_equal(unit_waiting(slab), 2);
    hak_remote_mend(hak_slab_of(held.block[capacity]));
    assert_int_equal(unit_waiting(hak_slab_of(held.block[capacity])), 1);
    hak_remote_drain(&owner, 2);
    assert_false(hak_remote_is_pending(&owner));
    assert_int_equal(slab->free_count, 6);
}

/* In a signal handler, while its thread sends: the child of a fork needs the note of the first. */
ONE_OWNER_TEST(message_within_a_message_leaves_its_note) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&owner, SC_1024, &held, 2 * capacity);
    hak_marks_t outer = unit_marks(held.block[0]), inner = unit_marks(held.block[capacity]);
    hak_slab_t *sending = NULL, *slab = hak_slab_of(held.block[0]);
    uint32_t unnoted = hak_remote_unnoted;
    hak_slab_t **word = hak_remote_begin(&sending);
    hak_remote_note(word, slab);
    hak_remote_mark(&outer);
    hak_remote_send(&inner, &sending);
    assert_ptr_equal(sending, slab);
    assert_int_equal(hak_remote_unnoted, unnoted);
    hak_remote_tell(&outer, 1);
    hak_remote_end(word);
    assert_null(sending);
    assert_int_equal(hak_in_unlocked_update, 0);
    hak_remote_drain(&owner, 2);
}

/* The home flushed it before. */
ONE_OWNER_TEST(message_of_a_block_that_is_free_is_a_double_free) {
    unit_refill(&owner, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    assert_true(hak_slab_mark_one(slab, hak_slab_index(slab, held.block[7])));
    hak_slab_count_free(&owner, slab, 1, held.block[7]);
    unit_push(held.block + 7, 1);
    UNIT_EXPECT_FATAL(hak_remote_drain(&owner, UINT32_MAX), "double free");
}

UNIT_GROUP(unit_slab_begin)
