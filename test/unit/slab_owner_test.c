/* SPDX-License-Identifier: MIT
 *
 * Owners: homes of threads. */
#include "unit/owner.h"

/* --- homes ------------------------------------------------------------------------------------ */

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
        hak_owner_part(more[i]);
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
    clear_counters();
    unit_refill(owner, SC_64, &held);
    unit_give_all(owner, &held);
    assert_int_equal(owner->counters[SC_64].slab_retire, 0);
    part_from(&a);
    assert_int_equal(owner->counters[SC_64].slab_retire, 1);
}

OWNER_TEST(first_of_two_users_leaves_everything) {
    hak_owner_move(b, a);
    clear_counters();
    unit_refill(a, SC_64, &held);
    hak_owner_part(a);
    assert_non_null(a->current[SC_64]);
    b = NULL;
    unit_give_all(a, &held);
}

/* --- threads: homes that come and go while strangers free ------------------------------------- */

enum { THREADS = 4, ROUNDS = 300 };

static void *mailbox[THREADS][16]; /* [atomic] blocks for thread i to free */

static void free_anywhere(hak_owner_t *home, void *block) {
    hak_owner_t *owner = hak_owner_try_lock(home) ? home : NULL;
    if (owner != NULL &&
        (hak_pagemap_get(hak_pagemap_base(), block) & ~0xffu) == owner->first_entry) {
        unit_give(owner, block);
    } else {
        unit_push(&block, 1);
    }
    if (owner != NULL) {
        hak_owner_unlock(owner);
    }
}

static hak_owner_t *refill_and_free(hak_owner_t *home, unsigned sc, uint64_t *seed) {
    hak_owner_t *owner = hak_owner_lock(home);
    hak_blocks_t blocks = hak_slab_refill(owner, sc, UINT32_MAX);
    hak_owner_unlock(owner);
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
    hak_owner_t *home = hak_owner_join(HAK_PARTITION_ANY);
    for (unsigned round = 0; round < ROUNDS; round++) {
        home = refill_and_free(home, round % 2 == 0 ? SC_64 : SC_1024, &seed);
        if (round % 8 == 7) {
            hak_owner_tend(1);
            hak_owner_part(home);
            home = hak_owner_join(HAK_PARTITION_ANY);
        }
    }
    hak_owner_part(home);
    return NULL;
}

OWNER_TEST(threads_coming_and_going_lose_no_block) {
    pthread_t threads[THREADS];
    part_from(&a);
    part_from(&b);
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, (void *)i), 0);
    }
    unit_pthread_join_all(threads, THREADS);
    for (unsigned i = 0; i < THREADS * 16; i++) {
        if (mailbox[i / 16][i % 16] != NULL) {
            unit_push(&mailbox[i / 16][i % 16], 1);
        }
    }
    hak_owner_collect();
    hak_owner_collect(); /* what the first round forwarded */
    assert_int_equal(unit_span_check().in_use_bytes, 0);
}

UNIT_GROUP(unit_slab_begin)
