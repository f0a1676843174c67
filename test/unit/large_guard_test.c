/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: what lies behind a huge block and a superslab cannot be written to. */
#include "unit/dies.h"
#include "unit/large.h"

static char *end_of(char *block) {
    return block + hak_large_usable(block, entry_of(block));
}

static void expect_guarded(char *block) {
    assert_int_equal(unit_write_signal(end_of(block) - 1), 0);
    assert_int_equal(unit_write_signal(end_of(block)), SIGSEGV);
    assert_int_equal(unit_write_signal(end_of(block) + HAK_HUGE_GUARD_BYTES - 1), SIGSEGV);
}

LARGE_TEST(huge_block_has_a_guard_behind_it) {
    char *block = large(3u * MIB, 16);
    expect_guarded(block);
}

LARGE_TEST(cached_huge_block_can_be_used_to_its_end_again) {
    char *block = large(6u * MIB, 16);
    large_free(block);
    char *first = large(2u * MIB, 16), *second = large(3u * MIB, 16);
    assert_ptr_equal(first, block);
    memset(first, 1, (size_t)(end_of(first) - first));
    memset(second, 1, (size_t)(end_of(second) - second));
    expect_guarded(first);
    expect_guarded(second);
}

LARGE_TEST(resized_huge_block_has_its_guard_at_the_new_end) {
    static const size_t mib[] = {3, 4, 20, 5, 60, 2};
    char *block = large(2u * MIB, 16);
    for (unsigned i = 0; i < UNIT_COUNT(mib); i++) {
        char *moved = large_resize(block, mib[i] * MIB);
        block = moved != NULL ? moved : block;
        memset(block, 1, (size_t)(end_of(block) - block));
        expect_guarded(block);
    }
}

LARGE_TEST(large_block_that_moves_out_gets_a_guard) {
    char *block = large(1u * MIB, 16);
    memset(block, 0x5a, 1u * MIB);
    char *moved = large_resize(block, 5u * MIB);
    if (moved != NULL) {
        assert_true(unit_is_filled(moved, 1u * MIB, 0x5a));
        expect_guarded(moved);
    }
}

LARGE_TEST(huge_block_without_a_guard_is_no_failure) {
    hak_os_fault_plan(HAK_OS_CALL_COMMIT, 0, 1);
    char *block = large(3u * MIB, 16);
    hak_os_fault_clear();
    memset(block, 1, (size_t)(end_of(block) - block));
}

LARGE_TEST(huge_block_whose_guard_stays_is_unmapped) {
    char *block = large(3u * MIB, 16);
    hak_os_fault_plan(HAK_OS_CALL_COMMIT, 0, 1);
    large_free(block);
    hak_os_fault_clear();
    assert_int_equal(large_stats().huge_cached_bytes, 0);
}

LARGE_TEST(superslab_has_a_guard_behind_it) {
    hak_span_t span = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
    hak_span_t next = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
    assert_int_equal(unit_write_signal(span.base + HAK_SUPERSLAB_BYTES - 1), 0);
    assert_int_equal(unit_write_signal(span.base + HAK_SUPERSLAB_BYTES), SIGSEGV);
    assert_int_equal(unit_write_signal(next.base + HAK_SUPERSLAB_BYTES), SIGSEGV);
}
