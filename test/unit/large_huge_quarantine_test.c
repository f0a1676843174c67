/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: freed large blocks are inaccessible for a while, within a budget. */
#include "large/huge_quarantine.h"
#include "large/huge_record.h"
#include "unit/dies.h"
#include "unit/large.h"

enum { MID = 300000 }; /* a span elsewhere */

/* guarded.h; only for blocks with none of others before. */
static bool is_guarded(const char *block) {
    return entry_of(block) == HAK_KIND_LARGE &&
           (entry_of(block - 1) & HAK_KIND_MASK) == HAK_KIND_LARGE_BODY;
}

static int begin(void **state) {
    large_begin(state);
    hak_os_fault_stop_clock(); /* the budget is one of a time */
    hak_large_quarantine_switch(true);
    return 0;
}

#define HOLD_TEST(name) UNIT_TEST_WITH(name, begin, large_end)

static bool is_known(const void *address) { /* a second free is told as one */
    return hak_large_covers(address) || hak_pagemap_superslab(address) != NULL;
}

static void expect_inaccessible(char *block) {
    assert_true(is_known(block));
    assert_int_equal(unit_write_signal(block), SIGSEGV);
}

HOLD_TEST(freed_block_is_inaccessible_and_known) {
    static const size_t sizes[] = {70000, MID, 1u * MIB, 3u * MIB, 20u * MIB};
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        char *block = large_untouched(sizes[i], 16);
        memset(block, 1, sizes[i] < MIB ? sizes[i] : MID);
        large_free(block);
        expect_inaccessible(block);
        assert_true(is_known(block + sizes[i] / 2));
        char *next = large_untouched(sizes[i], 16);
        assert_ptr_not_equal(next, block);
        assert_int_equal(next[0], 0);
        large_free(next);
    }
}

HOLD_TEST(block_of_a_span_size_has_a_guard) {
    char *block = large_untouched(MID, 16);
    char *end = block + hak_large_usable(block, entry_of(block));
    assert_true(is_guarded(block));
    assert_int_equal(unit_write_signal(end - 1), 0);
    assert_int_equal(unit_write_signal(end), SIGSEGV);
}

HOLD_TEST(moved_block_leaves_an_inaccessible_place) {
    char *block = large_untouched(MID, 16);
    (void)large_untouched(MID, 16); /* below it */
    memset(block, 0x5a, MID);
    char *moved = large_resize(block, 5u * MIB);
    assert_non_null(moved);
    assert_true(unit_is_filled(moved, MID, 0x5a));
    if (moved != block) {
        expect_inaccessible(block);
    }
}

HOLD_TEST(oldest_block_leaves_first) {
    enum { COUNT = 100 };
    char *block[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = large_untouched(2u * MIB, 16);
        large_free(block[i]);
    }
    assert_true(hak_huge_quarantine_covers(block[COUNT - 1]));
    assert_true(hak_huge_quarantine_covers(block[COUNT - 10]));
    hak_large_trim(0);
    assert_false(hak_huge_quarantine_covers(block[COUNT - 1]));
}

/* Each of these is written to, so each may cost as many faults as it has OS pages. */
static unsigned written_and_freed(unsigned most) {
    unsigned count = 0;
    for (; count < most; count++) {
        char *block = large_untouched(MID, 16);
        bool has_guards = is_guarded(block);
        memset(block, 1, MID);
        large_free(block);
        if (!has_guards) {
            break;
        }
    }
    return count;
}

HOLD_TEST(budget_ends_and_time_renews_it) {
    unsigned at_first = written_and_freed(1000);
    assert_in_range(at_first, 4096 / 2 / 10, 4096 / 10); /* what half of it cleared, or all of it */
    assert_int_equal(written_and_freed(1000), 0);
    hak_os_fault_advance_clock(1000000000);
    assert_in_range(written_and_freed(1000), 4096 / 2 / 10, 4096 / 10);
}

HOLD_TEST(untouched_blocks_cost_little) {
    for (unsigned i = 0; i < 100; i++) {
        char *block = large_untouched(MID, 16);
        assert_true(is_guarded(block));
        block[0] = 1;
        large_free(block);
    }
}

HOLD_TEST(refused_calls_lose_nothing) {
    static const hak_os_call_t calls[] = {HAK_OS_CALL_CONCEAL, HAK_OS_CALL_PURGE, HAK_OS_CALL_UNMAP,
                                          HAK_OS_CALL_COMMIT};
    for (unsigned i = 0; i < UNIT_COUNT(calls); i++) {
        char *block = large_untouched(3u * MIB, 16);
        memset(block, 1, MID);
        hak_os_fault_plan(calls[i], 0, 3);
        large_free(block);
        hak_large_trim(0);
        hak_os_fault_clear();
        char *next = large_untouched(3u * MIB, 16);
        memset(next, 2, 3u * MIB - GUARD);
        large_free(next);
    }
}

LARGE_TEST(nothing_is_held_back_without_it) {
    char *block = large_untouched(MID, 16);
    assert_false(is_guarded(block));
    large_free(block);
    assert_false(hak_huge_quarantine_covers(block));
    assert_false(hak_huge_quarantine_flush());
}
