/* SPDX-License-Identifier: MIT
 *
 * The provider of spans while nothing is purged. */
#include "double/os_fault.h"
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

SPAN_TEST(span_of_every_alignment_is_aligned) {
    hak_span_t spans[64];
    unsigned held = 0;
    for (size_t align = HAK_UNIT_BYTES; align <= HAK_SPAN_MOST_ALIGN; align *= 2) {
        for (unsigned count = 1; count <= 64; count = count * 3 + 1) {
            spans[held++] = unit_span(count, align);
        }
    }
    unit_span_check();
    while (held > 0) {
        unit_span_free(&spans[--held], 1);
    }
}

SPAN_TEST(span_of_oldest_superslab_is_preferred) {
    hak_span_t a = unit_span(64, HAK_UNIT_BYTES);
    hak_span_t b = unit_span(64, HAK_UNIT_BYTES);
    hak_span_t c = unit_span(32, HAK_UNIT_BYTES);
    unit_span_free(&b, 64);
    unit_span_free(&a, 64);
    hak_span_t again = unit_span(40, HAK_UNIT_BYTES);
    assert_ptr_equal(again.superslab, a.superslab);
    hak_span_t next = unit_span(40, HAK_UNIT_BYTES);
    assert_ptr_equal(next.superslab, b.superslab);
    hak_span_t rest = unit_span(24, HAK_UNIT_BYTES);
    assert_ptr_equal(rest.superslab, a.superslab);
    unit_span_free(&again, 40);
    unit_span_free(&next, 40);
    unit_span_free(&rest, 24);
    unit_span_free(&c, 32);
}

/* SPAN-2 */
SPAN_TEST(span_clean_bits_follow_what_was_touched) {
    hak_span_t wall = unit_span(60, HAK_UNIT_BYTES);
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
    unit_span_free(&clean, 0);
    unit_span_free(&dirty, 0);
    unit_span_free(&wall, 0);
}

SPAN_TEST(extend_into_free_units_grows_and_tells_zero) {
    bool is_zero = false;
    hak_span_t a = unit_span(2, HAK_UNIT_BYTES);
    assert_int_equal(a.unit, 0);
    assert_true(hak_span_extend(a.superslab, a.unit, 2, 5, &is_zero));
    assert_true(is_zero);
    hak_span_t b = unit_span(3, HAK_UNIT_BYTES);
    assert_int_equal(b.unit, 5);
    assert_false(hak_span_extend(a.superslab, a.unit, 5, 6, &is_zero));
    unit_span_free(&b, 1);
    assert_true(hak_span_extend(a.superslab, a.unit, 5, 6, &is_zero));
    assert_false(is_zero);
    hak_span_t hole = unit_span(1, HAK_UNIT_BYTES), wall = unit_span(1, HAK_UNIT_BYTES);
    assert_int_equal(wall.unit, 7);
    unit_span_free(&hole, 0);
    assert_false(
        hak_span_extend(a.superslab, a.unit, 6, 8, &is_zero)); /* one is free, one is not */
    unit_span_free(&wall, 0);
    assert_true(hak_span_extend(a.superslab, a.unit, 6, 8, &is_zero));
    assert_true(is_zero);
    assert_int_equal(unit_span_check().in_use_bytes, 8 * HAK_UNIT_BYTES);
    hak_span_free(a.superslab, a.unit, 8, 8);
    assert_int_equal(unit_span_check().unused_dirty_bytes, 8 * HAK_UNIT_BYTES);
}

SPAN_TEST(extend_beyond_the_superslab_is_refused) {
    bool is_zero;
    hak_span_t a = unit_span(60, HAK_UNIT_BYTES);
    assert_false(hak_span_extend(a.superslab, a.unit, 60, 65, &is_zero));
    assert_true(hak_span_extend(a.superslab, a.unit, 60, 64, &is_zero));
    hak_span_free(a.superslab, a.unit, 64, 0);
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
    hak_span_t fresh = unit_span(64, HAK_SPAN_MOST_ALIGN);
    unit_span_free(&fresh, 0);
    unit_span_free(&rest, 0);
    unit_span_free(&held, 0);
}

/* --- random operations against a list of what is held -------------------------------------------
 */

typedef struct held {
    hak_span_t span;
    unsigned touched;
} held_t;

static void held_expect_apart(const held_t *held, unsigned count, const hak_span_t *span) {
    for (unsigned i = 0; i < count; i++) {
        const hak_span_t *other = &held[i].span;
        assert_true(span->base + (size_t)span->count * HAK_UNIT_BYTES <= other->base ||
                    other->base + (size_t)other->count * HAK_UNIT_BYTES <= span->base);
    }
}

static unsigned held_take(held_t *held, unsigned count, uint64_t *seed) {
    uint64_t random = hak_rng_next(seed);
    size_t align =
        random % 8 == 0 ? (size_t)HAK_UNIT_BYTES << random / 8 % HAK_SPAN_ALIGNS : HAK_UNIT_BYTES;
    unsigned units = 1 + (unsigned)(random >> 16) % (random >> 40 & 1 ? 64 : 9);
    hak_span_t span = unit_span(units, align);
    held_expect_apart(held, count, &span);
    if (span.is_zero) {
        assert_true(unit_span_reads_zero(span.base, (size_t)units * HAK_UNIT_BYTES));
    }
    held[count].span = span;
    held[count].touched = (unsigned)(random >> 48) % (units + 1);
    for (unsigned unit = 0; unit < held[count].touched; unit++) {
        span.base[(size_t)unit * HAK_UNIT_BYTES + (random >> 44) % 16 * 4096] = 1;
    }
    return count + 1;
}

SPAN_TEST(spans_random_operations_never_overlap_and_zero_is_true) {
    enum { MOST = 200 };
    static held_t held[MOST];
    unsigned count = 0;
    uint64_t seed = 6;
    for (unsigned step = 0; step < 6000; step++) {
        uint64_t random = hak_rng_next(&seed);
        bool grows = step / 500 % 2 == 0 ? random % 3 != 0 : random % 3 == 0;
        if (grows && count < MOST) {
            count = held_take(held, count, &seed);
        } else if (count > 0) {
            unsigned which = (unsigned)(random >> 8) % count;
            unit_span_free(&held[which].span, held[which].touched);
            held[which] = held[--count];
        }
        if (step % 97 == 0) {
            hak_span_purge(step % 194 == 0 ? 0 : (size_t)8 << 20);
        }
        if (step % 50 == 0) {
            unit_span_check();
        }
    }
    while (count-- > 0) {
        unit_span_free(&held[count].span, held[count].touched);
    }
}
