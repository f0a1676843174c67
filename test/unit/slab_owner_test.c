/* SPDX-License-Identifier: MIT
 *
 * Owners: homes of threads, adoption, what is done on behalf of others. */
#include "unit/owner.h"

#include <pthread.h>

static unit_blocks_t held;

enum { SC_64 = 3, SC_1024 = 19 };

static int begin(void **state) {
    (void)state;
    unit_owners_begin();
    held.count = 0;
    return 0;
}

static void clear_counters(void) {
    memset(&a->counters, 0, sizeof a->counters);
    memset(&b->counters, 0, sizeof b->counters);
}

static void push(void *const *blocks, unsigned count) {
    hak_batch_t batch = unit_batch(blocks, count);
    hak_remote_push(hak_slab_of(blocks[0]), &batch);
}

/* --- homes -------------------------------------------------------------------------------------
 */

static void threads_spread_over_owners(void **state) {
    (void)state;
    hak_owner_t *more[200];
    unsigned cpus = unit_owner_limit();
    assert_ptr_not_equal(a, b);
    for (unsigned i = 2; i < UNIT_COUNT(more); i++) {
        more[i] = hak_owner_join();
        assert_in_range(more[i]->users, 1, i / cpus + 1);
        for (unsigned k = 2; k < i && i < cpus; k++) {
            assert_ptr_not_equal(more[i], more[k]);
        }
    }
    for (unsigned i = 2; i < UNIT_COUNT(more); i++) {
        hak_owner_part(more[i]);
    }
    assert_int_equal(a->users, 1);
    assert_int_equal(b->users, 1);
}

static void owner_that_a_thread_parted_from_is_the_next_ones_home(void **state) {
    (void)state;
    hak_owner_t *before = a;
    part_from(&a);
    a = hak_owner_join();
    assert_int_equal(a->users, 1);
    assert_int_equal(before->users + (a != before), 1); /* or another one was idle, too */
}

static void last_user_leaves_no_current_slab(void **state) {
    (void)state;
    hak_owner_t *owner = a;
    clear_counters();
    unit_refill(owner, SC_64, &held);
    unit_give_all(owner, &held);
    assert_int_equal(owner->counters.slab_retire, 0);
    part_from(&a);
    assert_int_equal(owner->counters.slab_retire, 1);
}

static void first_of_two_users_leaves_everything(void **state) {
    (void)state;
    hak_owner_move(b, a);
    clear_counters();
    unit_refill(a, SC_64, &held);
    hak_owner_part(a);
    assert_non_null(a->current[SC_64]);
    b = NULL;
    unit_give_all(a, &held);
}

/* --- on behalf of others -----------------------------------------------------------------------
 */

static void owner_with_users_keeps_its_slabs(void **state) {
    (void)state;
    unit_refill(a, SC_64, &held);
    assert_null(hak_slab_adopt(b, SC_64));
    unit_give_all(a, &held);
}

