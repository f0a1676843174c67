/* SPDX-License-Identifier: MIT */
#include "unit/slab.h"

#include <pthread.h>

static hak_owner_t a, b, c;
static unit_blocks_t held;

enum { SC_64 = 3, SC_1024 = 19 };

static int begin(void **state) {
    (void)state;
    unit_owner_begin(&a, 1);
    unit_owner_begin(&b, 2);
    unit_owner_begin(&c, 3);
    held.count = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    assert_null(hak_owner_unpark());
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    return 0;
}

static void push(void *const *blocks, unsigned count) {
    hak_batch_t batch = unit_batch(blocks, count);
    hak_remote_push(hak_slab_of(blocks[0]), &batch);
}

static void park_empties_current_slabs(void **state) {
    (void)state;
    unit_refill(&a, SC_64, &held);
    unit_give_all(&a, &held);
    hak_owner_park(&a);
    assert_int_equal(a.counters.slab_retire, 1);
    assert_true(a.is_parked);
    assert_ptr_equal(hak_owner_unpark(), &a);
    assert_false(a.is_parked);
}

static void unpark_takes_the_most_recent_first(void **state) {
    (void)state;
    assert_null(hak_owner_unpark());
    hak_owner_park(&a);
    hak_owner_park(&b);
    hak_owner_park(&c);
    assert_ptr_equal(hak_owner_unpark(), &c);
    hak_owner_park(&c);
    assert_ptr_equal(hak_owner_unpark(), &c);
    assert_ptr_equal(hak_owner_unpark(), &b);
    assert_ptr_equal(hak_owner_unpark(), &a);
    assert_null(hak_owner_unpark());
}

static void adopt_without_parked_owners_is_null(void **state) {
    (void)state;
    assert_null(hak_slab_adopt(&a, SC_64));
}

static void refill_adopts_a_parked_slab_before_a_new_one(void **state) {
    (void)state;
    unsigned count = unit_refill(&a, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    hak_owner_park(&a);
    unit_refill(&b, SC_1024, &held); /* another class: nothing to adopt */
    assert_int_equal(b.counters.refill_adopt, 0);
    hak_blocks_t blocks = hak_slab_refill(&b, SC_64);
    assert_int_equal(blocks.count, count);
    assert_int_equal(b.counters.refill_adopt, 1);
    assert_int_equal(b.counters.slab_create, 1); /* that of class 1024 */
    assert_ptr_equal(slab->owner, &b);
    assert_ptr_equal(b.current[SC_64], slab);
    assert_int_equal(hak_pagemap_get(hak_pagemap_base(), held.block[0]), b.tag | SC_64);
    assert_true(hak_list_is_empty(&a.partial[SC_64]));
    unit_give_all(&b, &held);
    for (void *block = blocks.head; block != NULL;) {
        void *next = hak_link_get(block);
        unit_give(&b, block);
        block = next;
    }
    hak_slab_release_current(&b);
    assert_int_equal(b.counters.slab_retire, 2);
    assert_ptr_equal(hak_owner_unpark(), &a);
}

static void adopt_drains_full_slabs_others_freed_into(void **state) {
    (void)state;
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&a, SC_1024, &held, capacity);
    hak_owner_park(&a);
    assert_null(hak_slab_adopt(&b, SC_1024)); /* it is full */
    push(held.block, 3);
    hak_slab_t *slab = hak_slab_adopt(&b, SC_1024);
    assert_ptr_equal(slab, hak_slab_of(held.block[0]));
    assert_int_equal(slab->free_count, 3);
    assert_ptr_equal(slab->owner, &b);
    push(held.block + 3, capacity - 3); /* goes to the new owner now */
    assert_false(hak_remote_is_pending(&a));
    slab->state = HAK_SLAB_FULL; /* as its adopter would, were it not current */
    assert_true(hak_remote_drain(&b, UINT32_MAX));
    assert_int_equal(b.counters.slab_retire, 1);
    assert_ptr_equal(hak_owner_unpark(), &a);
}

