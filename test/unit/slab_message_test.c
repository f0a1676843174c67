/* SPDX-License-Identifier: MIT
 *
 * The two halves of a message of remote frees, marks and number: what comes between them, what
 * they are stored in, and what a fork leaves of them. */
#include "unit/fatal.h"
#include "unit/slab.h"

static hak_owner_t message_a;
static unit_blocks_t message_held;

static int message_begin(void **state) {
    (void)state;
    unit_owner_begin(&message_a, 1);
    message_held.count = 0;
    return 0;
}

static int message_end(void **state) {
    (void)state;
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    return 0;
}

#define MESSAGE_TEST(name) UNIT_TEST_WITH(name, message_begin, message_end)

/* Every word of every line. */
MESSAGE_TEST(every_block_of_every_class_arrives) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        unit_owner_begin(&message_a, 1);
        unsigned capacity = hak_sc_info[sc].blocks;
        unit_take(&message_a, sc, &message_held, capacity);
        hak_slab_t *slab = hak_slab_of(message_held.block[0]);
        for (unsigned i = 0; i < capacity; i++) {
            unsigned at = (unsigned)((uint64_t)i * 20011 % capacity); /* without neighbours */
            hak_superslab_t *superslab = hak_pagemap_superslab(message_held.block[at]);
            assert_false(hak_remote_is_marked(superslab, slab->unit, at));
            unit_push(message_held.block + at, 1);
            assert_true(hak_remote_is_marked(superslab, slab->unit, at));
        }
        assert_int_equal(unit_waiting(slab), capacity);
        hak_remote_drain(&message_a, 1);
        assert_int_equal(slab->free_count, capacity); /* it is current */
        assert_int_equal(unit_marked(slab), capacity);
        for (unsigned i = capacity; i < message_held.count; i++) {
            unit_give(&message_a, message_held.block[i]);
        }
        message_held.count = 0;
        unit_owner_end(&message_a);
    }
}

/* RF-10: of a thread that has not told their number yet. The blocks are there, but keep the slab.
 */
MESSAGE_TEST(marks_whose_number_comes_later_do_not_count) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&message_a, SC_1024, &message_held,
              capacity + 1); /* one more: the full one is not current */
    hak_slab_t *slab = hak_slab_of(message_held.block[0]);
    for (unsigned i = 2; i < capacity; i++) {
        unit_push(message_held.block + i, 1);
    }
    hak_marks_t early = unit_marks(message_held.block[0]);
    hak_link_set(message_held.block[0], NULL);
    hak_remote_mark(&early);
    hak_remote_drain(&message_a, 1);
    assert_int_equal(unit_marked(slab), capacity - 1);
    assert_int_equal(slab->free_count, capacity - 2);
    unit_push(message_held.block + 1, 1);
    hak_remote_drain(&message_a, 1);
    assert_int_equal(slab->state, HAK_SLAB_PARTIAL);
    assert_int_equal(message_a.counters[SC_1024].slab_retire, 0);
    hak_remote_tell(&early, 1);
    hak_remote_drain(&message_a, 1);
    assert_int_equal(message_a.counters[SC_1024].slab_retire, 1);
    while (message_held.count > capacity) {
        unit_give(&message_a, message_held.block[--message_held.count]);
    }
    unit_owner_end(&message_a);
}

MESSAGE_TEST(second_mark_of_a_block_is_a_double_free) {
    unsigned count = unit_refill(&message_a, SC_64, &message_held);
    unit_push(message_held.block, 3);
    hak_marks_t marks = unit_marks(message_held.block[2]);
    UNIT_EXPECT_FATAL(hak_remote_send(&marks), "double free");
    assert_int_equal(unit_waiting(hak_slab_of(message_held.block[0])), 3);
    hak_remote_drain(&message_a, 1);
    for (unsigned i = 3; i < count; i++) {
        unit_give(&message_a, message_held.block[i]);
    }
    unit_owner_end(&message_a);
}

