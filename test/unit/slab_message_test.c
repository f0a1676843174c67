/* SPDX-License-Identifier: MIT
 *
 * The two halves of a message of remote frees, marks and number: what comes between them, what
 * they are stored in, and what a fork leaves of them. */
#include "unit/fatal.h"
#include "unit/slab.h"

static hak_owner_t a;
static unit_blocks_t held;

enum { SC_16 = 0, SC_64 = 3, SC_1024 = 19 };

static int begin(void **state) {
    (void)state;
    unit_owner_begin(&a, 1);
    held.count = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    return 0;
}

/* Every word of every line. */
static void every_block_of_every_class_arrives(void **state) {
    (void)state;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        unit_owner_begin(&a, 1);
        unsigned capacity = hak_sc_info[sc].blocks;
        unit_take(&a, sc, &held, capacity);
        hak_slab_t *slab = hak_slab_of(held.block[0]);
        for (unsigned i = 0; i < capacity; i++) {
            unsigned at = (unsigned)((uint64_t)i * 20011 % capacity); /* without neighbours */
            hak_superslab_t *superslab = hak_pagemap_superslab(held.block[at]);
            assert_false(hak_remote_is_marked(superslab, slab->unit, at));
            unit_push(held.block + at, 1);
            assert_true(hak_remote_is_marked(superslab, slab->unit, at));
        }
        assert_int_equal(unit_waiting(slab), capacity);
        hak_remote_drain(&a, 1);
        assert_int_equal(slab->free_count, capacity); /* it is current */
        assert_int_equal(unit_marked(slab), capacity);
        for (unsigned i = capacity; i < held.count; i++) {
            unit_give(&a, held.block[i]);
        }
        held.count = 0;
        unit_owner_end(&a);
    }
}

/* RF-10: of a thread that has not told their number yet. The blocks are there, but keep the slab.
 */
static void marks_whose_number_comes_later_do_not_count(void **state) {
    (void)state;
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&a, SC_1024, &held, capacity + 1); /* one more: the full one is not current */
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    for (unsigned i = 2; i < capacity; i++) {
        unit_push(held.block + i, 1);
    }
    hak_marks_t early = unit_marks(held.block[0]);
    hak_link_set(held.block[0], NULL);
    hak_remote_mark(&early);
    hak_remote_drain(&a, 1);
    assert_int_equal(unit_marked(slab), capacity - 1);
    assert_int_equal(slab->free_count, capacity - 2);
    unit_push(held.block + 1, 1);
    hak_remote_drain(&a, 1);
    assert_int_equal(slab->state, HAK_SLAB_PARTIAL);
    assert_int_equal(a.counters[SC_1024].slab_retire, 0);
    hak_remote_tell(&early, 1);
    hak_remote_drain(&a, 1);
    assert_int_equal(a.counters[SC_1024].slab_retire, 1);
    while (held.count > capacity) {
        unit_give(&a, held.block[--held.count]);
    }
    unit_owner_end(&a);
}

static void second_mark_of_a_block_is_a_double_free(void **state) {
    (void)state;
    unsigned count = unit_refill(&a, SC_64, &held);
    unit_push(held.block, 3);
    hak_marks_t marks = unit_marks(held.block[2]);
    UNIT_EXPECT_FATAL(hak_remote_send(&marks), "double free");
    assert_int_equal(unit_waiting(hak_slab_of(held.block[0])), 3);
    hak_remote_drain(&a, 1);
    for (unsigned i = 3; i < count; i++) {
        unit_give(&a, held.block[i]);
    }
    unit_owner_end(&a);
}

/* Planes are counted as metadata from their first use on, and each once. */
static void metadata_of_remote_frees_is_counted_when_it_is_used(void **state) {
    (void)state;
    unit_take(&a, SC_16, &held, hak_sc_info[SC_16].blocks);
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
    hak_remote_drain(&a, 1);
    for (unsigned i = hak_sc_info[SC_16].blocks; i < held.count; i++) {
        unit_give(&a, held.block[i]);
    }
    unit_owner_end(&a);
}

/* A forked child: the thread that made the slab pending is gone before it queued the slab, and
 * queues of threads that are gone are lost. */
static void slab_missing_from_every_queue_is_queued_again(void **state) {
    (void)state;
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&a, SC_1024, &held, 3 * capacity);
    for (unsigned i = 0; i < 3; i++) {
        unit_push(held.block + i * capacity, 5);
    }
    a.queue = NULL;
    hak_remote_recount_all();
    assert_true(hak_remote_is_pending(&a));
    hak_remote_drain(&a, 3);
    assert_false(hak_remote_is_pending(&a));
    for (unsigned i = 0; i < held.count; i++) {
        if (i % capacity >= 5) {
            unit_give(&a, held.block[i]);
        }
    }
    unit_owner_end(&a);
}

/* The same before it told the number, received or not. */
static void marks_without_a_number_are_counted_in_the_child_of_a_fork(void **state) {
    (void)state;
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&a, SC_1024, &held, 2 * capacity);
    hak_marks_t first = unit_marks(held.block[0]), second = unit_marks(held.block[1]);
    hak_marks_t third = unit_marks(held.block[capacity]);
    hak_remote_mark(&first);
    unit_push(held.block + 2, 4);
    hak_remote_drain(&a, 1);
    hak_remote_mark(&second);
    hak_remote_mark(&third);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    assert_int_equal(unit_waiting(slab), 0);
    assert_int_equal(slab->free_count, 4);
    a.queue = NULL;
    hak_remote_recount_all();
    assert_int_equal(unit_waiting(slab), 2);
    assert_int_equal(unit_waiting(hak_slab_of(held.block[capacity])), 1);
    hak_remote_drain(&a, 2);
    assert_false(hak_remote_is_pending(&a));
    assert_int_equal(slab->free_count, 6);
    for (unsigned i = 6; i < held.count; i++) {
        if (i != capacity) {
            unit_give(&a, held.block[i]);
        }
    }
    unit_owner_end(&a);
}

/* The home flushed it before. */
static void message_of_a_block_that_is_free_is_a_double_free(void **state) {
    (void)state;
    unsigned count = unit_refill(&a, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    assert_true(hak_slab_mark_one(slab, hak_slab_index(slab, held.block[7])));
    hak_slab_count_free(&a, slab, 1, held.block[7]);
    unit_push(held.block + 7, 1);
    UNIT_EXPECT_FATAL(hak_remote_drain(&a, UINT32_MAX), "double free");
    for (unsigned i = 0; i < count; i++) {
        if (i != 7) {
            unit_give(&a, held.block[i]);
        }
    }
    unit_owner_end(&a);
}

#define MESSAGE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

static const struct CMUnitTest tests[] = {
    MESSAGE_TEST(every_block_of_every_class_arrives),
    MESSAGE_TEST(marks_whose_number_comes_later_do_not_count),
    MESSAGE_TEST(second_mark_of_a_block_is_a_double_free),
    MESSAGE_TEST(metadata_of_remote_frees_is_counted_when_it_is_used),
    MESSAGE_TEST(slab_missing_from_every_queue_is_queued_again),
    MESSAGE_TEST(marks_without_a_number_are_counted_in_the_child_of_a_fork),
    MESSAGE_TEST(message_of_a_block_that_is_free_is_a_double_free),
};

int main(void) {
    return cmocka_run_group_tests(tests, unit_slab_begin, NULL) == 0 ? 0 : 1;
}
