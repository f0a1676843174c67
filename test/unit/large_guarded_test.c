/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: large blocks of superslabs between guards, and held back after their free. */
#include "large/guarded.h"
#include "unit/dies.h"
#include "unit/large.h"

#include <sys/mman.h>

enum { GUARDED_BYTES = 300000, GUARDED_RING = 32 };

static int guarded_begin(void **state) {
    large_begin(state);
    hak_os_fault_stop_clock(); /* the budget is one of a time */
    hak_large_quarantine_switch(true);
    return 0;
}

#define GUARDED_TEST(name) UNIT_TEST_WITH(name, guarded_begin, large_end)

static char *guarded_take(size_t bytes) {
    char *block = large_untouched(bytes, 16);
    assert_int_equal(entry_of(block), HAK_KIND_LARGE);
    return block;
}

static char *guarded_end_of(char *block) {
    return block + hak_large_usable(block, entry_of(block));
}

static size_t in_use(void) {
    hak_span_stats_t stats;
    hak_span_stats(&stats);
    return stats.in_use_bytes;
}

/* GUARDED-1 */
GUARDED_TEST(block_lies_between_two_guards) {
    static const size_t sizes[] = {70000, GUARDED_BYTES, 1u * MIB};
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        char *block = guarded_take(sizes[i]), *end = guarded_end_of(block);
        assert_int_equal(unit_write_signal(block), 0);
        assert_int_equal(unit_write_signal(end - 1), 0);
        assert_int_equal(unit_write_signal(block - 1), SIGSEGV);
        assert_int_equal(unit_write_signal(end), SIGSEGV);
        assert_int_equal(entry_of(block - 1) & HAK_KIND_MASK, HAK_KIND_LARGE_BODY);
        assert_int_equal(entry_of(end) & HAK_KIND_MASK, HAK_KIND_LARGE_BODY);
    }
}

/* GUARDED-2 */
GUARDED_TEST(freed_block_is_inaccessible_until_the_ring_is_full) {
    char *block[GUARDED_RING + 1];
    size_t before = in_use();
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
        block[i] = guarded_take(70000);
        memset(block[i], 1, 70000);
    }
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
        large_free(block[i]);
        assert_int_equal(entry_of(block[i]), 0);
        assert_int_equal(entry_of(block[i] - 1), 0);
        assert_int_equal(unit_write_signal(block[i]), SIGSEGV);
    }
    assert_int_equal(unit_write_signal(block[1]), SIGSEGV);
    assert_int_equal(unit_write_signal(block[0]), 0); /* memory of nobody */
    assert_true(hak_guarded_flush());
    assert_false(hak_guarded_flush());
    assert_int_equal(unit_write_signal(block[1]), 0);
    assert_int_equal(unit_write_signal(block[1] - 1), 0);
    assert_int_equal(in_use(), before);
}

GUARDED_TEST(what_is_held_back_is_at_most_4_mib) {
    size_t before = in_use();
    for (unsigned i = 0; i < 20; i++) {
        large_free(guarded_take(1u * MIB));
    }
    assert_in_range(in_use() - before, 3u * MIB, 5u * MIB); /* with guards */
    hak_large_trim(0);
    assert_int_equal(in_use(), before);
}

/* As long as half of the budget is left. */
GUARDED_TEST(reused_block_is_zero) {
    bool is_again = false;
    char *first = guarded_take(GUARDED_BYTES);
    memset(first, 0x5a, GUARDED_BYTES);
    large_free(first);
    hak_large_trim(0);
    char *next = guarded_take(GUARDED_BYTES);
    is_again = next == first;
    assert_true(is_again);
    assert_true(unit_is_filled(next, GUARDED_BYTES, 0));
}

GUARDED_TEST(resized_block_keeps_its_guards_or_is_left_to_a_copy) {
    size_t before = in_use();
    char *block = guarded_take(GUARDED_BYTES);
    memset(block, 1, GUARDED_BYTES);
    assert_ptr_equal(large_resize(block, GUARDED_BYTES), block);
    assert_ptr_equal(large_resize(block, 200000), block);
    assert_null(large_resize(block, 100000));
    assert_ptr_equal(large_resize(block, 400000), block); /* 7 units and 2 guards */
    assert_true(unit_is_filled(block, GUARDED_BYTES, 1));
    memset(block, 1, 400000);
    assert_int_equal(unit_write_signal(guarded_end_of(block)), SIGSEGV);
    assert_int_equal(entry_of(guarded_end_of(block)) & HAK_KIND_MASK, HAK_KIND_LARGE_BODY);
    assert_int_equal(in_use() - before, 9u * HAK_UNIT_BYTES);
    large_free(block);
    assert_int_equal(unit_write_signal(block), SIGSEGV);
    hak_large_trim(0);
    assert_int_equal(in_use(), before);
}