/* Planes are counted as metadata from their first use on, and each once. */
MESSAGE_TEST(metadata_of_remote_frees_is_counted_when_it_is_used) {
    unit_take(&message_a, SC_16, &message_held, hak_sc_info[SC_16].blocks);
    hak_superslab_t *superslab = hak_pagemap_superslab(message_held.block[0]);
    uint32_t used = superslab->planes_used;
    size_t before = hak_meta_bytes();
    for (unsigned i = 0; i < hak_sc_info[SC_16].blocks; i += 64) {
        unit_push(message_held.block + i, 64);
    }
    uint32_t fresh = superslab->planes_used & ~used;
    assert_int_equal(superslab->planes_used, (1u << HAK_SUPERSLAB_PLANES) - 1);
    assert_int_equal(hak_meta_bytes() - before, hak_popcount(fresh) * sizeof(hak_plane_t));
    assert_int_equal(sizeof(hak_plane_t), 4096);
    hak_remote_drain(&message_a, 1);
    for (unsigned i = hak_sc_info[SC_16].blocks; i < message_held.count; i++) {
        unit_give(&message_a, message_held.block[i]);
    }
    unit_owner_end(&message_a);
}

/* A forked child: the thread that made the slab pending is gone before it queued the slab, and
 * queues of threads that are gone are lost. */
MESSAGE_TEST(slab_missing_from_every_queue_is_queued_again) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&message_a, SC_1024, &message_held, 3 * capacity);
    for (unsigned i = 0; i < 3; i++) {
        unit_push(message_held.block + i * capacity, 5);
    }
    message_a.queue = NULL;
    hak_remote_recount_all();
    assert_true(hak_remote_is_pending(&message_a));
    hak_remote_drain(&message_a, 3);
    assert_false(hak_remote_is_pending(&message_a));
    for (unsigned i = 0; i < message_held.count; i++) {
        if (i % capacity >= 5) {
            unit_give(&message_a, message_held.block[i]);
        }
    }
    unit_owner_end(&message_a);
}

/* The same before it told the number, received or not. */
MESSAGE_TEST(marks_without_a_number_are_counted_in_the_child_of_a_fork) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&message_a, SC_1024, &message_held, 2 * capacity);
    hak_marks_t first = unit_marks(message_held.block[0]),
                second = unit_marks(message_held.block[1]);
    hak_marks_t third = unit_marks(message_held.block[capacity]);
    hak_remote_mark(&first);
    unit_push(message_held.block + 2, 4);
    hak_remote_drain(&message_a, 1);
    hak_remote_mark(&second);
    hak_remote_mark(&third);
    hak_slab_t *slab = hak_slab_of(message_held.block[0]);
    assert_int_equal(unit_waiting(slab), 0);
    assert_int_equal(slab->free_count, 4);
    message_a.queue = NULL;
    hak_remote_recount_all();
    assert_int_equal(unit_waiting(slab), 2);
    assert_int_equal(unit_waiting(hak_slab_of(message_held.block[capacity])), 1);
    hak_remote_drain(&message_a, 2);
    assert_false(hak_remote_is_pending(&message_a));
    assert_int_equal(slab->free_count, 6);
    for (unsigned i = 6; i < message_held.count; i++) {
        if (i != capacity) {
            unit_give(&message_a, message_held.block[i]);
        }
    }
    unit_owner_end(&message_a);
}

/* The home flushed it before. */
MESSAGE_TEST(message_of_a_block_that_is_free_is_a_double_free) {
    unsigned count = unit_refill(&message_a, SC_64, &message_held);
    hak_slab_t *slab = hak_slab_of(message_held.block[0]);
    assert_true(hak_slab_mark_one(slab, hak_slab_index(slab, message_held.block[7])));
    hak_slab_count_free(&message_a, slab, 1, message_held.block[7]);
    unit_push(message_held.block + 7, 1);
    UNIT_EXPECT_FATAL(hak_remote_drain(&message_a, UINT32_MAX), "double free");
    for (unsigned i = 0; i < count; i++) {
        if (i != 7) {
            unit_give(&message_a, message_held.block[i]);
        }
    }
    unit_owner_end(&message_a);
}

UNIT_GROUP(unit_slab_begin)
