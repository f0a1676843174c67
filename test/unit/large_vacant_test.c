/* SPDX-License-Identifier: MIT
 *
 * Freed huge blocks that the kernel does not unmap: they hold no memory, serve again, and go later.
 */
#include "unit/large.h"

enum { VACANT_ALWAYS = 1 << 30, PARTS = 3, PART = 4 * MIB };

/* Neighbours, cut from one mapping. */
static void vacant_parts(char *part[PARTS]) {
    char *whole = large((size_t)PARTS * PART, 16);
    large_free(whole);
    for (unsigned i = 0; i < PARTS; i++) {
        part[i] = large(PART, 16);
        assert_ptr_equal(part[i], whole + (size_t)i * PART);
        memset(part[i], 5, PART - GUARD);
    }
}

static void vacant_make(char *block) {
    large_free(block);
    hak_os_fault_plan(HAK_OS_CALL_UNMAP, 0, VACANT_ALWAYS);
    hak_large_trim(0);
    large_fault_clear();
    assert_int_equal(large_stats().huge_cached_dirty_bytes, 0);
}

static void vacant_is(size_t count, size_t bytes) {
    assert_int_equal(large_stats().vacant_count, count);
    assert_int_equal(large_stats().huge_cached_bytes, bytes);
}

UNTOLD_TEST(vacant_range_serves_again_and_reads_zero) {
    char *part[PARTS];
    vacant_parts(part);
    vacant_make(part[1]);
    vacant_is(1, PART);
    assert_true(hak_os_resident(part[1], PART) < PART / 2 || unit_is_emulated());
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, VACANT_ALWAYS);
    hak_large_result_t again = hak_large_alloc(HAK_PARTITION_ANY, PART - GUARD, 16);
    large_fault_clear();
    assert_ptr_equal(again.block, part[1]);
    assert_true(again.is_zero);
    assert_true(unit_is_filled(part[1], PART - GUARD, 0));
    vacant_is(0, 0);
}

/* VACANT-1 */
UNTOLD_TEST(vacant_range_is_no_block) {
    char *part[PARTS];
    vacant_parts(part);
    vacant_make(part[1]);
    char *ends[] = {part[1], part[2] - HAK_UNIT_BYTES};
    for (unsigned i = 0; i < UNIT_COUNT(ends); i++) {
        assert_int_equal(entry_of(ends[i]) & HAK_KIND_MASK, HAK_KIND_VACANT);
        assert_int_equal(hak_large_usable(ends[i], entry_of(part[0])), 0);
        assert_true(hak_large_covers(ends[i]));
    }
}

/* VACANT-2 */
UNTOLD_TEST(vacant_ranges_join_and_go_with_their_neighbours) {
    static const unsigned orders[6][PARTS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                              {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (unsigned i = 0; i < UNIT_COUNT(orders); i++) {
        char *part[PARTS];
        vacant_parts(part);
        vacant_make(part[orders[i][0]]);
        vacant_make(part[orders[i][1]]);
        bool are_apart = orders[i][2] == 1;
        vacant_is(are_apart ? 2 : 1, (size_t)2 * PART);
        if (i % 2 == 0) {
            vacant_make(part[orders[i][2]]);
            vacant_is(1, (size_t)PARTS * PART);
        } else {
            large_free(part[orders[i][2]]);
        }
        hak_large_trim(0);
        vacant_is(0, 0);
        for (unsigned k = 0; k < PARTS; k++) {
            assert_false(hak_os_is_readable(part[k]));
            assert_int_equal(entry_of(part[k]), 0);
        }
    }
}

/* What lies before and behind an aligned part stays, and is joined again. */
UNTOLD_TEST(vacant_range_serves_aligned_requests_from_its_middle) {
    char *whole = large(9u * MIB, 4u * MIB);
    large_free(whole);
    char *front = large(2u * MIB, 16); /* of the same mapping: the rest is unaligned */
    assert_ptr_equal(front, whole);
    hak_os_fault_plan(HAK_OS_CALL_UNMAP, 0, VACANT_ALWAYS);
    hak_large_trim(0);
    large_fault_clear();
    vacant_is(1, 7u * MIB);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, VACANT_ALWAYS);
    char *aligned = large(2u * MIB, 4u * MIB);
    large_fault_clear();
    assert_ptr_equal(aligned, whole + 4u * MIB);
    vacant_is(2, 5u * MIB);
    vacant_make(aligned);
    vacant_is(1, 7u * MIB);
}

UNTOLD_TEST(vacant_range_that_keeps_its_memory_is_not_said_to_be_zero) {
    char *part[PARTS];
    vacant_parts(part);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, VACANT_ALWAYS);
    vacant_make(part[1]);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, VACANT_ALWAYS);
    hak_large_result_t again = hak_large_alloc(HAK_PARTITION_ANY, PART - GUARD, 16);
    large_fault_clear();
    assert_ptr_equal(again.block, part[1]);
    assert_false(again.is_zero && !unit_is_filled(again.block, PART - GUARD, 0));
}

