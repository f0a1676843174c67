/* SPDX-License-Identifier: MIT
 *
 * Huge blocks: mappings of their own, and the cache of freed ones. */
#include "unit/large.h"

UNTOLD_TEST(huge_block_has_one_entry_and_is_zero) {
    char *block = large(3u * MIB + 1, 16);
    assert_int_equal(entry_of(block) & HAK_KIND_MASK, HAK_KIND_HUGE);
    assert_int_equal(entry_of(block + HAK_UNIT_BYTES), 0); /* HUGE-1 */
    assert_int_equal(hak_large_usable(block + HAK_UNIT_BYTES, entry_of(block)), 0);
    assert_false(hak_large_free(block + HAK_UNIT_BYTES, entry_of(block)));
    assert_false(hak_large_free(block + 16, entry_of(block)));
    assert_int_equal(large_stats().huge_count, 1);
    assert_int_equal(large_stats().huge_in_use_bytes, 3u * MIB + HAK_UNIT_BYTES);
}

/* Spans and mappings, of which some stay meanwhile. */
UNTOLD_TEST(block_of_every_alignment_is_aligned) {
    for (size_t align = 16; align <= 64u * MIB; align *= 2) {
        large_free(large(2u * MIB, align));
        (void)large(3 * HAK_UNIT_BYTES, align);
    }
}

typedef struct freed {
    char *block;
    uint32_t entry;
    bool is_freed;
} freed_t;

static void *free_it(void *context) {
    freed_t *it = context;
    it->is_freed = hak_large_free(it->block, it->entry);
    return NULL;
}

/* It waits for the lock, and knows the block; the other thread has the lock, and the block moves.
 */
UNTOLD_TEST(block_that_went_before_its_free_has_the_lock_is_left_alone) {
    freed_t it = {.block = large(2u * MIB, 16)};
    it.entry = entry_of(it.block);
    hak_huge_t *record = hak_huge_at(it.entry >> 8);
    pthread_t thread;
    hak_lock_acquire(HAK_LOCK_HUGE);
    assert_int_equal(pthread_create(&thread, NULL, free_it, &it), 0);
    while (hak_load_relaxed(&hak_locks[HAK_LOCK_HUGE].state) != 2) {
        sched_yield();
    }
    record->base = NULL;
    hak_pagemap_set(it.block, 1, 0);
    hak_lock_release(HAK_LOCK_HUGE);
    pthread_join(thread, NULL);
    assert_false(it.is_freed);
    assert_int_equal(large_stats().huge_count, 1);
    hak_pagemap_set(it.block, 1, it.entry);
    record->base = it.block;
    large_free(it.block);
}

UNTOLD_TEST(huge_freed_comes_back_from_the_cache_not_zero) {
    uint64_t hits = hak_counters.huge_hit;
    char *block = large(2u * MIB, 16);
    memset(block, 9, 2u * MIB - GUARD);
    large_free(block);
    assert_int_equal(large_stats().huge_cached_bytes, 2u * MIB);
    hak_large_result_t again = hak_large_alloc(HAK_PARTITION_ANY, 2u * MIB - GUARD, 16);
    assert_ptr_equal(again.block, block);
    assert_false(again.is_zero);
    assert_int_equal(hak_counters.huge_hit, hits + 1);
    assert_int_equal(large_stats().huge_cached_bytes, 0);
}

/* CACHE-1: three neighbours freed in any order join: their sum is served at the lowest address. */
UNTOLD_TEST(huge_neighbours_join_in_the_cache) {
    static const unsigned orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (unsigned i = 0; i < 6; i++) {
        char *whole = large(6u * MIB, 16);
        large_free(whole);
        char *part[3]; /* cut from the front of one extent, so they are neighbours */
        for (unsigned k = 0; k < 3; k++) {
            part[k] = large(2u * MIB, 16);
            assert_ptr_equal(part[k], whole + (size_t)k * 2 * MIB);
        }
        for (unsigned k = 0; k < 3; k++) {
            large_free(part[orders[i][k]]);
            assert_int_equal(large_stats().huge_cached_bytes, (k + 1) * 2u * MIB);
        }
        uint64_t hits = hak_counters.huge_hit;
        char *again = large(6u * MIB, 16);
        assert_ptr_equal(again, whole);
        assert_int_equal(hak_counters.huge_hit, hits + 1);
        large_free(again);
    }
}

