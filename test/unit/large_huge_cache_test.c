/* SPDX-License-Identifier: MIT
 *
 * The cache of huge mappings: what it is charged with, and what goes back when. Zeroing of cached
 * memory. */
#include "unit/large.h"

enum { CACHE = 8 * MIB, WINDOWS_NS = 1100 * 1000 * 1000 };

static int cache_begin(void **state) {
    large_begin(state);
    hak_knobs.huge_cache_bytes = CACHE;
    return 0;
}

#define CACHE_TEST(name) UNIT_TEST_WITH(name, cache_begin, large_end)

/* Recent use counts from here on; what earlier tests used is forgotten. The clock stands still: a
 * busy machine shall not decide what is recent. */
static void cache_count_recent_use(void) {
    hak_os_fault_stop_clock();
    hak_os_fault_advance_clock(WINDOWS_NS);
    hak_target_huge();
    hak_knobs.retain_percent = 50;
}

/* `count` blocks of which one byte in `step` is written; then all are freed. Skips the test where
 * the kernel says it takes memory back and keeps it, as qemu's does at some addresses. */
static void cache_fill(unsigned count, size_t bytes, size_t step) {
    char *held[16];
    bool is_taken = true;
    assert_true(count <= UNIT_COUNT(held));
    for (unsigned i = 0; i < count; i++) {
        held[i] = large(bytes, 16);
        UNIT_EXPECT(hak_os_purge(held[i], bytes), "%u", i); /* large() has read all of it */
        is_taken = is_taken && hak_os_resident(held[i], bytes) == 0;
        for (size_t at = 0; at < bytes - GUARD; at += step) {
            held[i][at] = 1;
        }
    }
    large_free_all(held, count);
    if (!is_taken) {
        skip();
    }
}

/* CACHE-2 */
CACHE_TEST(cache_of_sparse_blocks_counts_what_is_resident) {
    cache_fill(7, 4u * MIB, MIB);
    assert_int_equal(large_stats().huge_cached_bytes, 28u * MIB);
}

/* They do not join, because every second one stays in use. */
CACHE_TEST(cache_of_sparse_blocks_apart_counts_what_is_resident) {
    char *held[14];
    for (unsigned i = 0; i < UNIT_COUNT(held); i++) {
        held[i] = large_untouched(4u * MIB - GUARD, 16);
        held[i][0] = 1;
    }
    uint64_t unmapped = hak_os_fault_calls(HAK_OS_CALL_UNMAP);
    for (unsigned i = 0; i < UNIT_COUNT(held); i += 2) {
        large_free(held[i]);
    }
    assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_UNMAP), unmapped);
    assert_int_equal(large_stats().vacant_count, 0);
    assert_int_equal(large_stats().huge_cached_bytes, 28u * MIB);
}

CACHE_TEST(cache_of_dense_blocks_counts_all_of_them) {
    cache_fill(7, 4u * MIB, 4096);
    assert_true(large_stats().huge_cached_bytes <= CACHE + 16 * GUARD); /* which holds nothing */
    assert_true(large_stats().huge_cached_bytes >= CACHE - MIB);
}

/* They look untouched. */
CACHE_TEST(cache_of_blocks_filled_with_zeros_holds_no_more) {
    char *held[7];
    size_t resident = 0;
    for (unsigned i = 0; i < UNIT_COUNT(held); i++) {
        held[i] = hak_large_alloc(HAK_PARTITION_ANY, 4u * MIB - GUARD, 16).block;
        assert_non_null(held[i]);
        memset(held[i], 0, 4u * MIB - GUARD);
    }
    for (unsigned i = 0; i < UNIT_COUNT(held); i++) {
        large_free(held[i]);
    }
    for (unsigned i = 0; i < UNIT_COUNT(held); i++) {
        resident += hak_os_resident(held[i], 4u * MIB - GUARD);
    }
    assert_true(resident <= CACHE || unit_is_emulated());
}

CACHE_TEST(cache_of_untouched_blocks_is_bounded_in_address_space) {
    cache_fill(16, 4u * MIB, 4u * MIB);
    assert_true(large_stats().huge_cached_bytes <= 4u * CACHE);
    assert_true(large_stats().huge_cached_bytes >= 3u * CACHE);
    cache_fill(1, 5u * CACHE, 5u * CACHE);
    assert_true(large_stats().huge_cached_bytes <= 4u * CACHE);
}

/* A load that goes up and down keeps what it used a moment ago; one that ended does not. */
CACHE_TEST(cache_keeps_recent_use_until_the_window_has_passed) {
    cache_count_recent_use();
    cache_fill(8, 4u * MIB, 4096);
    assert_int_equal(large_stats().huge_cached_bytes, 32u * MIB);
    hak_target_huge();
    assert_int_equal(large_stats().huge_cached_bytes, 32u * MIB);
    hak_os_fault_advance_clock(WINDOWS_NS);
    hak_target_huge();
    assert_true(large_stats().huge_cached_bytes <= CACHE);
    assert_true(large_stats().huge_cached_bytes >= CACHE - MIB);
}

/* What nothing in use speaks for is little, however much was in use. */
CACHE_TEST(cache_keeps_a_multiple_of_the_knob_of_recent_use) {
    cache_count_recent_use();
    cache_fill(16, 4u * MIB, 4096);
    assert_true(large_stats().huge_cached_bytes <= 5u * CACHE);
    cache_fill(1, 64u * MIB, 4096);
    assert_true(large_stats().huge_cached_bytes <= 5u * CACHE);
    assert_true(hak_large_trim(0) > 0);
    assert_int_equal(large_stats().huge_cached_bytes, 0);
}

