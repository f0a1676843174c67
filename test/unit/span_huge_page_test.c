/* SPDX-License-Identifier: MIT
 *
 * Which ranges may be backed by huge pages, and when they stop being. */
#include "unit/huge_page.h"

static uint64_t mapped_before;

static int huge_page_begin(void **state) {
    int status = unit_huge_page_begin(state);
    mapped_before = hak_counters.superslab_map;
    return status;
}

#define HUGE_PAGE_TEST(name) UNIT_TEST_WITH(name, huge_page_begin, unit_huge_page_end)

static hak_span_t dense_span(unsigned count) {
    hak_span_t span = {0};
    assert_true(hak_span_alloc(HAK_PARTITION_ANY, count, HAK_UNIT_BYTES, HAK_SPAN_DENSE, &span));
    memset(span.base, 0xee, (size_t)count * HAK_UNIT_BYTES);
    return span;
}

/* About huge pages of superslabs there are: a fresh one, mapped alone, takes one call besides. */
static uint64_t advice_calls(void) {
    return hak_os_fault_calls(HAK_OS_CALL_ADVISE) - (hak_counters.superslab_map - mapped_before);
}

HUGE_PAGE_TEST(dense_span_opens_huge_page_once) {
    size_t before = hak_span_state.huge_page_count;
    hak_span_t a = dense_span(1);
    hak_span_t b = dense_span(31);
    assert_int_equal(a.superslab->huge_pages, 1);
    assert_int_equal(advice_calls(), 1);
    assert_false(a.is_zero); /* it is, but resident: nothing of it is clean */
    unit_span_check();
    hak_span_t c = dense_span(1);
    assert_ptr_equal(c.superslab, a.superslab);
    assert_int_equal(c.superslab->huge_pages, 3);
    assert_int_equal(hak_span_state.huge_page_count, before + 2);
    unit_span_free(&a, 1);
    unit_span_free(&b, 31);
    unit_span_free(&c, 1);
    unit_span_check();
}

HUGE_PAGE_TEST(opened_huge_page_counts_as_unused_memory) {
    hak_span_t span = dense_span(1);
    assert_int_equal(unit_span_check().unused_dirty_bytes, 31u * HAK_UNIT_BYTES);
    assert_int_equal(hak_span_purge(0), 31u * HAK_UNIT_BYTES);
    assert_int_equal(unit_span_check().unused_dirty_bytes, 0);
    assert_true(unit_is_filled(span.base, HAK_UNIT_BYTES, 0xee));
}

/* The limit of a control group counts all of it until it is split. */
HUGE_PAGE_TEST(with_a_limit_huge_page_purged_in_part_is_split) {
    for (unsigned i = 0; i < 2; i++) {
        hak_span_t span = dense_span(1);
        uint64_t before = advice_calls();
        hak_knobs.limit_bytes = i;
        hak_span_purge(HAK_UNIT_BYTES);
        hak_knobs.limit_bytes = 0;
        assert_int_equal(advice_calls() - before, 1 + i);
        assert_true(unit_is_filled(span.base, HAK_UNIT_BYTES, 0xee));
        unit_span_free(&span, 1);
        hak_span_purge(0);
    }
}

/* SPAN-8 */
HUGE_PAGE_TEST(units_of_huge_page_are_padding_until_they_are_used) {
    hak_span_t a = dense_span(1);
    hak_superslab_t *superslab = a.superslab;
    assert_true(superslab->padding_units == (hak_mask(31) << 1));
    hak_span_t b = dense_span(5);
    assert_true(superslab->padding_units == (hak_mask(26) << 6));
    unit_span_free(&b, 5);
    assert_true(superslab->padding_units == (hak_mask(26) << 6)); /* it holds memory of b */
    hak_span_t sparse = unit_span(20, HAK_UNIT_BYTES);
    assert_ptr_equal(sparse.superslab, superslab);
    assert_true(superslab->padding_units == (hak_mask(11) << 21));
}

HUGE_PAGE_TEST(sparse_span_opens_small_pages) {
    hak_span_t sparse = unit_span(1, HAK_UNIT_BYTES);
    hak_span_t dense = dense_span(1); /* the range is open already */
    assert_ptr_equal(dense.superslab, sparse.superslab);
    assert_int_equal(sparse.superslab->huge_pages, 0);
    assert_int_equal(advice_calls(), 0);
    assert_true(sparse.is_zero);
}

