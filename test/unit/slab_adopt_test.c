/* SPDX-License-Identifier: MIT
 *
 * What threads do for owners that are not their homes: adopt, maintain, collect. */
#include "unit/owner.h"

OWNER_TEST(owner_with_users_keeps_its_slabs) {
    unit_refill(a, SC_64, &held);
    assert_null(hak_slab_adopt(b, SC_64, HAK_ADOPT_SPARE));
    unit_give_all(a, &held);
}

OWNER_TEST(refill_adopts_a_slab_before_a_new_one) {
    hak_owner_t *left = a;
    clear_counters();
    unsigned count = unit_refill(a, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    part_from(&a);
    unit_refill(b, SC_1024, &held); /* another class: nothing to adopt */
    assert_ptr_equal(slab->owner, left);
    assert_int_equal(unit_refill(b, SC_64, &held), count);
    assert_int_equal(b->counters[SC_64].slab_create, 0);
    assert_int_equal(b->counters[SC_1024].slab_create, 1);
    assert_ptr_equal(slab->owner, b);
    assert_ptr_equal(b->current[SC_64], slab);
    assert_true(hak_list_is_empty(&left->partial[SC_64]));
    assert_int_equal(left->slab_count[SC_64], 0);
    assert_int_equal(b->slab_count[SC_64], 1);
    unit_give_all(b, &held);
    hak_slab_release_current(b);
    assert_int_equal(b->slab_count[SC_64] + b->slab_count[SC_1024], 0);
}

OWNER_TEST(marked_blocks_are_adopted_with_their_slab) {
    enum { FREED = 40 };
    unit_take(a, SC_64, &held, 100);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    for (unsigned i = 0; i < FREED; i++) { /* every second, from the end */
        uint32_t index = hak_slab_index(slab, held.block[99 - 2 * i]);
        assert_true(hak_slab_mark_one(slab, index));
        hak_slab_count_free(a, slab, 1, held.block[99 - 2 * i]);
    }
    part_from(&a);
    hak_blocks_t blocks = unit_blocks(b, SC_64, UINT32_MAX);
    assert_int_equal(blocks.count, FREED);
    const void *last = NULL;
    for (const void *block = blocks.head; block != NULL; block = hak_link_get(block)) {
        assert_ptr_equal(hak_slab_of(block), slab);
        assert_true(block > last); /* once each, in address order */
        last = block;
    }
}

OWNER_TEST(adopt_drains_full_slabs_others_freed_into) {
    hak_owner_t *left = a;
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(a, SC_1024, &held, capacity);
    part_from(&a);
    assert_null(hak_slab_adopt(b, SC_1024, HAK_ADOPT_SPARE)); /* it is full */
    unit_push(held.block, 3);
    hak_slab_t *slab = hak_slab_adopt(b, SC_1024, HAK_ADOPT_SPARE);
    assert_ptr_equal(slab, hak_slab_of(held.block[0]));
    assert_int_equal(slab->free_count, 3);
    assert_ptr_equal(slab->owner, b);
    unit_push(held.block + 3, capacity - 3); /* goes to the new owner now */
    assert_false(hak_remote_is_pending(left));
    slab->state = HAK_SLAB_FULL; /* as its adopter would, were it not current */
    assert_int_equal(b->slab_count[SC_1024], 1);
    assert_true(hak_remote_drain(b, UINT32_MAX));
    assert_int_equal(b->slab_count[SC_1024], 0);
}

/* Nobody is at home there any more: its current slabs are for others at the next tick. */
OWNER_TEST(tend_settles_what_a_move_left) {
    unit_refill(a, SC_64, &held);
    hak_owner_move(a, b);
    assert_non_null(a->current[SC_64]);
    unit_give_all(a, &held);
    assert_int_equal(a->slab_count[SC_64], 1);
    hak_owner_maintain(owner_count());
    assert_null(a->current[SC_64]);
    assert_int_equal(a->slab_count[SC_64], 0);
    hak_owner_move(b, a);
}

/* Threads that moved away and left it more than it needs: before memory is asked for. */
OWNER_TEST(refill_adopts_from_an_owner_with_users_and_many_partial_slabs) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(a, SC_1024, &held,
              HAK_SLAB_ADOPT_LEAST * capacity + 1); /* full but for the current one */
    hak_slab_t *first = hak_slab_of(held.block[0]);
    for (unsigned i = 0; i + 1 < HAK_SLAB_ADOPT_LEAST; i++) {
        unit_give(a, held.block[i * capacity]);
    }
    assert_int_equal(a->partial_count[SC_1024], HAK_SLAB_ADOPT_LEAST - 1);
    assert_null(hak_slab_adopt(b, SC_1024, HAK_ADOPT_SPARE)); /* these it keeps */
    unit_give(a, held.block[(HAK_SLAB_ADOPT_LEAST - 1) * capacity]);
    clear_counters();
    hak_blocks_t blocks = unit_blocks(b, SC_1024, 1);
    assert_ptr_equal(hak_slab_of(blocks.head)->owner, b);
    assert_int_equal(b->counters[SC_1024].slab_create, 0);
    assert_int_equal(a->partial_count[SC_1024], HAK_SLAB_ADOPT_LEAST - 1);
    assert_ptr_equal(blocks.head,
                     held.block[(HAK_SLAB_ADOPT_LEAST - 1) * capacity]); /* the newest */
    assert_ptr_equal(first->owner, a);
    for (unsigned i = 0; i < held.count; i++) { /* what was given and not taken again is free */
        if (i % capacity != 0 || i / capacity >= HAK_SLAB_ADOPT_LEAST ||
            held.block[i] == blocks.head) {
            unit_give(hak_slab_of(held.block[i])->owner, held.block[i]);
        }
    }
}