GUARDED_TEST(refused_growth_leaves_the_block_as_it_was) {
    static const hak_os_call_t calls[] = {HAK_OS_CALL_CONCEAL, HAK_OS_CALL_COMMIT};
    size_t before = in_use();
    for (unsigned i = 0; i < UNIT_COUNT(calls); i++) {
        hak_large_quarantine_switch(true);
        char *block = guarded_take(GUARDED_BYTES);
        hak_os_fault_plan(calls[i], 0, 1);
        assert_null(large_resize(block, 400000));
        hak_os_fault_clear();
        assert_int_equal(in_use() - before, 7u * HAK_UNIT_BYTES);
        assert_int_equal(unit_write_signal(guarded_end_of(block)), SIGSEGV);
        assert_int_equal(unit_write_signal(guarded_end_of(block) - 1), 0);
        large_free(block);
        hak_large_trim(0);
        assert_int_equal(in_use(), before);
    }
}

/* After a refusal there are no guards any more. */
GUARDED_TEST(refused_calls_lose_no_block) {
    static const hak_os_call_t calls[] = {HAK_OS_CALL_CONCEAL, HAK_OS_CALL_COMMIT,
                                          HAK_OS_CALL_PURGE};
    size_t before = in_use();
    for (unsigned i = 0; i < UNIT_COUNT(calls); i++) {
        for (unsigned at = 0; at < 4; at++) {
            hak_large_quarantine_switch(true);
            hak_os_fault_plan(calls[i], at, 1);
            char *block = large_untouched(GUARDED_BYTES, 16);
            memset(block, 1, GUARDED_BYTES);
            large_free(block);
            hak_large_trim(0);
            hak_os_fault_clear();
            assert_int_equal(in_use(), before);
        }
    }
}

/* As under a filter: at worst units stay inaccessible, without memory, and are used no more. */
GUARDED_TEST(refused_access_leaks_units_without_memory) {
    static unsigned char is_in[GUARDED_BYTES / 4096];
    size_t before = in_use();
    char *held = guarded_take(GUARDED_BYTES), *block = guarded_take(GUARDED_BYTES);
    memset(held, 1, GUARDED_BYTES);
    large_free(held);
    hak_os_fault_plan(HAK_OS_CALL_COMMIT, 0, UINT64_MAX);
    hak_large_trim(0);
    large_free(block); /* itself accessible */
    hak_os_fault_clear();
    assert_int_equal(in_use() - before, (7u + 2u) * HAK_UNIT_BYTES);
    assert_int_equal(unit_write_signal(held), SIGSEGV);
    assert_int_equal(mincore(held, sizeof is_in * 4096, is_in), 0);
    for (unsigned i = 0; i < sizeof is_in; i++) {
        assert_int_equal(is_in[i] & 1, 0);
    }
    char *next = guarded_take(GUARDED_BYTES);
    assert_int_equal(entry_of(next - 1) & HAK_KIND_MASK, 0);
    memset(next, 1, GUARDED_BYTES);
}

GUARDED_TEST(near_a_limit_nothing_is_guarded_or_held_back) {
    size_t before = in_use();
    char *block = guarded_take(GUARDED_BYTES);
    large_free(guarded_take(GUARDED_BYTES));
    assert_true(in_use() > before + 7u * HAK_UNIT_BYTES);
    hak_large_give_back(1, false); /* as before a peak */
    assert_true(in_use() > before + 7u * HAK_UNIT_BYTES);
    hak_large_give_back(1, true);
    assert_int_equal(in_use() - before, 7u * HAK_UNIT_BYTES);
    hak_knobs.is_tight = true;
    large_free(block);
    assert_int_equal(in_use(), before);
    block = guarded_take(GUARDED_BYTES);
    assert_int_equal(in_use() - before, 5u * HAK_UNIT_BYTES);
    hak_knobs.is_tight = false;
}

/* Their guards may hold memory. */
GUARDED_TEST(guards_are_for_so_many_blocks) {
    enum { COUNT = 250 };
    unsigned guarded = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        guarded += unit_write_signal(guarded_end_of(large_untouched(70000, 16))) == SIGSEGV;
    }
    assert_in_range(guarded, 150, 200);
}
