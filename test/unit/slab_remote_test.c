/* SPDX-License-Identifier: MIT
 *
 * Remote frees between owners that the test plays itself, then between threads. */
#include "unit/slab.h"

#include <pthread.h>
#include <sched.h>

static hak_owner_t remote_a, remote_b;
static unit_blocks_t remote_held;

static int remote_begin(void **state) {
    (void)state;
    unit_owner_begin(&remote_a, 1);
    unit_owner_begin(&remote_b, 2);
    remote_held.count = 0;
    return 0;
}

static int remote_end(void **state) {
    (void)state;
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    return 0;
}

#define REMOTE_TEST(name) UNIT_TEST_WITH(name, remote_begin, remote_end)

REMOTE_TEST(messages_of_every_length_arrive_whole) {
    unit_take(&remote_a, SC_64, &remote_held, hak_sc_info[SC_64].blocks);
    hak_slab_t *slab = hak_slab_of(remote_held.block[0]);
    unsigned pushed = 1; /* one block stays in use */
    for (unsigned length = 1; pushed + length <= remote_held.count; length++) {
        unit_push(remote_held.block + pushed, length);
        pushed += length;
    }
    assert_int_equal(slab->free_count, 0);
    assert_true(hak_remote_is_pending(&remote_a));
    assert_true(hak_remote_drain(&remote_a, 1));
    assert_false(hak_remote_is_pending(&remote_a));
    assert_int_equal(slab->free_count, pushed - 1);
    assert_int_equal(unit_marked(slab), pushed - 1);
    assert_int_equal(remote_a.counters[SC_64].remote_in, 1);
    for (unsigned i = pushed; i < remote_held.count; i++) {
        unit_give(&remote_a, remote_held.block[i]);
    }
    unit_give(&remote_a, remote_held.block[0]);
    unit_owner_end(&remote_a);
}

REMOTE_TEST(message_that_empties_a_full_slab_retires_it) {
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&remote_a, SC_1024, &remote_held, capacity + 1);
    char *first = remote_held.block[0];
    unit_push(remote_held.block, capacity);
    hak_remote_drain(&remote_a, 1);
    assert_int_equal(remote_a.counters[SC_1024].slab_retire, 1);
    assert_int_equal(hak_pagemap_get(hak_pagemap_base(), first), 0);
    while (remote_held.count > capacity) {
        unit_give(&remote_a, remote_held.block[--remote_held.count]);
    }
    unit_owner_end(&remote_a);
}

/* SLAB-7 */
REMOTE_TEST(slab_is_queued_once_until_drained) {
    unit_take(&remote_a, SC_64, &remote_held, 300);
    hak_slab_t *slab = hak_slab_of(remote_held.block[0]);
    for (unsigned i = 0; i < remote_held.count; i++) {
        unit_push(remote_held.block + i, 1);
    }
    assert_ptr_equal(remote_a.queue, slab);
    assert_null(slab->queue_next);
    hak_remote_drain(&remote_a, UINT32_MAX);
    assert_null(remote_a.queue);
    assert_null(remote_a.ready);
    assert_false(hak_remote_drain(&remote_a, UINT32_MAX));
    unit_owner_end(&remote_a);
}

/* By one load of each slab: no lock is taken. */
REMOTE_TEST(blocks_that_wait_are_told_by_the_number_of_their_slab) {
    unsigned capacity = hak_sc_info[SC_64].blocks;
    unit_take(&remote_a, SC_64, &remote_held, capacity);
    const hak_slab_t *slab = hak_slab_of(remote_held.block[0]);
    assert_int_equal(unit_waiting(slab), 0);
    for (unsigned done = 0, length = 1; done < capacity; length++) {
        unsigned count = length < capacity - done ? length : capacity - done;
        unit_push(remote_held.block + done, count);
        done += count;
        assert_int_equal(unit_waiting(slab), done);
    }
    hak_remote_drain(&remote_a, UINT32_MAX);
    unit_owner_end(&remote_a);
}

REMOTE_TEST(drain_stops_at_its_budget) {
    enum { SLABS = 5 };
    unsigned capacity = hak_sc_info[SC_1024].blocks;
    unit_take(&remote_a, SC_1024, &remote_held, SLABS * capacity);
    for (unsigned i = 0; i < SLABS; i++) {
        unit_push(remote_held.block + i * capacity, 1);
    }
    for (unsigned left = SLABS; left > 0; left--) {
        unsigned waiting = 0;
        assert_true(hak_remote_is_pending(&remote_a));
        assert_true(hak_remote_drain(&remote_a, 1));
        for (unsigned i = 0; i < SLABS; i++) {
            waiting += unit_waiting(hak_slab_of(remote_held.block[i * capacity])) != 0;
        }
        assert_int_equal(waiting, left - 1);
    }
    assert_false(hak_remote_drain(&remote_a, 1));
    for (unsigned i = 0; i < remote_held.count; i++) {
        if (i % capacity != 0) {
            unit_give(&remote_a, remote_held.block[i]);
        }
    }
    unit_owner_end(&remote_a);
}

REMOTE_TEST(refill_finds_what_others_gave_back) {
    unsigned count = unit_refill(&remote_a, SC_64, &remote_held);
    unit_push(remote_held.block, count);
    hak_blocks_t blocks = hak_slab_refill(&remote_a, SC_64, UINT32_MAX);
    assert_int_equal(blocks.count, count);
    assert_int_equal(remote_a.counters[SC_64].refill_list, 1);
    unit_give_all(&remote_a, &remote_held);
    unit_owner_end(&remote_a);
}

/* The slab changed hands between push and drain: whoever finds it in a queue passes it on. */
REMOTE_TEST(queued_slab_of_a_new_owner_is_forwarded) {
    unsigned count = unit_refill(&remote_a, SC_64, &remote_held);
    hak_slab_t *slab = hak_slab_of(remote_held.block[0]);
    unit_push(remote_held.block, count - 1);
    remote_a.current[SC_64] = NULL;
    slab->state = HAK_SLAB_FULL;
    hak_slab_change_owner(slab, &remote_b);
    assert_int_equal(hak_pagemap_get(hak_pagemap_base(), remote_held.block[0]),
                     hak_sc_entry(remote_b.first_entry, SC_64));
    assert_false(hak_remote_drain(&remote_a, UINT32_MAX));
    assert_int_equal(slab->free_count, 0);
    assert_true(hak_remote_is_pending(&remote_b));
    assert_true(hak_remote_drain(&remote_b, UINT32_MAX));
    assert_int_equal(slab->free_count, count - 1);
    assert_int_equal(slab->state, HAK_SLAB_PARTIAL);
    unit_give(&remote_b, remote_held.block[count - 1]);
    assert_int_equal(remote_b.counters[SC_64].slab_retire, 1);
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

REMOTE_TEST(strangers_freeing_while_the_owner_refills_lose_nothing) {
    pthread_t threads[STRANGERS];
    memset(inbox, 0, sizeof inbox);
    for (unsigned i = 0; i < STRANGERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, stranger, inbox[i]), 0);
    }
    void *next = NULL;
    for (unsigned i = 0; i < PER_STRANGER; i++) {
        for (unsigned who = 0; who < STRANGERS; who++) {
            if (next == NULL) {
                next = unit_blocks(&remote_a, SC_64, UINT32_MAX).head;
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
        unit_give(&remote_a, block);
    }
    unit_owner_end(&remote_a);
}

UNIT_GROUP(unit_slab_begin)