/* Else what it moves would be moved for ever. */
OWNER_TEST(packed_block_comes_from_another_owner_rather_than_from_a_slab_to_be_emptied) {
    static unit_blocks_t theirs;
    uint32_t capacity = hak_sc_info[SC_1024].blocks;
    unit_take(a, SC_1024, &theirs, capacity + 1); /* a full slab, and the current one */
    unit_take(b, SC_1024, &held, capacity + 1);
    hak_slab_t *fuller = hak_slab_of(theirs.block[0]);
    unit_give(a, theirs.block[0]);
    for (uint32_t i = 1; i < capacity; i++) {
        unit_give(b, held.block[i]);
    }
    hak_blocks_t blocks = hak_slab_take_packed(b, SC_1024, 8u << 16); /* half full */
    assert_int_equal(blocks.count, 1);
    assert_ptr_equal(blocks.head, theirs.block[0]);
    assert_ptr_equal(fuller->owner, b);
    unit_give_rest(&theirs);
    unit_give_rest(&held);
}

OWNER_TEST(packed_block_is_of_the_fullest_slab_though_one_was_adopted) {
    static unit_blocks_t theirs;
    uint32_t capacity = hak_sc_info[SC_1024].blocks;
    unit_take(a, SC_1024, &theirs, capacity + 1);
    unit_take(b, SC_1024, &held, capacity + 1);
    hak_slab_t *emptier = hak_slab_of(theirs.block[0]), *own = hak_slab_of(held.block[0]);
    for (uint32_t i = 0; i < capacity * 7 / 8; i++) {
        unit_give(a, theirs.block[i]);
    }
    for (uint32_t i = 0; i < capacity * 5 / 8; i++) {
        unit_give(b, held.block[i]);
    }
    hak_blocks_t blocks = hak_slab_take_packed(b, SC_1024, 8u << 16);
    assert_ptr_equal(hak_slab_of(blocks.head), own);
    assert_ptr_equal(emptier->owner, b);
    unit_give_rest(&theirs);
    unit_give_rest(&held);
}

OWNER_TEST(adopt_any_takes_from_owners_with_users) {
    unit_refill(a, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    assert_null(hak_slab_adopt(b, SC_64, HAK_ADOPT_LAST_RESORT)); /* it is current */
    hak_slab_release_current(a);
    assert_ptr_equal(hak_slab_adopt(b, SC_64, HAK_ADOPT_LAST_RESORT), slab);
    assert_ptr_equal(slab->owner, b);
    slab->state = HAK_SLAB_FULL; /* as its adopter would, were it not current */
    unit_give_all(b, &held);
}

OWNER_TEST(child_of_a_fork_has_the_slabs_of_all) {
    unsigned count = unit_refill(a, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    unit_push(held.block, 3);
    hak_owner_after_fork(b);
    assert_int_equal(a->users, 0);
    assert_int_equal(b->users, 1);
    assert_ptr_equal(hak_slab_adopt(b, SC_64, HAK_ADOPT_SPARE), slab);
    assert_int_equal(slab->free_count, 3); /* queued anew, then drained */
    slab->state = HAK_SLAB_FULL;
    for (unsigned i = 3; i < count; i++) {
        unit_give(b, held.block[i]);
    }
    a = NULL;
}

/* Whoever sleeps: what others freed to a thread is there for all, though its home has users. */
OWNER_TEST(tend_retires_what_others_emptied) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(a, SC_1024, &held, capacity + 1); /* one more: the full one is not current */
    unit_push(held.block, capacity);
    assert_int_equal(a->slab_count[SC_1024], 2);
    hak_owner_maintain(owner_count());
    assert_int_equal(a->slab_count[SC_1024], 1);
}

OWNER_TEST(collect_empties_current_slabs_too) {
    unsigned count = unit_refill(a, SC_64, &held);
    unit_refill(b, SC_64, &held);
    unit_push(held.block, count);
    unit_push(held.block + count, held.count - count);
    hak_owner_collect();
    assert_int_equal(unit_span_check().in_use_bytes, 0);
}

UNIT_GROUP(unit_slab_begin)
