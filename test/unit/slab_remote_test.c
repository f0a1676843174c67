/* SPDX-License-Identifier: MIT
 *
 * Remote frees between owners that the test plays itself, then between threads. */
#include "unit/slab.h"

#include <pthread.h>
#include <sched.h>

static hak_owner_t a, b;
static unit_blocks_t held;

enum { SC_64 = 3, SC_1024 = 19 };

static int begin(void **state) {
    (void)state;
    unit_owner_begin(&a, 1);
    unit_owner_begin(&b, 2);
    held.count = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    return 0;
}

static void messages_of_every_length_arrive_whole(void **state) {
    (void)state;
    unit_take(&a, SC_64, &held, hak_sc_info[SC_64].blocks);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    unsigned pushed = 1; /* one block stays in use */
    for (unsigned length = 1; pushed + length <= held.count; length++) {
        unit_push(held.block + pushed, length);
        pushed += length;
    }
    assert_int_equal(slab->free_count, 0);
    assert_true(hak_remote_is_pending(&a));
    assert_true(hak_remote_drain(&a, 1));
    assert_false(hak_remote_is_pending(&a));
    assert_int_equal(slab->free_count, pushed - 1);
    assert_int_equal(unit_marked(slab), pushed - 1);
    assert_int_equal(a.counters[SC_64].remote_in, 1);
    for (unsigned i = pushed; i < held.count; i++) {
        unit_give(&a, held.block[i]);
    }
    unit_give(&a, held.block[0]);
    unit_owner_end(&a);
}

static void message_that_empties_a_full_slab_retires_it(void **state) {
    (void)state;
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&a, SC_1024, &held, capacity + 1);
    char *first = held.block[0];
    unit_push(held.block, capacity);
    hak_remote_drain(&a, 1);
    assert_int_equal(a.counters[SC_1024].slab_retire, 1);
    assert_int_equal(hak_pagemap_get(hak_pagemap_base(), first), 0);
    while (held.count > capacity) {
        unit_give(&a, held.block[--held.count]);
    }
    unit_owner_end(&a);
}

/* SLAB-7 */
static void slab_is_queued_once_until_drained(void **state) {
    (void)state;
    unit_take(&a, SC_64, &held, 300);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    for (unsigned i = 0; i < held.count; i++) {
        unit_push(held.block + i, 1);
    }
    assert_ptr_equal(a.queue, slab);
    assert_null(slab->queue_next);
    hak_remote_drain(&a, UINT32_MAX);
    assert_null(a.queue);
    assert_null(a.ready);
    assert_false(hak_remote_drain(&a, UINT32_MAX));
    unit_owner_end(&a);
}

/* By one load of each slab: no lock is taken. */
static void blocks_that_wait_are_told_by_the_number_of_their_slab(void **state) {
    (void)state;
    unsigned capacity = hak_sc_info[SC_64].blocks;
    unit_take(&a, SC_64, &held, capacity);
    const hak_slab_t *slab = hak_slab_of(held.block[0]);
    assert_int_equal(unit_waiting(slab), 0);
    for (unsigned done = 0, length = 1; done < capacity; length++) {
        unsigned count = length < capacity - done ? length : capacity - done;
        unit_push(held.block + done, count);
        done += count;
        assert_int_equal(unit_waiting(slab), done);
    }
    hak_remote_drain(&a, UINT32_MAX);
    unit_owner_end(&a);
}

static void drain_stops_at_its_budget(void **state) {
    (void)state;
    enum { SLABS = 5 };
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&a, SC_1024, &held, SLABS * capacity);
    for (unsigned i = 0; i < SLABS; i++) {
        unit_push(held.block + i * capacity, 1);
    }
    for (unsigned left = SLABS; left > 0; left--) {
        unsigned waiting = 0;
        assert_true(hak_remote_is_pending(&a));
        assert_true(hak_remote_drain(&a, 1));
        for (unsigned i = 0; i < SLABS; i++) {
            waiting += unit_waiting(hak_slab_of(held.block[i * capacity])) != 0;
        }
        assert_int_equal(waiting, left - 1);
    }
    assert_false(hak_remote_drain(&a, 1));
    for (unsigned i = 0; i < held.count; i++) {
        if (i % capacity != 0) {
            unit_give(&a, held.block[i]);
        }
    }
    unit_owner_end(&a);
}