HUGE_PAGE_TEST(extended_span_opens_small_pages) {
    hak_span_t span = dense_span(32);
    assert_true(hak_span_extend(span.superslab, span.unit, 32, 40));
    assert_int_equal(span.superslab->huge_pages, 1);
}

HUGE_PAGE_TEST(span_with_little_in_use_opens_small_pages) {
    unit_span_free(&unit_pins[3], 0);
    (void)dense_span(32);
    hak_span_t next = dense_span(32);
    assert_int_equal(advice_calls(), 1);
    assert_true(next.superslab->huge_pages != 0);
}

HUGE_PAGE_TEST(option_off_opens_small_pages) {
    hak_knobs.huge_pages = false;
    hak_span_t span = dense_span(32);
    assert_int_equal(advice_calls(), 0);
    assert_int_equal(span.superslab->huge_pages, 0);
}

/* No huge pages in the kernel, or too many mappings in the process. */
HUGE_PAGE_TEST(advice_refused_is_not_repeated) {
    hak_os_fault_plan(HAK_OS_CALL_ADVISE, 0, 2); /* for the fresh superslab, and for its range */
    (void)dense_span(32);
    (void)dense_span(32);
    assert_int_equal(advice_calls(), 1);
    assert_int_equal(hak_span_state.huge_page_count, 0);
}

HUGE_PAGE_TEST(purge_of_part_ends_huge_page) {
    hak_span_t low = dense_span(10);
    hak_span_t used = dense_span(12);
    hak_span_t high = dense_span(42); /* the rest of this range and all of the next */
    assert_int_equal(low.superslab->huge_pages, 3);
    unit_span_free(&low, 10);
    unit_span_free(&high, 42);
    hak_span_purge(0);
    assert_int_equal(advice_calls(), 3);
    assert_int_equal(used.superslab->huge_pages, 2);
    assert_true(unit_is_filled(used.base, 12u * HAK_UNIT_BYTES, 0xee));
    unit_span_check();
    low = unit_span(10, HAK_UNIT_BYTES);
    assert_true(low.is_zero);
    assert_true(unit_is_filled(low.base, 10u * HAK_UNIT_BYTES, 0));
}

/* SPAN-6: a locked unit stays, the rest of the range goes. */
HUGE_PAGE_TEST(purge_refused_for_part_ends_huge_page) {
    hak_span_t used = dense_span(32), span = dense_span(32);
    assert_int_equal(span.superslab->huge_pages, 3);
    bool is_locked = unit_lock_memory(span.base, HAK_UNIT_BYTES);
    unit_span_free(&span, 32);
    if (is_locked) {
        uint64_t before = advice_calls();
        assert_int_equal(hak_span_purge(HAK_UNIT_BYTES), 31u * HAK_UNIT_BYTES);
        assert_true(unit_unlock_memory(span.base, HAK_UNIT_BYTES));
        assert_int_equal(span.superslab->huge_pages, 1);
        assert_int_equal(advice_calls(), before + 1);
        unit_span_check();
    }
    unit_span_free(&used, 32);
    if (!is_locked) {
        skip();
    }
}

HUGE_PAGE_TEST(purged_huge_page_opened_for_sparse_span_becomes_small) {
    (void)dense_span(32);
    hak_span_t second = dense_span(32);
    unit_span_free(&second, 32);
    hak_span_purge(0);
    assert_int_equal(second.superslab->huge_pages, 3);
    hak_span_t sparse = unit_span(1, HAK_UNIT_BYTES);
    assert_ptr_equal(sparse.base, second.base);
    assert_true(sparse.is_zero);
    assert_int_equal(sparse.superslab->huge_pages, 1);
}

HUGE_PAGE_TEST(purged_huge_page_opened_for_dense_span_stays_and_is_regret) {
    (void)dense_span(32);
    hak_span_t second = dense_span(32);
    unit_span_free(&second, 32);
    hak_span_purge(0);
    uint64_t calls = advice_calls();
    uint64_t regret = hak_counters.purge_regret_units;
    hak_span_t again = dense_span(1);
    assert_ptr_equal(again.base, second.base);
    assert_int_equal(advice_calls(), calls);
    assert_int_equal(again.superslab->huge_pages, 3);
    assert_int_equal(hak_counters.purge_regret_units, regret + 32);
}