UNTOLD_TEST(huge_cache_stays_below_its_bound) {
    char *held[24];
    hak_knobs.huge_cache_bytes = 8u * MIB;
    UNIT_TAKE_ALL(held, UNIT_COUNT(held), large(2u * MIB, 16));
    for (unsigned i = 0; i < UNIT_COUNT(held); i++) {
        large_free(held[i]);
        size_t share = large_stats().huge_in_use_bytes / 8;
        size_t bound = share > 8u * MIB ? share : 8u * MIB;
        assert_true(large_stats().huge_cached_bytes <= bound);
    }
    assert_true(large_stats().huge_cached_bytes >= 6u * MIB);
    large_free(large(32u * MIB, 16)); /* above the bound: not kept */
    assert_true(large_stats().huge_cached_bytes <= 8u * MIB);
    assert_true(hak_large_trim(2u * MIB) > 0);
    assert_true(large_stats().huge_cached_bytes <= 2u * MIB);
}

UNTOLD_TEST(huge_cache_of_scattered_extents_is_bounded_in_number) {
    enum { EXTENTS = 512, COUNT = 2 * EXTENTS + 100 };
    static char *held[COUNT];
    hak_knobs.huge_cache_bytes = (size_t)1 << 40;
    for (unsigned i = 0; i < COUNT; i++) {
        held[i] = large(MIB + HAK_UNIT_BYTES, 16);
        held[i][0] = (char)i;
    }
    for (unsigned i = 0; i < COUNT; i += 2) {
        large_free(held[i]);
    }
    assert_int_equal(large_stats().huge_cached_bytes, EXTENTS * (MIB + HAK_UNIT_BYTES));
    for (unsigned i = 1; i < COUNT; i += 2) {
        assert_int_equal(held[i][0], (char)i);
        large_free(held[i]);
    }
    size_t cached = large_stats().huge_cached_bytes;
    assert_int_equal(hak_large_trim(0), cached);
}

UNTOLD_TEST(huge_resize_grows_and_shrinks_in_place) {
    char *block = large(8u * MIB, 16);
    memset(block, 5, 8u * MIB - GUARD);
    assert_ptr_equal(large_resize(block, 8u * MIB - 100), block);
    assert_ptr_equal(large_resize(block, 2u * MIB), block);
    assert_int_equal(hak_large_usable(block, entry_of(block)), 2u * MIB - GUARD);
    assert_int_equal(large_stats().huge_in_use_bytes, 2u * MIB);
    assert_int_equal(large_stats().huge_cached_bytes, 6u * MIB);
    assert_int_equal(hak_large_trim(0), 6u * MIB);
    assert_false(hak_os_is_readable(block + 2u * MIB));
    assert_ptr_equal(large_resize(block, 6u * MIB), block); /* into the gap it left */
    assert_true(unit_is_filled(block, 2u * MIB - GUARD, 5));
    assert_true(unit_is_filled(block + 2u * MIB, 4u * MIB - GUARD, 0));
    assert_null(large_resize(block, HAK_UNIT_BYTES));
}

UNTOLD_TEST(huge_resize_against_a_neighbour_moves_pages) {
    char *both = large(4u * MIB, 16);
    large_free(both);
    char *block = large(2u * MIB, 16);
    char *wall = large(2u * MIB, 16);
    assert_ptr_equal(wall, block + 2u * MIB);
    memset(block, 5, 2u * MIB - GUARD);
    memset(wall, 6, 2u * MIB - GUARD);
    uint64_t copied = hak_counters.realloc_copied_bytes;
    char *again = large_resize(block, 16u * MIB);
    assert_non_null(again);
    assert_ptr_not_equal(again, block);
    assert_int_equal(hak_counters.realloc_copied_bytes, copied);
    assert_int_equal(entry_of(block), 0);
    assert_false(hak_os_is_readable(block));
    assert_true(unit_is_filled(again, 2u * MIB - GUARD, 5));
    assert_true(unit_is_filled(again + 2u * MIB, 14u * MIB - GUARD, 0));
    assert_true(unit_is_filled(wall, 2u * MIB - GUARD, 6));
}

static uint64_t kernel_calls(void) {
    return hak_os_fault_calls(HAK_OS_CALL_MAP) + hak_os_fault_calls(HAK_OS_CALL_REMAP) +
           hak_os_fault_calls(HAK_OS_CALL_UNMAP) + hak_os_fault_calls(HAK_OS_CALL_PURGE);
}

UNTOLD_TEST(huge_shrink_and_growth_again_make_no_kernel_call) {
    char *block = large(6u * MIB, 16);
    memset(block, 5, 6u * MIB - GUARD);
    uint64_t before = kernel_calls();
    for (unsigned i = 0; i < 100; i++) {
        assert_ptr_equal(large_resize(block, (2u + i % 3) * MIB), block);
        assert_int_equal(large_stats().huge_cached_bytes, (4u - i % 3) * MIB);
        assert_int_equal(large_stats().huge_in_use_bytes, (2u + i % 3) * MIB);
        assert_ptr_equal(large_resize(block, 6u * MIB), block);
        assert_int_equal(large_stats().huge_cached_bytes, 0);
    }
    assert_int_equal(kernel_calls(), before);
    assert_true(hak_os_resident(block, 6u * MIB) >= 6u * MIB - GUARD);
    assert_true(unit_is_filled(block, 2u * MIB - GUARD, 5));
}