static void window_passes(void) {
    hak_os_fault_advance_clock(400u * 1000 * 1000);
    hak_target_huge();
}

/* 8 MiB of the block, all written to, are below every bound. */
CACHE_TEST(cache_decays_when_nobody_needs_it) {
    hak_os_fault_stop_clock();
    hak_knobs.retain_idle_bytes = MIB;
    window_passes();
    cache_fill(1, CACHE, 4096);
    window_passes(); /* the end of one in which it was in use */
    assert_int_equal(large_stats().huge_cached_bytes, CACHE);
    window_passes();
    assert_true(large_stats().huge_cached_bytes <= 2u * MIB);
    assert_true(large_stats().huge_cached_bytes >= MIB / 2);
    uint64_t unmapped = hak_os_fault_calls(HAK_OS_CALL_UNMAP);
    window_passes();
    assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_UNMAP), unmapped);
    assert_int_equal(large_stats().vacant_count, 0);
}

CACHE_TEST(cache_needed_in_every_window_stays) {
    hak_os_fault_stop_clock();
    hak_knobs.retain_idle_bytes = MIB;
    cache_fill(1, CACHE, 4096);
    uint64_t unmapped = hak_os_fault_calls(HAK_OS_CALL_UNMAP);
    for (unsigned i = 0; i < 5; i++) {
        char *block = large(CACHE / 2, 16); /* the other half is not needed */
        memset(block, 1, CACHE / 2 - GUARD);
        large_free(block);
        if (i == 1) {
            unmapped = hak_os_fault_calls(HAK_OS_CALL_UNMAP);
            assert_true(large_stats().huge_cached_bytes >= CACHE / 2);
        }
        window_passes();
    }
    assert_true(large_stats().huge_cached_bytes >= CACHE / 2 + MIB / 2);
    assert_true(large_stats().huge_cached_bytes <= CACHE / 2 + 2u * MIB);
    assert_true(hak_os_fault_calls(HAK_OS_CALL_UNMAP) <= unmapped + 1);
}

CACHE_TEST(cache_of_untouched_memory_does_not_decay) {
    hak_os_fault_stop_clock();
    hak_knobs.retain_idle_bytes = MIB;
    cache_fill(1, CACHE, CACHE);
    window_passes();
    window_passes();
    assert_int_equal(large_stats().huge_cached_bytes, CACHE);
}

/* A block that is the front of an extent grows into the rest, without a call to the kernel. */
CACHE_TEST(cache_behind_a_block_is_where_it_grows) {
    large_free(large(6u * MIB, 16));
    char *block = large(2u * MIB, 16);
    assert_int_equal(large_stats().huge_cached_bytes, 4u * MIB);
    memset(block, 5, 2u * MIB - GUARD);
    hak_os_fault_plan(HAK_OS_CALL_REMAP, 0, 1u << 30);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    assert_ptr_equal(large_resize(block, 5u * MIB), block);
    assert_int_equal(large_stats().huge_cached_bytes, MIB);
    assert_int_equal(large_stats().huge_in_use_bytes, 5u * MIB);
    assert_null(large_resize(block, 7u * MIB)); /* more than there is */
    assert_ptr_equal(large_resize(block, 6u * MIB), block);
    hak_os_fault_clear();
    assert_int_equal(large_stats().huge_cached_bytes, 0);
    assert_int_equal(hak_large_usable(block, entry_of(block)), 6u * MIB - GUARD);
    assert_true(unit_is_filled(block, 2u * MIB - GUARD, 5));
}

/* Dirty memory of which one byte in `step` was written, zeroed: resident before and after. */
static void zero_case(size_t bytes, size_t step, size_t *before, size_t *after) {
    char *base = hak_os_map(bytes, HAK_UNIT_BYTES);
    for (size_t at = 0; at < bytes; at += step) {
        base[at] = 1;
    }
    *before = hak_os_resident(base, bytes);
    hak_large_zero(base, bytes - 100);
    *after = hak_os_resident(base, bytes);
    assert_true(unit_is_filled(base, bytes - 100, 0));
    assert_true(hak_os_unmap(base, bytes));
}

LARGE_TEST(zero_of_sparse_memory_gives_it_back) {
    size_t before, after;
    zero_case(3u * MIB, MIB, &before, &after);
    assert_true(after <= before);
    zero_case(64u * MIB, 128u << 10, &before, &after);
    assert_true(after <= before);
}

LARGE_TEST(zero_of_dense_memory_keeps_it) {
    size_t before, after;
    zero_case(HAK_UNIT_BYTES, 4096, &before, &after);
    assert_int_equal(after, before);
    zero_case(3u * MIB, 4096, &before, &after);
    assert_int_equal(after, before);
    zero_case(40u * MIB, 4096, &before, &after);
    assert_int_equal(after, before);
}

LARGE_TEST(zero_without_purge_is_still_zero) {
    size_t before, after;
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 1u << 30);
    zero_case(3u * MIB, MIB, &before, &after);
    hak_os_fault_clear();
    char *base = hak_os_map(2u * MIB, HAK_UNIT_BYTES);
    base[0] = 1;
    if (unit_lock_memory(base, HAK_UNIT_BYTES)) { /* the kernel refuses a part of the range */
        base[2 * MIB - 1] = 1;
        hak_large_zero(base, 2u * MIB);
        assert_true(unit_is_filled(base, 2u * MIB, 0));
    }
    assert_true(hak_os_unmap(base, 2u * MIB));
}
