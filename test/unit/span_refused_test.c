/* SPDX-License-Identifier: MIT
 *
 * What happens when the kernel does not take back what should go: locked pages, and calls that
 * fail. */
#include "unit/span.h"

/* Locked units stay; what lies around them does not, and they are not looked for again. */
static void locked_unit_keeps_nothing_but_itself(unsigned from, unsigned count, unsigned calls) {
    hak_span_t used = unit_span_dirty(1), span = unit_span_dirty(63);
    char *locked = span.base + (size_t)from * HAK_UNIT_BYTES;
    if (!unit_lock_memory(locked, (size_t)count * HAK_UNIT_BYTES)) {
        skip();
    }
    unit_span_free(&span, 63);
    uint64_t before = hak_counters.purge_calls;
    assert_int_equal(hak_span_purge(0), (63u - count) * HAK_UNIT_BYTES);
    assert_true(hak_counters.purge_calls - before <= calls);
    assert_int_equal(unit_span_check().unused_dirty_bytes, (size_t)count * HAK_UNIT_BYTES);
    before = hak_counters.purge_calls;
    assert_int_equal(hak_span_purge(0), 0);
    assert_true(hak_counters.purge_calls - before <= 1 + 8);
    assert_true(unit_unlock_memory(locked, (size_t)count * HAK_UNIT_BYTES));
    assert_int_equal(hak_span_purge(0), count * HAK_UNIT_BYTES);
    span = unit_span(63, HAK_UNIT_BYTES);
    assert_true(span.is_zero);
    assert_true(unit_span_reads_zero(span.base, 63u * HAK_UNIT_BYTES));
    unit_span_free(&span, 0);
    unit_span_free(&used, 1);
}

SPAN_TEST(purge_around_a_locked_unit_gives_the_rest_back) {
    for (unsigned at = 0; at < 63; at += 7) {
        locked_unit_keeps_nothing_but_itself(at, 1, 24);
    }
    locked_unit_keeps_nothing_but_itself(0, 2, 24);
    locked_unit_keeps_nothing_but_itself(20, 16, 64);
}

/* Nothing is given back, however often halves are tried. */
SPAN_TEST(purge_that_is_refused_everywhere_makes_few_calls) {
    enum { SPANS = 20, CALLS_MOST = SPANS + 8 };
    hak_span_t span[SPANS];
    for (unsigned i = 0; i < SPANS; i++) {
        (void)unit_span_dirty(1); /* in use */
        span[i] = unit_span_dirty(63);
    }
    unit_span_free_all(span, SPANS, 63);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, UINT64_MAX);
    uint64_t before = hak_counters.purge_calls;
    hak_span_purge(0); /* clean superslabs may be unmapped */
    assert_true(hak_counters.purge_calls - before <= CALLS_MOST);
    assert_int_equal(unit_span_check().unused_dirty_bytes, (size_t)SPANS * 63 * HAK_UNIT_BYTES);
    hak_os_fault_clear();
    assert_int_equal(hak_span_purge(0), (size_t)SPANS * 63 * HAK_UNIT_BYTES);
}

SPAN_TEST(unmap_refused_superslab_is_restored_and_zero) {
    hak_span_t span = unit_span_dirty(64);
    unit_span_free(&span, 64);
    hak_os_fault_plan(HAK_OS_CALL_UNMAP, 0, 1);
    assert_int_equal(hak_span_purge(0), HAK_SUPERSLAB_BYTES);
    hak_span_stats_t stats = unit_span_check();
    assert_int_equal(stats.superslab_count, 1);
    assert_int_equal(stats.unused_dirty_bytes, 0);
    assert_ptr_equal(hak_pagemap_superslab(span.base), span.superslab);
    hak_span_t again = unit_span(64, HAK_UNIT_BYTES);
    assert_ptr_equal(again.base, span.base);
    assert_true(again.is_zero);
    assert_true(unit_is_filled(again.base, HAK_SUPERSLAB_BYTES, 0));
}

SPAN_TEST(unmap_and_purge_refused_superslab_stays_dirty_and_usable) {
    hak_span_t span = unit_span_dirty(64);
    unit_span_free(&span, 40);
    hak_os_fault_plan(HAK_OS_CALL_UNMAP, 0, 1);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, UINT64_MAX);
    assert_int_equal(hak_span_purge(0), 0);
    hak_os_fault_clear();
    assert_int_equal(unit_span_check().unused_dirty_bytes, 40u * HAK_UNIT_BYTES);
    hak_span_t again = unit_span(64, HAK_UNIT_BYTES);
    assert_ptr_equal(again.base, span.base);
    assert_false(again.is_zero);
    assert_int_equal((unsigned char)again.base[0], 0xee);
    unit_span_free(&again, 64);
    assert_int_equal(hak_span_purge(0), HAK_SUPERSLAB_BYTES);
}

SPAN_TEST(purge_refused_run_stays_dirty_others_go) {
    hak_span_t low = unit_span_dirty(20);
    (void)unit_span_dirty(10);
    hak_span_t high = unit_span_dirty(34);
    unit_span_free(&low, 20);
    unit_span_free(&high, 34);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 1, UINT64_MAX);
    assert_int_equal(hak_span_purge(0), 20u * HAK_UNIT_BYTES);
    hak_os_fault_clear();
    assert_int_equal(unit_span_check().unused_dirty_bytes, 34u * HAK_UNIT_BYTES);
    assert_int_equal(hak_span_purge(0), 34u * HAK_UNIT_BYTES);
}
