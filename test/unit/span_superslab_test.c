/* SPDX-License-Identifier: MIT
 *
 * The provider of spans while nothing is purged. */
#include "unit/span.h"

SPAN_TEST(span_of_every_count_is_fresh_zero_and_returns) {
    hak_span_t spans[HAK_SUPERSLAB_UNITS + 1];
    size_t sum = 0;
    for (unsigned count = 1; count <= HAK_SUPERSLAB_UNITS; count++) {
        spans[count] = unit_span(count, HAK_UNIT_BYTES);
        assert_true(spans[count].is_zero);
        assert_true(unit_span_reads_zero(spans[count].base, (size_t)count * HAK_UNIT_BYTES));
        sum += (size_t)count * HAK_UNIT_BYTES;
    }
    assert_int_equal(unit_span_check().in_use_bytes, sum);
    for (unsigned count = 1; count <= HAK_SUPERSLAB_UNITS; count++) {
        unit_span_free(&spans[count], 0);
    }
    assert_int_equal(unit_span_check().unused_dirty_bytes, 0);
}

/* SPAN-2 */
SPAN_TEST(span_clean_bits_follow_what_was_touched) {
    (void)unit_span(60, HAK_UNIT_BYTES);
    hak_span_t span = unit_span(4, HAK_UNIT_BYTES);
    assert_int_equal(span.unit, 60);
    memset(span.base, 1, 2u * HAK_UNIT_BYTES);
    unit_span_free(&span, 2);
    assert_int_equal(unit_span_check().unused_dirty_bytes, 2 * HAK_UNIT_BYTES);
    hak_span_t whole = unit_span(4, HAK_UNIT_BYTES);
    assert_int_equal(whole.unit, 60);
    assert_false(whole.is_zero); /* two dirty, two clean */
    unit_span_free(&whole, 0);   /* nothing written this time: what was clean stays clean */
    hak_span_t dirty = unit_span(2, HAK_UNIT_BYTES);
    assert_false(dirty.is_zero);
    hak_span_t clean = unit_span(2, HAK_UNIT_BYTES);
    assert_int_equal(clean.unit, 62);
    assert_true(clean.is_zero);
    assert_true(unit_span_reads_zero(clean.base, 2u * HAK_UNIT_BYTES));
}

SPAN_TEST(extend_into_free_units_grows) {
    hak_span_t a = unit_span(2, HAK_UNIT_BYTES);
    assert_int_equal(a.unit, 0);
    assert_true(hak_span_extend(a.superslab, a.unit, 2, 5));
    hak_span_t b = unit_span(3, HAK_UNIT_BYTES);
    assert_int_equal(b.unit, 5);
    assert_false(hak_span_extend(a.superslab, a.unit, 5, 6));
    unit_span_free(&b, 1);
    assert_true(hak_span_extend(a.superslab, a.unit, 5, 6));
    hak_span_t hole = unit_span(1, HAK_UNIT_BYTES), wall = unit_span(1, HAK_UNIT_BYTES);
    assert_int_equal(wall.unit, 7);
    unit_span_free(&hole, 0);
    assert_false(hak_span_extend(a.superslab, a.unit, 6, 8)); /* one is free, one is not */
    unit_span_free(&wall, 0);
    assert_true(hak_span_extend(a.superslab, a.unit, 6, 8));
    assert_int_equal(unit_span_check().in_use_bytes, 8 * HAK_UNIT_BYTES);
    hak_span_free(a.superslab, a.unit, 8, 8);
    assert_int_equal(unit_span_check().unused_dirty_bytes, 8 * HAK_UNIT_BYTES);
}

SPAN_TEST(extend_beyond_the_superslab_is_refused) {
    hak_span_t a = unit_span(60, HAK_UNIT_BYTES);
    assert_false(hak_span_extend(a.superslab, a.unit, 60, 65));
    assert_true(hak_span_extend(a.superslab, a.unit, 60, 64));
}

SPAN_TEST(span_without_memory_fails_and_changes_nothing) {
    hak_span_t span;
    hak_span_t held = unit_span(60, HAK_UNIT_BYTES);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    hak_span_stats_t before = unit_span_check();
    for (unsigned i = 0; i < 100; i++) {
        assert_false(hak_span_alloc(HAK_PARTITION_ANY, 64, HAK_UNIT_BYTES, HAK_SPAN_SPARSE, &span));
        assert_false(
            hak_span_alloc(HAK_PARTITION_ANY, 5, HAK_SPAN_MOST_ALIGN, HAK_SPAN_SPARSE, &span));
    }
    hak_span_stats_t after = unit_span_check();
    assert_memory_equal(&before, &after, sizeof before);
    hak_span_t rest = unit_span(4, HAK_UNIT_BYTES); /* what is there is still served */
    assert_ptr_equal(rest.superslab, held.superslab);
    hak_os_fault_clear();
    (void)unit_span(64, HAK_SPAN_MOST_ALIGN);
}