static void refill_finds_what_others_gave_back(void **state) {
    (void)state;
    unsigned count = unit_refill(&a, SC_64, &held);
    unit_push(held.block, count);
    hak_blocks_t blocks = hak_slab_refill(&a, SC_64, UINT32_MAX);
    assert_int_equal(blocks.count, count);
    assert_int_equal(a.counters[SC_64].refill_list, 1);
    unit_give_all(&a, &held);
    unit_owner_end(&a);
}

/* The slab changed hands between push and drain: whoever finds it in a queue passes it on. */
static void queued_slab_of_a_new_owner_is_forwarded(void **state) {
    (void)state;
    unsigned count = unit_refill(&a, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    unit_push(held.block, count - 1);
    a.current[SC_64] = NULL;
    slab->state = HAK_SLAB_FULL;
    hak_slab_change_owner(slab, &b);
    assert_int_equal(hak_pagemap_get(hak_pagemap_base(), held.block[0]),
                     hak_sc_entry(b.first_entry, SC_64));
    assert_false(hak_remote_drain(&a, UINT32_MAX));
    assert_int_equal(slab->free_count, 0);
    assert_true(hak_remote_is_pending(&b));
    assert_true(hak_remote_drain(&b, UINT32_MAX));
    assert_int_equal(slab->free_count, count - 1);
    assert_int_equal(slab->state, HAK_SLAB_PARTIAL);
    unit_give(&b, held.block[count - 1]);
    assert_int_equal(b.counters[SC_64].slab_retire, 1);
}

/* --- threads: one owner, several strangers -----------------------------------------------------
 */

enum { STRANGERS = 3, PER_STRANGER = 4000 };

static void *inbox[STRANGERS][PER_STRANGER]; /* [atomic] NULL: not passed on yet */

static void *stranger(void *context) {
    void **own = context;
    void *batch[7];
    unsigned length = 0;
    for (unsigned i = 0; i < PER_STRANGER; i++) {
        void *block;
        while ((block = hak_load_acquire(&own[i])) == NULL) {
            sched_yield();
        }
        if (length == UNIT_COUNT(batch) ||
            (length > 0 && hak_slab_of(batch[0]) != hak_slab_of(block))) {
            unit_push(batch, length);
            length = 0;
        }
        batch[length++] = block;
    }
    unit_push(batch, length);
    return NULL;
}

static void strangers_freeing_while_the_owner_refills_lose_nothing(void **state) {
    (void)state;
    pthread_t threads[STRANGERS];
    memset(inbox, 0, sizeof inbox);
    for (unsigned i = 0; i < STRANGERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, stranger, inbox[i]), 0);
    }
    void *next = NULL;
    for (unsigned i = 0; i < PER_STRANGER; i++) {
        for (unsigned who = 0; who < STRANGERS; who++) {
            if (next == NULL) {
                next = unit_blocks(&a, SC_64, UINT32_MAX).head;
            }
            void *block = next;
            next = hak_link_get(block);
            memset(block, (int)who, 64);
            hak_store_release(&inbox[who][i], block);
        }
    }
    for (unsigned i = 0; i < STRANGERS; i++) {
        pthread_join(threads[i], NULL);
    }
    while (next != NULL) {
        void *block = next;
        next = hak_link_get(block);
        unit_give(&a, block);
    }
    unit_owner_end(&a);
}

#define REMOTE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

static const struct CMUnitTest tests[] = {
    REMOTE_TEST(messages_of_every_length_arrive_whole),
    REMOTE_TEST(message_that_empties_a_full_slab_retires_it),
    REMOTE_TEST(slab_is_queued_once_until_drained),
    REMOTE_TEST(blocks_that_wait_are_told_by_the_number_of_their_slab),
    REMOTE_TEST(drain_stops_at_its_budget),
    REMOTE_TEST(refill_finds_what_others_gave_back),
    REMOTE_TEST(queued_slab_of_a_new_owner_is_forwarded),
    REMOTE_TEST(strangers_freeing_while_the_owner_refills_lose_nothing),
};

int main(void) {
    return cmocka_run_group_tests(tests, unit_slab_begin, NULL) == 0 ? 0 : 1;
}
