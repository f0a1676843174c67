/* SPDX-License-Identifier: MIT
 *
 * Figures against what the test itself holds, at rest, when they must be exact. */
#include "unit/report.h"

static hak_snapshot_t snap;

/* The thread's own caches are emptied first: what they hold counts as in use. */
static void collect(void) {
    hak_collect_thread();
    hak_stat_collect(&snap);
    size_t in_use = 0, unused = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        assert_true(snap.sc[sc].free <= snap.sc[sc].blocks);
        assert_true(snap.sc[sc].blocks <= snap.sc[sc].slabs * hak_sc_info[sc].blocks);
        in_use += (snap.sc[sc].blocks - snap.sc[sc].free) * hak_sc_info[sc].bytes;
        unused += snap.sc[sc].free * hak_sc_info[sc].bytes;
    }
    assert_int_equal(snap.in_use_bytes, in_use + snap.large_bytes + snap.huge_bytes);
    assert_int_equal(snap.slab_free_bytes, unused);
    assert_int_equal(snap.mapped_bytes, snap.superslab_count * HAK_SUPERSLAB_BYTES +
                                            snap.huge_bytes + snap.huge_cached_bytes);
    assert_true(snap.in_use_bytes + snap.slab_free_bytes + snap.unused_dirty_bytes +
                    snap.huge_cached_bytes <=
                snap.mapped_bytes);
}

static int collect_begin(void **state) {
    (void)state;
    hak_free(hak_malloc(1));
    hak_malloc_trim(0);
    collect();
    assert_int_equal(snap.in_use_bytes, 0);
    assert_int_equal(snap.mapped_bytes, 0);
    return 0;
}

#define STAT_TEST(name) UNIT_TEST_WITH(name, collect_begin, NULL)

STAT_TEST(blocks_large_and_huge_are_counted_exactly) {
    uint64_t allocs = snap.events.large_alloc, frees = snap.events.large_free;
    void *a = hak_malloc(100000); /* 2 units */
    void *b = hak_malloc(1 << 20);
    void *c = hak_malloc((1 << 20) + 1);
    void *d = hak_malloc(5 << 20);
    collect();
    assert_int_equal(snap.large_count, 2);
    assert_int_equal(snap.large_bytes, 2 * HAK_UNIT_BYTES + (1 << 20));
    assert_int_equal(snap.huge_count, 2);
    assert_int_equal(snap.huge_bytes, (6 << 20) + HAK_UNIT_BYTES + 2 * HAK_HUGE_GUARD_BYTES);
    assert_int_equal(snap.huge_cached_bytes, 0);
    assert_int_equal(snap.events.large_alloc, allocs + 4);
    hak_free(a);
    hak_free(b);
    hak_free(c);
    hak_free(d);
    collect();
    assert_int_equal(snap.in_use_bytes, 0);
    assert_int_equal(snap.large_count + snap.huge_count, 0);
    assert_int_equal(snap.huge_cached_bytes, (6 << 20) + HAK_UNIT_BYTES + 2 * HAK_HUGE_GUARD_BYTES);
    assert_int_equal(snap.unused_dirty_bytes, 2 * HAK_UNIT_BYTES + (1 << 20));
    assert_int_equal(snap.events.large_free, frees + 4);
}

STAT_TEST(blocks_cached_in_bins_count_as_in_use) {
    void *block = hak_malloc(64 - HAK_CANARY_BYTES);
    hak_stat_collect(&snap);
    assert_int_equal(snap.in_use_bytes, 8 * 64); /* the first refill */
    hak_free(block);
    hak_stat_collect(&snap);
    assert_int_equal(snap.in_use_bytes, 8 * 64);
    collect();
    assert_int_equal(snap.in_use_bytes, 0);
}

STAT_TEST(events_balance_after_everything_is_freed) {
    assert_int_equal(snap.events.slab_create, snap.events.slab_retire);
    assert_int_equal(snap.process.superslab_map, snap.process.superslab_unmap);
    assert_int_equal(snap.events.large_alloc, snap.events.large_free);
    assert_true(snap.meta_bytes > 0);
}