/* The end of what was given up went back; what is left need not be faulted in, wherever it is
 * (CACHE-3). */
UNTOLD_TEST(huge_growth_takes_what_is_left_of_a_shrink_along) {
    for (unsigned is_walled = 0; is_walled < 2; is_walled++) {
        char *block = large(12u * MIB, 16);
        memset(block, 5, 12u * MIB - GUARD);
        assert_ptr_equal(large_resize(block, 4u * MIB), block);
        assert_int_equal(hak_large_trim(5u * MIB), 3u * MIB);
        hak_os_fault_plan(HAK_OS_CALL_REMAP, 0, is_walled); /* not in place */
        block = large_resize(block, 12u * MIB);
        large_fault_clear();
        assert_non_null(block);
        assert_int_equal(large_stats().huge_cached_bytes, 0);
        assert_int_equal(large_stats().huge_in_use_bytes, 12u * MIB);
        assert_int_equal(hak_os_resident(block, 9u * MIB), 9u * MIB);
        assert_true(unit_is_filled(block, 4u * MIB - GUARD, 5));
        assert_true(unit_is_filled(block + 9u * MIB, 3u * MIB - GUARD, 0));
        large_free(block);
        hak_large_trim(0);
    }
}

UNTOLD_TEST(huge_resize_failing_anywhere_leaves_it_whole) {
    static const struct {
        hak_os_call_t call;
        size_t bytes;
    } fails[] = {{HAK_OS_CALL_MAP, 16u * MIB}, {HAK_OS_CALL_REMAP, 7u * MIB}};
    char *block = large(2u * MIB, 16);
    memset(block, 5, 2u * MIB - GUARD);
    for (unsigned i = 0; i < UNIT_COUNT(fails); i++) {
        hak_os_fault_plan(HAK_OS_CALL_REMAP, 0, 1); /* not in place */
        hak_os_fault_plan(fails[i].call, 0, 1u << 30);
        char *again = large_resize(block, fails[i].bytes);
        large_fault_clear();
        assert_true(again == NULL || again == block);
        assert_int_equal(large_stats().huge_in_use_bytes, 2u * MIB);
        assert_int_equal(hak_large_usable(block, entry_of(block)), 2u * MIB - GUARD);
        assert_true(unit_is_filled(block, 2u * MIB - GUARD, 5));
    }
}

UNTOLD_TEST(huge_block_that_cannot_move_is_copied_without_untouched_pages) {
    char *block = large(12u * MIB, 16);
    memset(block + 4u * MIB, 5, MIB);
    hak_os_fault_plan(HAK_OS_CALL_REMAP, 0, 1u << 30);
    char *again = large_resize(block, 16u * MIB);
    large_fault_clear();
    assert_true(again != NULL && again != block);
    assert_int_equal(hak_os_resident(again, 16u * MIB - GUARD), MIB);
    assert_true(unit_is_filled(again + 4u * MIB, MIB, 5));
    assert_true(unit_span_reads_zero(again, 4u * MIB));
    assert_true(unit_span_reads_zero(again + 5u * MIB, 11u * MIB - GUARD));
    assert_int_equal(large_stats().huge_in_use_bytes, 16u * MIB);
}

UNTOLD_TEST(huge_unmap_refused_gives_the_memory_back) {
    char *block = large(4u * MIB, 16);
    memset(block, 5, 4u * MIB - GUARD);
    large_free(block);
    hak_os_fault_plan(HAK_OS_CALL_UNMAP, 0, 1u << 30);
    assert_int_equal(hak_large_trim(0), 4u * MIB);
    large_fault_clear();
    assert_int_equal(large_stats().huge_cached_dirty_bytes, 0);
    assert_int_equal(large_stats().huge_cached_bytes, 4u * MIB); /* addresses */
    assert_true(unit_is_filled(block, 4u * MIB, 0));
    hak_large_trim(0);
    assert_false(hak_os_is_readable(block));
}

UNTOLD_TEST(huge_records_are_reused) {
    large_free(large(2u * MIB, 16));
    size_t before = hak_meta_bytes();
    for (unsigned i = 0; i < 3000; i++) {
        large_free(large(2u * MIB, 16));
    }
    assert_int_equal(hak_meta_bytes(), before);
}