LARGE_TEST(vacant_range_joined_with_one_that_keeps_its_memory_is_not_said_to_be_zero) {
    char *part[PARTS];
    vacant_parts(part);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, VACANT_ALWAYS);
    vacant_make(part[1]);
    vacant_make(part[0]);
    vacant_is(1, (size_t)2 * PART);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, VACANT_ALWAYS);
    hak_large_result_t both = hak_large_alloc(HAK_PARTITION_ANY, 2 * PART - GUARD, 16);
    hak_os_fault_clear();
    assert_ptr_equal(both.block, part[0]);
    assert_false(both.is_zero && !unit_is_filled(part[1], PART - GUARD, 0));
    large_free(part[0]);
    large_free(part[2]);
}

UNTOLD_TEST(vacant_range_behind_a_block_is_where_it_grows) {
    char *part[PARTS];
    vacant_parts(part);
    vacant_make(part[1]);
    hak_os_fault_plan(HAK_OS_CALL_REMAP, 0, VACANT_ALWAYS);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, VACANT_ALWAYS);
    assert_ptr_equal(large_resize(part[0], 6u * MIB), part[0]);
    large_fault_clear();
    vacant_is(1, 2u * MIB);
    assert_true(unit_is_filled(part[0], PART - GUARD, 5));
    assert_true(unit_is_filled(part[0] + PART, 2u * MIB - GUARD, 0));
}

UNTOLD_TEST(vacant_range_goes_at_an_event) {
    char *part[PARTS];
    vacant_parts(part);
    vacant_make(part[1]);
    for (unsigned i = 0; i < 100; i++) { /* each asks about some records */
        hak_target_huge();
    }
    vacant_is(0, 0);
    assert_false(hak_os_is_readable(part[1]));
}

static size_t below(uint64_t *rng, size_t bound) {
    return hak_rng_next(rng) % bound;
}

/* Whatever the kernel refuses when: what blocks hold is theirs, nothing is lost. */
UNTOLD_TEST(vacant_ranges_under_random_refusals_add_up) {
    char *held[48] = {0};
    size_t sizes[UNIT_COUNT(held)] = {0};
    uint64_t rng = 19;
    for (unsigned step = 0; step < 4000; step++) {
        size_t i = below(&rng, UNIT_COUNT(held));
        if (held[i] != NULL) {
            assert_int_equal(held[i][0], (char)i);
            assert_int_equal(held[i][sizes[i] - 1], (char)i);
            large_free(held[i]);
            held[i] = NULL;
        } else {
            size_t align = (size_t)HAK_UNIT_BYTES << below(&rng, 8);
            sizes[i] = MIB + 1 + below(&rng, 6 * MIB);
            hak_large_result_t result = hak_large_alloc(HAK_PARTITION_ANY, sizes[i], align);
            held[i] = result.block;
            assert_non_null(held[i]);
            assert_int_equal((uintptr_t)held[i] % align, 0);
            assert_true(!result.is_zero || (held[i][0] == 0 && held[i][sizes[i] - 1] == 0));
            held[i][0] = held[i][sizes[i] - 1] = (char)i;
        }
        if (step % 8 == 0) {
            large_fault_clear();
            hak_os_fault_plan(HAK_OS_CALL_UNMAP, below(&rng, 4), below(&rng, 40));
            hak_large_trim(below(&rng, 32 * MIB));
        }
    }
    large_fault_clear();
    for (size_t i = 0; i < UNIT_COUNT(held); i++) {
        if (held[i] != NULL) {
            large_free(held[i]);
        }
    }
    hak_large_trim(0);
    vacant_is(0, 0);
}

UNTOLD_TEST(resize_that_fails_leaves_the_block_as_it_was) {
    char *part[PARTS];
    vacant_parts(part);
    vacant_make(part[1]);
    assert_null(large_resize(part[0], (size_t)1 << 60));
    assert_int_equal(hak_large_usable(part[0], entry_of(part[0])), PART - GUARD);
}
