/* SPDX-License-Identifier: MIT
 *
 * So many huge blocks that mappings could run short: what is left between them stays mapped, and
 * serves others. */
#include "unit/large.h"

enum { CROWD_ALWAYS = 1 << 30, CROWD = 8400, CROWD_FREED = 200, CROWD_MOVED = (1 << 13) + 1 };

static char *crowd[CROWD];

static void crowd_make(void) {
    UNIT_TAKE_ALL(crowd, CROWD, large_untouched(MIB + 1, 16));
    hak_knobs.huge_cache_bytes = 0;
    hak_os_fault_clear();
}

static void crowd_free(void) {
    for (unsigned i = 0; i < CROWD; i++) {
        assert_true(crowd[i] == NULL || hak_large_free(crowd[i], entry_of(crowd[i])));
    }
    hak_large_trim(0);
    assert_int_equal(large_stats().vacant_count, 0);
    assert_int_equal(large_stats().huge_cached_bytes, 0);
}

/* Of many blocks, those freed between two stay mapped, so that the process has mappings left. */
LARGE_TEST(vacant_ranges_of_many_blocks_stay_until_there_are_few) {
    crowd_make();
    for (unsigned i = 0; i < CROWD_FREED; i += 2) {
        assert_true(hak_large_free(crowd[i], entry_of(crowd[i])));
    }
    assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_UNMAP), 0);
    hak_target_huge();
    assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_UNMAP), 0);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, CROWD_ALWAYS);
    for (unsigned i = 0; i < CROWD_FREED; i += 2) {
        crowd[i] = large_untouched(MIB + 1, 16);
    }
    hak_os_fault_clear();
    crowd_free();
}

/* Moved blocks are mappings of their own: beyond so many, they are copied. */
LARGE_TEST(moves_of_many_blocks_end_where_mappings_could_run_short) {
    crowd_make();
    unsigned moved = 0;
    for (unsigned i = 0; i < CROWD; i++) {
        char *block = hak_large_resize(crowd[i], entry_of(crowd[i]), 4u * MIB);
        moved += block != NULL && block != crowd[i];
        crowd[i] = block != NULL ? block : crowd[i];
        assert_true(hak_large_usable(crowd[i], entry_of(crowd[i])) > MIB);
    }
    assert_true(moved > 0 && moved <= CROWD_MOVED);
    crowd_free();
}

LARGE_TEST(gap_that_would_be_locked_in_memory_is_not_mapped) {
    crowd_make();
    char *aligned = large(HAK_UNIT_BYTES, 8u * MIB);
    assert_true(large_stats().vacant_count > 0);
    assert_true(hak_large_free(aligned, entry_of(aligned)));
    hak_large_trim(0);
    size_t bytes = large_stats().huge_cached_bytes;
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 1);        /* as of locked memory */
    aligned = large_untouched(bytes + MIB, 64u * MIB); /* more than any vacant range has */
    assert_true(hak_os_fault_calls(HAK_OS_CALL_PURGE) > 0);
    hak_os_fault_clear();
    assert_true(large_stats().huge_cached_bytes <= bytes);
    assert_true(hak_large_free(aligned, entry_of(aligned)));
    crowd_free();
}

/* Unmapping all of them would not make room for it. */
LARGE_TEST(hopeless_request_leaves_vacant_ranges_of_many_blocks) {
    crowd_make();
    for (unsigned i = 0; i < CROWD_FREED; i += 2) {
        assert_true(hak_large_free(crowd[i], entry_of(crowd[i])));
        crowd[i] = NULL;
    }
    size_t bytes = large_stats().huge_cached_bytes;
    assert_true(bytes >= (size_t)CROWD_FREED / 2 * MIB);
    assert_null(hak_large_alloc(HAK_PARTITION_ANY, (size_t)1 << 47, 16).block);
    assert_int_equal(large_stats().huge_cached_bytes, bytes);
    crowd_free();
}

/* Records are not walked where there are many. */
LARGE_TEST(addresses_in_many_blocks_are_known) {
    int elsewhere = 0;
    crowd_make();
    for (unsigned i = 0; i < CROWD; i += 7) {
        assert_true(hak_large_covers(crowd[i]));
        assert_true(hak_large_covers(crowd[i] + MIB));
    }
    assert_false(hak_large_covers(&elsewhere));
    assert_false(hak_large_covers((void *)16));
    assert_true(hak_large_free(crowd[1], entry_of(crowd[1])));
    assert_true(hak_large_covers(crowd[1] + MIB)); /* vacant */
    crowd[1] = NULL;
    crowd_free();
}
