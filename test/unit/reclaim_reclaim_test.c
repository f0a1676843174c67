/* SPDX-License-Identifier: MIT
 *
 * A heap that grows beyond its peak gives back unused memory: long runs of idle pages of partly
 * used slabs, up to a share of it, and cached mappings. */
#include "base/atomics.h"
#include "reclaim/reclaim.h"
#include "reclaim/slabs.h"
#include "slab/slab_inl.h"
#include "span/span_state.h"
#include "unit/front.h"

enum {
    OLD_BYTES = 1024, /* blocks of a load that is over but for one in EVERY */
    NEW_BYTES = 4096,
    RECLAIM_EVERY = 64,
    OLD = 32 * MIB / OLD_BYTES,
    NEW = 64 * MIB / NEW_BYTES,
};

static unsigned char *old_blocks[OLD];
static unsigned char *new_blocks[NEW];

static void old_load_leaves_survivors(void) {
    for (unsigned i = 0; i < OLD; i++) {
        old_blocks[i] = unit_malloc(OLD_BYTES);
        assert_non_null(old_blocks[i]);
        memset(old_blocks[i], (int)(i % 251), OLD_BYTES - HAK_CANARY_BYTES);
    }
    for (unsigned i = 0; i < OLD; i++) {
        if (i % RECLAIM_EVERY != 0) {
            hak_free(old_blocks[i]);
        }
    }
}

static void old_load_ends(void) {
    for (unsigned i = 0; i < OLD; i += RECLAIM_EVERY) {
        for (unsigned at = 0; at < OLD_BYTES - HAK_CANARY_BYTES; at++) {
            assert_int_equal(old_blocks[i][at], i % 251);
        }
        hak_free(old_blocks[i]);
    }
}

static void new_load_grows(void) {
    for (unsigned i = 0; i < NEW; i++) {
        new_blocks[i] = unit_malloc(NEW_BYTES);
        assert_non_null(new_blocks[i]);
        new_blocks[i][0] = 1;
    }
}

static void new_load_ends(void) {
    UNIT_FREE_ALL(new_blocks, NEW);
}

static size_t purged_bytes(void) {
    return hak_load_relaxed(&hak_span_purged_bytes);
}

UNIT_AROUND(reclaim_begin) {
    hak_os_fault_stop_clock(); /* else a busy machine decides what decays meanwhile */
    hak_slabs_given_back = 0;  /* a long time has passed */
    (void)self();
    hak_span_purge(0);
    return 0;
}

/* A few blocks in a bin keep slabs of which no block is in use. The new load gets their units. */
UNIT_TEST_WITH(growth_flushes_bins_that_keep_slabs, reclaim_begin, NULL) {
    enum { KEPT_BYTES = 64, SLABS = 16, BLOCKS = SLABS * HAK_UNIT_BYTES / KEPT_BYTES };
    if (HAK_HARDEN) {
        skip(); /* the quarantine stays */
    }
    unsigned sc = hak_sc_of(KEPT_BYTES - HAK_CANARY_BYTES);
    void **kept = calloc(BLOCKS, sizeof *kept);
    for (unsigned i = 0; i < BLOCKS; i++) {
        kept[i] = unit_malloc(KEPT_BYTES);
    }
    for (unsigned i = 0; i < BLOCKS; i++) { /* the last ones freed are of all slabs */
        hak_free(kept[(size_t)i * 1021 % BLOCKS]);
    }
    const hak_owner_t *home = self()->home;
    assert_true(home->slab_count[sc] > SLABS / 2);
    hak_store_relaxed(&hak_span_peak_bytes, 0);
    new_load_grows();
    assert_int_equal(home->slab_count[sc], 0);
    new_load_ends();
    free(kept);
}

UNIT_TEST_WITH(growth_takes_large_idle_pages_up_to_a_share, reclaim_begin, NULL) {
    hak_span_stats_t spans;
    old_load_leaves_survivors();
    assert_int_equal(purged_bytes(), 0); /* nothing grew since the frees */
    new_load_grows();
    hak_span_stats(&spans);
    assert_true(purged_bytes() > MIB);
    assert_true(purged_bytes() < spans.in_use_bytes / 8); /* 1 / 16 for each 0.4 s it takes */
    audit();
    old_load_ends();
    new_load_ends();
    hak_tcache_flush(self());
    hak_owner_collect();
    audit();
    assert_int_equal(purged_bytes(), 0);
}

UNIT_TEST_WITH(purged_pages_that_are_used_again_are_none, reclaim_begin, NULL) {
    old_load_leaves_survivors();
    new_load_grows();
    new_load_ends();
    size_t before = purged_bytes();
    for (unsigned i = 0; i < OLD; i++) {
        if (i % RECLAIM_EVERY != 0) {
            old_blocks[i] = unit_malloc(OLD_BYTES);
            assert_non_null(old_blocks[i]);
            memset(old_blocks[i], (int)(i % 251), OLD_BYTES - HAK_CANARY_BYTES);
        }
    }
    assert_true(purged_bytes() == 0 || purged_bytes() < before);
    audit();
    for (unsigned i = 0; i < OLD; i++) {
        if (i % RECLAIM_EVERY != 0) {
            hak_free(old_blocks[i]);
        }
    }
    old_load_ends();
    audit();
}

