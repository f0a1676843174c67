/* SPDX-License-Identifier: MIT
 *
 * Figures against what the test itself holds, at rest, when they must be exact. */
#include "base/bits.h"
#include "front/tcache.h"
#include "hakmem/hakmem.h"
#include "large/large.h"
#include "slab/sizeclass.h"
#include "stat/stat.h"
#include "unit/unit.h"

#include <pthread.h>

static hak_snapshot_t collect_snapshot;

/* The thread's own caches are emptied first: what they hold counts as in use. */
static void collect(void) {
    hak_collect_thread();
    hak_stat_collect(&collect_snapshot);
    size_t in_use = 0, unused = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        assert_true(collect_snapshot.sc[sc].free <= collect_snapshot.sc[sc].blocks);
        assert_true(collect_snapshot.sc[sc].blocks <=
                    collect_snapshot.sc[sc].slabs * hak_sc_info[sc].blocks);
        in_use +=
            (collect_snapshot.sc[sc].blocks - collect_snapshot.sc[sc].free) * hak_sc_info[sc].bytes;
        unused += collect_snapshot.sc[sc].free * hak_sc_info[sc].bytes;
    }
    assert_int_equal(collect_snapshot.in_use_bytes,
                     in_use + collect_snapshot.large_bytes + collect_snapshot.huge_bytes);
    assert_int_equal(collect_snapshot.slab_free_bytes, unused);
    assert_int_equal(collect_snapshot.mapped_bytes,
                     collect_snapshot.superslab_count * HAK_SUPERSLAB_BYTES +
                         collect_snapshot.huge_bytes + collect_snapshot.huge_cached_bytes);
    assert_true(collect_snapshot.in_use_bytes + collect_snapshot.slab_free_bytes +
                    collect_snapshot.unused_dirty_bytes + collect_snapshot.huge_cached_bytes <=
                collect_snapshot.mapped_bytes);
}

static int collect_begin(void **state) {
    (void)state;
    hak_free(hak_malloc(1));
    hak_malloc_trim(0);
    collect();
    assert_int_equal(collect_snapshot.in_use_bytes, 0);
    assert_int_equal(collect_snapshot.mapped_bytes, 0);
    return 0;
}

#define STAT_TEST(name) UNIT_TEST_WITH(name, collect_begin, NULL)

STAT_TEST(blocks_of_every_class_are_counted_exactly) {
    enum { PER_CLASS = 37 };
    static void *block[HAK_SC_COUNT][PER_CLASS];
    size_t sum = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        for (unsigned i = 0; i < PER_CLASS; i++) {
            block[sc][i] = hak_malloc(hak_sc_usable(&hak_sc_info[sc]) - 3);
            sum += hak_sc_info[sc].bytes;
        }
    }
    collect();
    assert_int_equal(collect_snapshot.in_use_bytes, sum);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        unsigned capacity = hak_sc_info[sc].blocks;
        assert_int_equal(collect_snapshot.sc[sc].blocks - collect_snapshot.sc[sc].free, PER_CLASS);
        assert_int_equal(collect_snapshot.sc[sc].slabs, (PER_CLASS + capacity - 1) / capacity);
    }
    for (unsigned i = 0; i < PER_CLASS * HAK_SC_COUNT; i++) {
        hak_free(block[i % HAK_SC_COUNT][i / HAK_SC_COUNT]);
    }
    collect();
    assert_int_equal(collect_snapshot.in_use_bytes, 0);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        assert_int_equal(collect_snapshot.sc[sc].slabs, 0);
    }
}

STAT_TEST(blocks_large_and_huge_are_counted_exactly) {
    uint64_t allocs = collect_snapshot.events.large_alloc,
             frees = collect_snapshot.events.large_free;
    void *a = hak_malloc(100000); /* 2 units */
    void *b = hak_malloc(1 << 20);
    void *c = hak_malloc((1 << 20) + 1);
    void *d = hak_malloc(5 << 20);
    collect();
    assert_int_equal(collect_snapshot.large_count, 2);
    assert_int_equal(collect_snapshot.large_bytes, 2 * HAK_UNIT_BYTES + (1 << 20));
    assert_int_equal(collect_snapshot.huge_count, 2);
    assert_int_equal(collect_snapshot.huge_bytes,
                     (6 << 20) + HAK_UNIT_BYTES + 2 * HAK_HUGE_GUARD_BYTES);
    assert_int_equal(collect_snapshot.huge_cached_bytes, 0);
    assert_int_equal(collect_snapshot.events.large_alloc, allocs + 4);
    hak_free(a);
    hak_free(b);
    hak_free(c);
    hak_free(d);
    collect();
    assert_int_equal(collect_snapshot.in_use_bytes, 0);
    assert_int_equal(collect_snapshot.large_count + collect_snapshot.huge_count, 0);
    assert_int_equal(collect_snapshot.huge_cached_bytes,
                     (6 << 20) + HAK_UNIT_BYTES + 2 * HAK_HUGE_GUARD_BYTES);
    assert_int_equal(collect_snapshot.unused_dirty_bytes, 2 * HAK_UNIT_BYTES + (1 << 20));
    assert_int_equal(collect_snapshot.events.large_free, frees + 4);
}

STAT_TEST(blocks_cached_in_bins_count_as_in_use) {
    void *block = hak_malloc(64 - HAK_CANARY_BYTES);
    hak_stat_collect(&collect_snapshot);
    assert_int_equal(collect_snapshot.in_use_bytes, 4096); /* one carve */
    hak_free(block);
    hak_stat_collect(&collect_snapshot);
    assert_int_equal(collect_snapshot.in_use_bytes, 4096);
    collect();
    assert_int_equal(collect_snapshot.in_use_bytes, 0);
}

static void *allocate_and_exit(void *context) {
    void **block = context;
    for (unsigned i = 0; i < 100; i++) {
        block[i] = hak_malloc(200);
    }
    return NULL;
}

STAT_TEST(blocks_of_exited_threads_are_counted_exactly) {
    static void *block[4][100];
    pthread_t thread[4];
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, allocate_and_exit, block[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
    }
    collect();
    assert_int_equal(collect_snapshot.in_use_bytes, 400 * 224);
    assert_true(collect_snapshot.tcache_count >= 2);
    for (unsigned i = 0; i < 400; i++) {
        hak_free(block[i / 100][i % 100]);
    }
    hak_malloc_trim(0); /* parked owners drain */
    collect();
    assert_int_equal(collect_snapshot.in_use_bytes, 0);
    assert_int_equal(collect_snapshot.events.slab_create, collect_snapshot.events.slab_retire);
}

STAT_TEST(events_balance_after_everything_is_freed) {
    assert_int_equal(collect_snapshot.events.slab_create, collect_snapshot.events.slab_retire);
    assert_int_equal(collect_snapshot.process.superslab_map,
                     collect_snapshot.process.superslab_unmap);
    assert_int_equal(collect_snapshot.events.large_alloc, collect_snapshot.events.large_free);
    assert_true(collect_snapshot.meta_bytes > 0);
}
