/* SPDX-License-Identifier: MIT
 *
 * What goes back to the kernel. What it does not take: span_refused_test.c. */
#include "unit/span.h"

SPAN_TEST(retain_is_the_larger_of_floor_and_share_plus_what_was_learned) {
    unit_span_retain(10u * MIB, 25);
    assert_int_equal(hak_retain_bytes(0), 10 * MIB);
    assert_int_equal(hak_retain_bytes(40u * MIB), 10 * MIB);
    assert_int_equal(hak_retain_bytes(100u * MIB), 100u * MIB / 100 * 25);
    hak_knobs.retain_learned_percent = 50;
    size_t bound = hak_retain_bytes(100u * MIB);
    assert_true(bound > 37u * MIB && bound <= 37u * MIB + MIB / 2);
    unit_span_retain(0, 0);
    assert_int_equal(hak_retain_bytes((size_t)1 << 50), 0);
}

/* Twice the bound is too much at any time. */
SPAN_TEST(free_beyond_twice_the_bound_purges_at_once) {
    hak_span_t spans[48]; /* 48 MiB */
    size_t most = 0;
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        spans[i] = unit_span_dirty(15);
        (void)unit_span(1, HAK_UNIT_BYTES); /* a pin */
    }
    unit_span_retain(8u * MIB, 0);
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        unit_span_free(&spans[i], 15);
        size_t unused = unit_span_check().unused_dirty_bytes;
        assert_true(unused <= 16u * MIB);
        most = unused > most ? unused : most;
    }
    assert_true(most > 8u * MIB); /* and no sooner, unless time passes */
}

/* 12 MiB unused where 8 may be: the span of one unit is what makes the provider look again. */
static void look_again(hak_span_t *pin) {
    hak_span_t span = unit_span_dirty(1);
    unit_span_free(pin, 1);
    *pin = span;
}

SPAN_TEST(free_above_the_bound_for_long_purges) {
    hak_os_fault_stop_clock();
    unit_span_retain(8u * MIB, 0);
    hak_span_t pin = unit_span_dirty(1);
    hak_span_t spans[3];
    UNIT_TAKE_ALL(spans, 3, unit_span_dirty(63));
    unit_span_free_all(spans, 3, 63);
    size_t unused = unit_span_check().unused_dirty_bytes;
    assert_true(unused > 8u * MIB);
    look_again(&pin);
    assert_true(unit_span_check().unused_dirty_bytes >= unused - HAK_UNIT_BYTES);
    hak_os_fault_advance_clock(600000000);
    look_again(&pin);
    assert_true(unit_span_check().unused_dirty_bytes <= 6u * MIB + HAK_UNIT_BYTES);
}

SPAN_TEST(free_above_the_bound_but_needed_again_starts_over) {
    hak_os_fault_stop_clock();
    unit_span_retain(8u * MIB, 0);
    hak_span_t pin = unit_span_dirty(1);
    hak_span_t spans[3];
    UNIT_TAKE_ALL(spans, 3, unit_span_dirty(63));
    uint64_t purged = hak_counters.purge_calls;
    for (unsigned round = 0; round < 5; round++) { /* breathes, longer than the delay in all */
        unit_span_free_all(spans, 3, 63);
        look_again(&pin);
        UNIT_TAKE_ALL(spans, 3, unit_span_dirty(63));
        hak_os_fault_advance_clock(150000000);
    }
    assert_int_equal(hak_counters.purge_calls, purged);
}

SPAN_TEST(purge_of_unused_superslabs_unmaps_them) {
    hak_span_t a = unit_span_dirty(64);
    hak_span_t b = unit_span_dirty(64);
    hak_span_t c = unit_span_dirty(64);
    unit_span_free(&a, 64);
    unit_span_free(&c, 64);
    uint64_t before = hak_counters.superslab_unmap;
    assert_int_equal(hak_span_purge(0), 2u * HAK_SUPERSLAB_BYTES);
    assert_int_equal(hak_counters.superslab_unmap, before + 2);
    assert_null(hak_pagemap_superslab(a.base));
    assert_false(hak_os_is_readable(a.base));
    assert_false(hak_os_is_readable(c.base));
    assert_ptr_equal(hak_pagemap_superslab(b.base), b.superslab);
    assert_true(unit_is_filled(b.base, HAK_SUPERSLAB_BYTES, 0xee));
    assert_int_equal(unit_span_check().superslab_count, 1);
    assert_int_equal(hak_span_purge(0), 0);
}

SPAN_TEST(purge_around_a_used_span_gives_the_rest_back) {
    hak_span_t low = unit_span_dirty(20);
    hak_span_t used = unit_span_dirty(10);
    hak_span_t high = unit_span_dirty(34);
    unit_span_free(&low, 20);
    unit_span_free(&high, 34);
    assert_int_equal(hak_span_purge(0), 54u * HAK_UNIT_BYTES);
    assert_int_equal(unit_span_check().unused_dirty_bytes, 0);
    assert_true(unit_is_filled(used.base, 10u * HAK_UNIT_BYTES, 0xee));
    hak_span_t again = unit_span(20, HAK_UNIT_BYTES);
    assert_ptr_equal(again.base, low.base);
    assert_true(again.is_zero);
    assert_true(unit_is_filled(again.base, 20u * HAK_UNIT_BYTES, 0));
}

SPAN_TEST(purge_that_keeps_some_takes_the_youngest) {
    hak_span_t spans[8];
    UNIT_TAKE_ALL(spans, UNIT_COUNT(spans), unit_span_dirty(64));
    unit_span_free_all(spans, UNIT_COUNT(spans), 64);
    hak_span_purge(16u * MIB);
    hak_span_stats_t stats = unit_span_check();
    assert_true(stats.unused_dirty_bytes <= 16u * MIB);
    assert_true(stats.unused_dirty_bytes >= 12u * MIB);
    /* the oldest keep their memory (SPAN-5), the youngest at least their place */
    assert_true(unit_is_filled(spans[0].base, HAK_SUPERSLAB_BYTES, 0xee));
    assert_true(unit_is_filled(spans[7].base, HAK_SUPERSLAB_BYTES, 0));
}

SPAN_TEST(purge_that_keeps_some_unmaps_superslabs_that_idle_in_numbers) {
    enum { COUNT = 60 };
    static hak_span_t spans[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        spans[i] = unit_span(64, HAK_UNIT_BYTES);
        spans[i].base[0] = 1;
    }
    unit_span_free_all(spans, COUNT, 64);
    hak_span_purge(4u * MIB);
    hak_span_stats_t stats = unit_span_check();
    assert_true(stats.superslab_count <= 20);
    assert_true(stats.superslab_count >= 1);
    assert_true(stats.unused_dirty_bytes <= 4u * MIB);
}

SPAN_TEST(purged_units_wanted_again_are_regret) {
    (void)unit_span(1, HAK_UNIT_BYTES);
    hak_span_t span = unit_span_dirty(20);
    unit_span_free(&span, 20);
    hak_span_purge(0);
    uint64_t before = hak_counters.purge_regret_units;
    span = unit_span(12, HAK_UNIT_BYTES);
    assert_int_equal(hak_counters.purge_regret_units, before + 12);
    unit_span_free(&span, 0);
    span = unit_span(12, HAK_UNIT_BYTES); /* the same units, not purged in between */
    assert_int_equal(hak_counters.purge_regret_units, before + 12);
}