static void refill_adopts_a_slab_before_a_new_one(void **state) {
    (void)state;
    hak_owner_t *left = a;
    clear_counters();
    unsigned count = unit_refill(a, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    part_from(&a);
    unit_refill(b, SC_1024, &held); /* another class: nothing to adopt */
    assert_int_equal(b->counters.refill_adopt, 0);
    assert_int_equal(unit_refill(b, SC_64, &held), count);
    assert_int_equal(b->counters.refill_adopt, 1);
    assert_int_equal(b->counters.slab_create, 1); /* that of class 1024 */
    assert_ptr_equal(slab->owner, b);
    assert_ptr_equal(b->current[SC_64], slab);
    assert_true(hak_list_is_empty(&left->partial[SC_64]));
    unit_give_all(b, &held);
    hak_slab_release_current(b);
    assert_int_equal(b->counters.slab_retire, 2);
}

static void marked_blocks_are_adopted_with_their_slab(void **state) {
    (void)state;
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
    for (unsigned i = 0; i < held.count; i++) {
        unit_give(b, held.block[i]);
    }
}

static void adopt_drains_full_slabs_others_freed_into(void **state) {
    (void)state;
    hak_owner_t *left = a;
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(a, SC_1024, &held, capacity);
    clear_counters();
    part_from(&a);
    assert_null(hak_slab_adopt(b, SC_1024)); /* it is full */
    push(held.block, 3);
    hak_slab_t *slab = hak_slab_adopt(b, SC_1024);
    assert_ptr_equal(slab, hak_slab_of(held.block[0]));
    assert_int_equal(slab->free_count, 3);
    assert_ptr_equal(slab->owner, b);
    push(held.block + 3, capacity - 3); /* goes to the new owner now */
    assert_false(hak_remote_is_pending(left));
    slab->state = HAK_SLAB_FULL; /* as its adopter would, were it not current */
    assert_true(hak_remote_drain(b, UINT32_MAX));
    assert_int_equal(b->counters.slab_retire, 1);
}

/* Nobody is at home there any more: its current slabs are for others at the next tick. */
static void tend_settles_what_a_move_left(void **state) {
    (void)state;
    unit_refill(a, SC_64, &held);
    clear_counters();
    hak_owner_move(a, b);
    assert_non_null(a->current[SC_64]);
    unit_give_all(a, &held);
    hak_owner_tend(owner_count());
    assert_null(a->current[SC_64]);
    assert_int_equal(a->counters.slab_retire, 1);
    hak_owner_move(b, a);
}

static void adopt_any_takes_from_owners_with_users(void **state) {
    (void)state;
    unit_refill(a, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    assert_null(hak_slab_adopt_any(b, SC_64)); /* it is current */
    hak_slab_release_current(a);
    assert_ptr_equal(hak_slab_adopt_any(b, SC_64), slab);
    assert_ptr_equal(slab->owner, b);
    slab->state = HAK_SLAB_FULL; /* as its adopter would, were it not current */
    unit_give_all(b, &held);
}

static void child_of_a_fork_has_the_slabs_of_all(void **state) {
    (void)state;
    unsigned count = unit_refill(a, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    push(held.block, 3);
    hak_owner_after_fork(b, true);
    assert_int_equal(a->users, 0);
    assert_int_equal(b->users, 1);
    assert_ptr_equal(hak_slab_adopt(b, SC_64), slab);
    assert_int_equal(slab->free_count, 3); /* queued anew, then drained */
    slab->state = HAK_SLAB_FULL;
    for (unsigned i = 3; i < count; i++) {
        unit_give(b, held.block[i]);
    }
    a = NULL;
}

/* Whoever sleeps: what others freed to a thread is there for all, though its home has users. */
static void tend_retires_what_others_emptied(void **state) {
    (void)state;
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(a, SC_1024, &held, capacity + 1); /* one more: the full one is not current */
    clear_counters();
    push(held.block, capacity);
    hak_owner_tend(owner_count());
    assert_int_equal(a->counters.slab_retire, 1);
    while (held.count > capacity) {
        unit_give(a, held.block[--held.count]);
    }
}

static void collect_empties_current_slabs_too(void **state) {
    (void)state;
    unsigned count = unit_refill(a, SC_64, &held);
    unit_refill(b, SC_64, &held);
    push(held.block, count);
    push(held.block + count, held.count - count);
    hak_owner_collect();
    assert_int_equal(unit_span_check().in_use_bytes, 0);
}

/* --- threads: homes that come and go while strangers free ---------------------------------------
 */

enum { THREADS = 4, ROUNDS = 300 };

static void *mailbox[THREADS][16]; /* [atomic] blocks for thread i to free */

static void free_anywhere(hak_owner_t *home, void *block) {
    hak_owner_t *owner = hak_owner_try(home) ? home : NULL;
    if (owner != NULL && (hak_pagemap_get(hak_pagemap_base(), block) & ~0xffu) == owner->tag) {
        unit_give(owner, block);
    } else {
        push(&block, 1);
    }
    if (owner != NULL) {
        hak_owner_leave(owner);
    }
}

static hak_owner_t *refill_and_free(hak_owner_t *home, unsigned sc, uint64_t *seed) {
    hak_owner_t *owner = hak_owner_enter(home);
    hak_blocks_t blocks = hak_slab_refill(owner, sc, UINT32_MAX);
    hak_owner_leave(owner);
    if (blocks.stride != 0) {
        hak_slab_link(&blocks);
    }
    for (void *block = blocks.head, *next; block != NULL; block = next) {
        next = hak_link_get(block);
        uint64_t random = hak_rng_next(seed);
        void **box = &mailbox[random % THREADS][random / THREADS % 16];
        void *old = __atomic_exchange_n(box, block, __ATOMIC_ACQ_REL);
        if (old != NULL) {
            free_anywhere(owner, old);
        }
    }
    if (owner != home) {
        hak_owner_move(home, owner);
    }
    return owner;
}

static void *come_and_go(void *context) {
    uint64_t seed = (uintptr_t)context + 1;
    hak_owner_t *home = hak_owner_join();
    for (unsigned round = 0; round < ROUNDS; round++) {
        home = refill_and_free(home, round % 2 == 0 ? SC_64 : SC_1024, &seed);
        if (round % 8 == 7) {
            hak_owner_tend(1);
            hak_owner_part(home);
            home = hak_owner_join();
        }
    }
    hak_owner_part(home);
    return NULL;
}

static void threads_coming_and_going_lose_no_block(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    part_from(&a);
    part_from(&b);
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, (void *)i), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < THREADS * 16; i++) {
        if (mailbox[i / 16][i % 16] != NULL) {
            push(&mailbox[i / 16][i % 16], 1);
        }
    }
    hak_owner_collect();
    hak_owner_collect(); /* what the first round forwarded */
    assert_int_equal(unit_span_check().in_use_bytes, 0);
}

#define OWNER_TEST(test) cmocka_unit_test_setup_teardown(test, begin, unit_owners_end)

static const struct CMUnitTest tests[] = {
    OWNER_TEST(threads_spread_over_owners),
    OWNER_TEST(owner_that_a_thread_parted_from_is_the_next_ones_home),
    OWNER_TEST(last_user_leaves_no_current_slab),
    OWNER_TEST(first_of_two_users_leaves_everything),
    OWNER_TEST(owner_with_users_keeps_its_slabs),
    OWNER_TEST(refill_adopts_a_slab_before_a_new_one),
    OWNER_TEST(marked_blocks_are_adopted_with_their_slab),
    OWNER_TEST(adopt_drains_full_slabs_others_freed_into),
    OWNER_TEST(tend_retires_what_others_emptied),
    OWNER_TEST(tend_settles_what_a_move_left),
    OWNER_TEST(adopt_any_takes_from_owners_with_users),
    OWNER_TEST(child_of_a_fork_has_the_slabs_of_all),
    OWNER_TEST(collect_empties_current_slabs_too),
    OWNER_TEST(threads_coming_and_going_lose_no_block),
};

int main(void) {
    return cmocka_run_group_tests(tests, unit_slab_begin, NULL) == 0 ? 0 : 1;
}