/* Locked memory, say: as many times as tell that from a locked page, then not for long. */
UNIT_TEST_WITH(kernel_that_refuses_is_not_asked_again_soon, reclaim_begin, NULL) {
    enum { ASKED_MOST = 16 };
    old_load_leaves_survivors();
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, UINT64_MAX);
    uint64_t before = hak_os_fault_calls(HAK_OS_CALL_PURGE);
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(hak_slabs_give_back(16 * MIB, false), 0);
    }
    assert_in_range(hak_os_fault_calls(HAK_OS_CALL_PURGE) - before, 1, ASKED_MOST);
    hak_os_fault_clear();
    old_load_ends();
    audit();
}

UNIT_TEST_WITH(kernel_that_refuses_once_is_asked_for_the_rest, reclaim_begin, NULL) {
    old_load_leaves_survivors();
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 1);
    assert_true(hak_slabs_give_back(MIB, false) >= MIB);
    hak_os_fault_clear();
    old_load_ends();
    audit();
}

/* Slabs without a run of four idle OS pages: looked at once, not at every new peak. */
UNIT_TEST_WITH(slabs_without_large_idle_pages_are_looked_at_once, reclaim_begin, NULL) {
    UNIT_TAKE_ALL(old_blocks, OLD, unit_malloc(OLD_BYTES));
    for (unsigned i = 0; i < OLD; i++) {
        if (i % 4 != 0) {
            hak_free(old_blocks[i]);
        }
    }
    hak_tcache_flush(self());
    hak_slab_t *slab = hak_slab_of(old_blocks[OLD / 2]);
    for (unsigned i = 0; i < 100 && !slab->is_given_back; i++) {
        hak_slabs_give_back(16 * MIB, false); /* each as far as it goes in a millisecond or two */
    }
    assert_true(slab->is_given_back);
    assert_int_equal(slab->looked, slab->free_count + 1);
    for (unsigned i = 0; i < OLD; i += 4) {
        hak_free(old_blocks[i]);
    }
    audit();
}

static size_t reclaim_cached(void) {
    hak_large_stats_t stats;
    hak_large_stats(&stats);
    return stats.huge_cached_bytes;
}

UNIT_TEST_WITH(growth_takes_cached_mappings, reclaim_begin, NULL) {
    enum { HUGE_BYTES = 8 * MIB };
    unsigned count = 0;
    unsigned char *block = unit_malloc(HUGE_BYTES);
    assert_non_null(block);
    memset(block, 1, HUGE_BYTES - HAK_CANARY_BYTES);
    hak_free(block);
    assert_true(reclaim_cached() >= HUGE_BYTES);
    new_load_grows(); /* as large as it was, so it takes nothing */
    assert_true(reclaim_cached() >= HUGE_BYTES);
    while (count < OLD && reclaim_cached() >= HUGE_BYTES) {
        old_blocks[count] = unit_malloc(NEW_BYTES);
        assert_non_null(old_blocks[count++]);
    }
    assert_true(reclaim_cached() < HUGE_BYTES);
    while (count > 0) {
        hak_free(old_blocks[--count]);
    }
    new_load_ends();
}

static void *end_at_once(void *context) {
    return context;
}

/* What a look reads is the least unused since the look before. No tick of this thread may look
 * first. */
static bool event_looks_at_pools(void) {
    void *block = hak_large_alloc(HAK_PARTITION_ANY, MIB, HAK_BLOCK_ALIGN).block;
    assert_true(hak_large_free(block, hak_pagemap_get(hak_pagemap_base(), block)));
    bool had_dip = hak_span_state.dip_units < hak_span_unused(hak_span_counts());
    hak_reclaim_maintain(self());
    return had_dip && hak_span_state.dip_units == hak_span_unused(hak_span_counts());
}

UNIT_TEST_WITH(threads_look_at_pools_once_in_a_pause, reclaim_begin, NULL) {
    enum { PAUSE_NS = 5000000 };
    hak_os_fault_stop_clock();
    hak_free(memset(unit_malloc(MIB), 1, MIB / 2));
    assert_true(event_looks_at_pools() && event_looks_at_pools()); /* alone, a thread waits not */
    unit_pthread_create_and_join(end_at_once, NULL);
    hak_os_fault_advance_clock(PAUSE_NS);
    assert_true(event_looks_at_pools());
    assert_false(event_looks_at_pools());
    hak_os_fault_advance_clock(PAUSE_NS - 1);
    assert_false(event_looks_at_pools());
    hak_os_fault_advance_clock(1);
    assert_true(event_looks_at_pools());
    hak_os_fault_clear();
}
