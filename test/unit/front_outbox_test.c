/* SPDX-License-Identifier: MIT
 *
 * Outboxes: when they are flushed, and that they serve the thread itself. */
#include "unit/front.h"

enum { REMOTE_BLOCKS = 1000 };

static void *outbox_make_blocks(void *context) {
    void **block = context;
    UNIT_TAKE_ALL(block, REMOTE_BLOCKS, unit_malloc(64));
    return NULL;
}

/* REMOTE_BLOCKS blocks of 64 bytes of a thread that has exited. */
static void **foreign_blocks(void) {
    static void *block[REMOTE_BLOCKS];
    hak_tcache_t *tcache = self(); /* before that thread leaves one behind */
    unit_pthread_create_and_join(outbox_make_blocks, block);
    hak_outbox_flush(tcache);
    return block;
}

FRONT_TEST(outbox_is_flushed_at_a_quarter_of_the_bound) {
    void **block = foreign_blocks();
    hak_tcache_t *tcache = self();
    unsigned per_flush = (unsigned)hak_outbox_capacity(SC_64);
    assert_int_equal(per_flush, 256); /* less than a quarter in bytes, to sort few at once */
    assert_int_equal(hak_outbox_capacity(SC_4096) * 4096, hak_knobs.outbox_bytes / 4);
    uint64_t before = tcache->side[SC_64].counters.remote_out;
    tcache->ticks = 0; /* a tick would hand the outbox over */
    assert_true(per_flush < REMOTE_BLOCKS);
    for (unsigned i = 1; i < per_flush; i++) {
        hak_free(block[i]);
        assert_int_equal(tcache->outbox_bytes, i * 64);
        assert_int_equal(tcache->side[SC_64].counters.remote_out, before);
    }
    audit();
    hak_free(block[0]);
    assert_int_equal(tcache->outbox_bytes, 0);
    assert_true(tcache->side[SC_64].counters.remote_out > before);
    for (unsigned i = per_flush; i < REMOTE_BLOCKS; i++) {
        hak_free(block[i]);
    }
    audit();
    hak_outbox_flush(tcache);
    assert_int_equal(tcache->outbox_bytes, 0);
    before = tcache->side[SC_64].counters.remote_out;
    hak_outbox_flush(tcache); /* nothing left: nothing sent */
    assert_int_equal(tcache->side[SC_64].counters.remote_out, before);
}

FRONT_TEST(outboxes_hold_no_more_than_their_bound) {
    hak_knobs_t saved = hak_knobs;
    void **block = foreign_blocks();
    void *last = block[REMOTE_BLOCKS - 1]; /* starts the outbox anew, on the old bound */
    hak_knobs.outbox_bytes = 640;
    for (unsigned i = 0; i < REMOTE_BLOCKS - 1; i++) {
        hak_free(block[i]);
        assert_true(self()->outbox_bytes < 640);
    }
    hak_knobs = saved;
    hak_free(last);
}

enum { FEW_CLASSES = 9, EACH = 255 }; /* of 16 to 144 bytes; an outbox is flushed at 256 */

static void *make_blocks_of_classes(void *context) {
    void **block = context;
    for (unsigned i = 0; i < FEW_CLASSES * EACH; i++) {
        block[i] = unit_malloc((i / EACH + 1) * HAK_BLOCK_ALIGN);
    }
    return NULL;
}

/* What a call may have to sort: the smallest blocks are the most (docs/worst-cases.md). */
FRONT_TEST(outboxes_hold_no_more_blocks_than_a_call_flushes) {
    static void *block[FEW_CLASSES * EACH];
    hak_tcache_t *tcache = self();
    unit_pthread_create_and_join(make_blocks_of_classes, block);
    hak_outbox_flush(tcache);
    unsigned most = 0;
    for (unsigned i = 0; i < FEW_CLASSES * EACH; i++) {
        tcache->ticks = 0; /* a tick would hand the outboxes over */
        hak_free(block[i]);
        unsigned sum = 0;
        for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
            sum += hak_bin_side(tcache, sc)->outbox.count;
        }
        most = sum > most ? sum : most;
    }
    assert_in_range(most, 1900, 1920);
}

/* What others own and this thread freed serves its next requests, unless it is next to nothing. */
FRONT_TEST(outbox_serves_a_refill) {
    enum { FREED = 20 };
    void **block = foreign_blocks();
    hak_tcache_t *tcache = self();
    hak_tcache_flush(tcache);
    unsigned own = 0; /* slabs of the thread that were adopted since */
    for (unsigned i = 0; i < REMOTE_BLOCKS; i++) {
        bool is_own = hak_pagemap_get(hak_pagemap_base(), block[i]) ==
                      hak_sc_entry(tcache->first_entry, SC_64);
        void *swapped = block[own];
        block[own] = is_own ? block[i] : swapped;
        block[i] = is_own ? swapped : block[i];
        own += is_own;
    }
    void **foreign = block + own;
    assert_true(own + FREED < REMOTE_BLOCKS);
    UNIT_FREE_ALL(foreign, FREED);
    for (unsigned i = FREED; i > 0; i--) {
        assert_ptr_equal(unit_malloc(64), foreign[i - 1]);
    }
    audit();
    hak_free(foreign[0]);
    void *other = unit_malloc(64);
    assert_ptr_not_equal(other, foreign[0]); /* it may share a cache line with what others use */
    hak_free(other);
    foreign[0] = NULL;
    UNIT_FREE_ALL(block, REMOTE_BLOCKS);
    hak_tcache_flush(tcache);
    assert_int_equal(audit().cached_blocks, 0);
}

FRONT_TEST(outbox_is_flushed_at_a_tick) {
    void **block = foreign_blocks();
    hak_tcache_t *tcache = self();
    hak_free(block[0]);
    assert_int_equal(tcache->outbox_bytes, 64);
    tcache->ticks = HAK_EVENT_TICKS - 1;
    hak_event_tick(tcache, false);
    assert_int_equal(tcache->outbox_bytes, 0);
    for (unsigned i = 1; i < REMOTE_BLOCKS; i++) {
        hak_free(block[i]);
    }
}