static void drain_parked_retires_what_others_emptied(void **state) {
    (void)state;
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&a, SC_1024, &held, capacity);
    hak_owner_park(&a);
    hak_owner_park(&b);
    hak_owner_park(&c);
    push(held.block, capacity);
    hak_owner_drain_parked(2); /* visits go round: c and b */
    assert_int_equal(a.counters.slab_retire, 0);
    hak_owner_drain_parked(1);
    assert_int_equal(a.counters.slab_retire, 1);
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_non_null(hak_owner_unpark());
    }
}

static void owner_taken_over_whole_keeps_its_slabs(void **state) {
    (void)state;
    unsigned count = unit_refill(&a, SC_64, &held);
    hak_owner_park(&a);
    push(held.block, count - 1); /* arrives while parked */
    assert_ptr_equal(hak_owner_unpark(), &a);
    hak_blocks_t blocks = hak_slab_refill(&a, SC_64);
    assert_int_equal(blocks.count, count - 1);
    assert_int_equal(a.counters.slab_create, 1);
    unit_give_all(&a, &held);
    unit_owner_end(&a);
}

/* --- threads: owners that come and go while strangers free -------------------------------------
 */

enum { THREADS = 4, ROUNDS = 300 };

static hak_owner_t owners[THREADS];
static void *mailbox[THREADS][16]; /* [atomic] blocks for thread i to free */

static void free_anywhere(hak_owner_t *owner, void *block) {
    if ((hak_pagemap_get(hak_pagemap_base(), block) & ~0xffu) == owner->tag) {
        unit_give(owner, block);
    } else {
        push(&block, 1);
    }
}

static void *come_and_go(void *context) {
    unsigned self = (unsigned)(uintptr_t)context;
    uint64_t seed = self + 1;
    hak_owner_t *owner = &owners[self];
    for (unsigned round = 0; round < ROUNDS; round++) {
        hak_blocks_t blocks = hak_slab_refill(owner, round % 2 == 0 ? SC_64 : SC_1024);
        for (void *block = blocks.head, *next; block != NULL; block = next) {
            next = hak_link_get(block);
            uint64_t random = hak_rng_next(&seed);
            void **box = &mailbox[random % THREADS][random / THREADS % 16];
            void *old = __atomic_exchange_n(box, block, __ATOMIC_ACQ_REL);
            if (old != NULL) {
                free_anywhere(owner, old);
            }
        }
        if (round % 8 == 7) {
            hak_owner_park(owner);
            while ((owner = hak_owner_unpark()) == NULL) {
                hak_os_yield();
            }
        }
    }
    hak_owner_park(owner);
    return NULL;
}

static void owners_coming_and_going_lose_no_block(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        unit_owner_begin(&owners[i], 10 + (uint32_t)i);
    }
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
    hak_owner_drain_parked(UINT32_MAX);
    hak_owner_drain_parked(UINT32_MAX); /* what the first round forwarded */
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_non_null(hak_owner_unpark());
    }
}

#define ADOPT_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

static const struct CMUnitTest tests[] = {
    ADOPT_TEST(park_empties_current_slabs),
    ADOPT_TEST(unpark_takes_the_most_recent_first),
    ADOPT_TEST(adopt_without_parked_owners_is_null),
    ADOPT_TEST(refill_adopts_a_parked_slab_before_a_new_one),
    ADOPT_TEST(adopt_drains_full_slabs_others_freed_into),
    ADOPT_TEST(drain_parked_retires_what_others_emptied),
    ADOPT_TEST(owner_taken_over_whole_keeps_its_slabs),
    ADOPT_TEST(owners_coming_and_going_lose_no_block),
};

int main(void) {
    return cmocka_run_group_tests(tests, unit_slab_begin, NULL) == 0 ? 0 : 1;
}
