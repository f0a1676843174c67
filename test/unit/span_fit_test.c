/* SPDX-License-Identifier: MIT
 *
 * Which superslab a span is taken from, and what it costs to find it beside many that are full. */
#include "unit/span.h"

/* Steps are counted: lines of summaries that searches read. */
enum { FEW = 100, FIT_MANY = 3000, PAIRS = 50, FIT_MOST_SPANS = 128 };

static hak_span_t fit_walls[FIT_MANY];

/* Else the next search for two units visits each of them in vain. */
SPAN_TEST(purge_and_alignment_promise_what_there_is) {
    assert_int_equal(hak_span_state.alignments, 0); /* the first test: none was asked for yet */
    hak_span_t oldest = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
    for (unsigned i = 0; i < FEW; i++) {
        fit_walls[i] = unit_span(HAK_SUPERSLAB_UNITS - 1, HAK_UNIT_BYTES);
        hak_span_t hole = unit_span(1, HAK_UNIT_BYTES);
        unit_span_free(&hole, 1);
        hak_span_t rest = unit_span(HAK_SUPERSLAB_UNITS - 1, HAK_UNIT_BYTES);
        unit_span_free(&rest, 0); /* the promise of this hole is lowered */
    }
    hak_span_purge(HAK_UNIT_BYTES / 2);
    unit_span_free(&oldest, 0); /* no search passes by the holes */
    (void)unit_span(2, 2 * HAK_UNIT_BYTES);
    for (unsigned i = 0; i < FEW; i++) {
        uint32_t index = fit_walls[i].superslab->index;
        assert_int_equal(hak_summary_get(&hak_span_state.fit[0], index), 1);
        assert_in_range(hak_summary_get(&hak_span_state.fit[1], index), 0, 1);
        assert_int_equal(hak_summary_get(&hak_span_state.dirty, index), 0);
    }
}

static void walls_free(unsigned count) {
    unit_span_free_all(fit_walls, count, 0);
}

typedef struct round_trip {
    unsigned hole, first, second;
} round_trip_t;

/* Lines read by taking and freeing two spans, of which the second does not fit into the hole. */
static uint64_t lines_for(round_trip_t trip, unsigned superslabs) {
    hak_span_t rest;
    for (unsigned i = 0; i < superslabs; i++) {
        bool is_hole = i == 3;
        fit_walls[i] = unit_span(HAK_SUPERSLAB_UNITS - (is_hole ? trip.hole : 0), HAK_UNIT_BYTES);
        if (is_hole) { /* nothing goes there before all is full */
            rest = unit_span(trip.hole, HAK_UNIT_BYTES);
        }
    }
    unit_span_free(&rest, 0);
    hak_span_t warm = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
    unit_span_free(&warm, 0); /* the end is mapped */
    uint64_t before = hak_summary_lines_read;
    for (unsigned i = 0; i < PAIRS; i++) {
        hak_span_t first = unit_span(trip.first, HAK_UNIT_BYTES);
        hak_span_t second = unit_span(trip.second, HAK_UNIT_BYTES);
        assert_int_equal(first.superslab->index, 3);
        assert_true(second.superslab->index >= superslabs);
        unit_span_free(&first, 0);
        unit_span_free(&second, 0);
    }
    uint64_t lines = hak_summary_lines_read - before;
    walls_free(superslabs);
    hak_span_purge(0);
    return lines;
}

SPAN_TEST(span_beside_many_full_superslabs_is_found_in_few_steps) {
    static const round_trip_t trips[] = {{8, 2, 8}, {1, 1, 1}, {7, 1, 7}, {7, 7, 7}, {16, 1, 16}};
    for (unsigned i = 0; i < UNIT_COUNT(trips); i++) {
        uint64_t few = lines_for(trips[i], FEW), many = lines_for(trips[i], FIT_MANY);
        UNIT_EXPECT(few != 0 && many <= 2 * few, "%u units: %llu steps, then %llu", trips[i].second,
                    (unsigned long long)few, (unsigned long long)many);
    }
    unit_span_check();
}

/* Half of each superslab is free, and none of it at a multiple of the alignment. */
static uint64_t lines_for_aligned(size_t align, unsigned superslabs) {
    unsigned stride = (unsigned)(align / HAK_UNIT_BYTES);
    UNIT_TAKE_ALL(fit_walls, superslabs, unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES));
    for (unsigned i = 0; i < superslabs; i++) {
        for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS; unit += stride) {
            hak_span_free(fit_walls[i].superslab, unit + stride / 2, stride / 2, 0);
        }
    }
    hak_span_t warm = unit_span(1, align);
    uint64_t before = hak_summary_lines_read;
    for (unsigned i = 0; i < PAIRS; i++) {
        hak_span_t span = unit_span(1, align);
        assert_true(span.superslab->index >= superslabs);
        unit_span_free(&span, 0);
    }
    uint64_t lines = hak_summary_lines_read - before;
    unit_span_check();
    unit_span_free(&warm, 0);
    for (unsigned i = 0; i < superslabs; i++) {
        for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS; unit += stride) {
            hak_span_free(fit_walls[i].superslab, unit, stride / 2, 0);
        }
    }
    hak_span_purge(0);
    return lines;
}

SPAN_TEST(aligned_span_beside_holes_that_are_not_is_found_in_few_steps) {
    enum { SOME = 1000 };
    for (size_t align = 2 * HAK_UNIT_BYTES; align <= HAK_SPAN_MOST_ALIGN; align *= 2) {
        uint64_t few = lines_for_aligned(align, FEW), many = lines_for_aligned(align, SOME);
        UNIT_EXPECT(few != 0 && many <= 2 * few, "alignment %zu: %llu steps, then %llu", align,
                    (unsigned long long)few, (unsigned long long)many);
    }
}

/* Places of superslabs that went are taken again in as few; up to 16 are mapped at once. */
SPAN_TEST(superslab_beside_many_takes_the_lowest_place_in_few_steps) {
    static const unsigned gone[] = {5, 70, FIT_MANY / 2, FIT_MANY - 1};
    UNIT_TAKE_ALL(fit_walls, FIT_MANY, unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES));
    for (unsigned i = 0; i < UNIT_COUNT(gone); i++) {
        unit_span_free(&fit_walls[gone[i]], 0);
    }
    hak_span_purge(0);
    unit_span_check();
    uint64_t before = hak_summary_lines_read;
    for (unsigned i = 0; i < UNIT_COUNT(gone); i++) {
        fit_walls[gone[i]] = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
        assert_int_equal(fit_walls[gone[i]].superslab->index, gone[i]);
    }
    assert_in_range(hak_summary_lines_read - before, 1, 64);
    unit_span_check();
}

/* --- the choice ------------------------------------------------------------------------------ */

typedef struct choice {
    unsigned count, stride;
    const hak_superslab_t *superslab;
    unsigned unit;
} choice_t;

static void choose(hak_superslab_t *superslab, void *context) {
    choice_t *choice = context;
    for (unsigned unit = 0; choice->superslab == NULL && unit + choice->count <= 64;
         unit += choice->stride) {
        uint64_t mask = hak_mask(choice->count) << unit;
        if ((superslab->free_units & mask) == mask) {
            choice->superslab = superslab;
            choice->unit = unit;
        }
    }
}

/* It overlaps no other, and what is called zero reads so. */
static void expect_fresh(const hak_span_t *held, unsigned count, const hak_span_t *span) {
    for (unsigned i = 0; i < count; i++) {
        assert_true(span->base + (size_t)span->count * HAK_UNIT_BYTES <= held[i].base ||
                    held[i].base + (size_t)held[i].count * HAK_UNIT_BYTES <= span->base);
    }
    assert_true(!span->is_zero ||
                unit_span_reads_zero(span->base, (size_t)span->count * HAK_UNIT_BYTES));
}

/* Writes to the first units of a span, somewhere, and gives it back. */
static void touch_and_free(const hak_span_t *span, uint64_t random) {
    unsigned touched = (unsigned)(random >> 48) % (span->count + 1);
    for (unsigned unit = 0; unit < touched; unit++) {
        span->base[(size_t)unit * HAK_UNIT_BYTES + (random >> 44) % 16 * 4096] = 1;
    }
    unit_span_free(span, touched);
}

static hak_span_t span_of_choice(uint64_t random) {
    size_t align = (size_t)HAK_UNIT_BYTES << (random % 4 == 0 ? random / 4 % HAK_SPAN_ALIGNS : 0);
    unsigned count = 1 + (unsigned)(random >> 16) % (random >> 40 & 1 ? 64 : 9);
    choice_t choice = {.count = count, .stride = (unsigned)(align / HAK_UNIT_BYTES)};
    hak_span_visit(choose, &choice);
    hak_span_t span = unit_span(count, align);
    if (choice.superslab != NULL) {
        assert_ptr_equal(span.superslab, choice.superslab);
        assert_int_equal(span.unit, choice.unit);
    }
    return span;
}

/* Spans come, go, grow and are purged. */
SPAN_TEST(span_of_any_state_is_the_lowest_of_the_oldest_that_fits) {
    static hak_span_t held[FIT_MOST_SPANS];
    unsigned count = 0;
    uint64_t seed = 11;
    for (unsigned step = 0; step < 8000; step++) {
        uint64_t random = hak_rng_next(&seed);
        bool grows = step / 400 % 2 == 0 ? random % 3 != 0 : random % 3 == 0;
        unsigned which = count == 0 ? 0 : (unsigned)(random >> 8) % count;
        if (grows && count < FIT_MOST_SPANS) {
            held[count] = span_of_choice(hak_rng_next(&seed));
            expect_fresh(held, count, &held[count]);
            count++;
        } else if (count > 0 && random % 16 < 4) {
            hak_span_t *span = &held[which];
            span->count +=
                hak_span_extend(span->superslab, span->unit, span->count, span->count + 1);
        } else if (count > 0) {
            touch_and_free(&held[which], random);
            held[which] = held[--count];
        }
        if (step % 97 == 0) {
            hak_span_purge(step % 194 == 0 ? 0 : (size_t)8 << 20);
        }
        if (step % 16 == 0) {
            unit_span_check();
        }
    }
}

/* As a fork leaves it behind that came in the middle of a change by another thread. */
SPAN_TEST(span_where_a_summary_promises_too_much_is_taken_elsewhere) {
    fit_walls[0] = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
    for (unsigned i = 1; i < FEW; i++) {
        fit_walls[i] = unit_span(HAK_SUPERSLAB_UNITS - i % 3, HAK_UNIT_BYTES);
    }
    for (unsigned align_log2 = 0; align_log2 < 2; align_log2++) {
        size_t align = (size_t)HAK_UNIT_BYTES << align_log2;
        unit_span_free(&(hak_span_t){fit_walls[1].superslab, NULL, 10, 2, false}, 0);
        hak_span_t known = unit_span(2, align);
        assert_int_equal(known.superslab->index, 1);
        hak_summary_t *fit = &hak_span_state.fit[align_log2];
        assert_int_equal(hak_summary_top(fit->size_log2), 1);
        unit_summary_set(fit, 0, HAK_SUPERSLAB_UNITS); /* of a place */
        fit->level[1][0] = HAK_SUPERSLAB_UNITS;        /* and of its line */
        for (unsigned count = HAK_SUPERSLAB_UNITS; count > 2; count -= 31) {
            hak_span_t span = unit_span(count, align);
            assert_true(span.superslab->index >= FEW);
            unit_span_free(&span, 0);
        }
        fit->level[1][0] = HAK_SUPERSLAB_UNITS; /* of the line alone */
        hak_span_t span = unit_span(HAK_SUPERSLAB_UNITS, align);
        assert_true(span.superslab->index >= FEW);
        unit_span_free(&span, 0);
        unit_span_check();
    }
}

SPAN_TEST(longest_run_is_stated_late_until_a_search_fails) {
    const hak_summary_t *fit = &hak_span_state.fit[0];
    hak_span_t spans[] = {unit_span(40, HAK_UNIT_BYTES), unit_span(40, HAK_UNIT_BYTES),
                          unit_span(20, HAK_UNIT_BYTES), unit_span(20, HAK_UNIT_BYTES)};
    uint32_t older = spans[0].superslab->index, younger = spans[1].superslab->index;
    assert_true(older < younger);
    assert_ptr_equal(spans[2].superslab, spans[0].superslab);
    assert_ptr_equal(spans[3].superslab, spans[1].superslab);
    assert_int_equal(hak_summary_get(fit, older), HAK_SUPERSLAB_UNITS - 60);
    assert_int_equal(hak_summary_get(fit, younger), HAK_SUPERSLAB_UNITS);
    unit_span_check();
    hak_span_purge(HAK_UNIT_BYTES);
    unit_span_free_all(spans, UNIT_COUNT(spans), 0);
    unit_span_check();
}

/* The same of a superslab that was to be added. */
SPAN_TEST(superslab_without_the_vacant_place_there_should_be_takes_the_end) {
    fit_walls[0] = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
    fit_walls[1] = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
    unit_span_free(&fit_walls[0], 0);
    hak_span_purge(0);
    uint32_t end = hak_span_state.end;
    for (uint32_t i = 0; i < end; i++) {
        unit_summary_set(&hak_span_state.vacant, i, 0);
    }
    fit_walls[0] = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
    assert_int_equal(fit_walls[0].superslab->index, end);
    for (uint32_t i = 0; i < end; i++) {
        unit_summary_set(&hak_span_state.vacant, i, hak_span_state.table[i] == NULL);
    }
    unit_span_check();
}

/* The audit that other tests rely on finds it. */
SPAN_TEST(wrong_summary_breaks_span_4_9_or_10) {
    hak_span_t span = unit_span(3, 4 * HAK_UNIT_BYTES);
    uint32_t index = span.superslab->index, end = hak_span_state.end;
    static const unsigned kept[] = {0, 2};
    for (unsigned i = 0; i < UNIT_COUNT(kept); i++) {
        hak_summary_t *fit = &hak_span_state.fit[kept[i]];
        uint64_t free = span.superslab->free_units;
        unsigned right = hak_longest_run(free, hak_fit_starts(kept[i]));
        unit_summary_set(fit, index, right - 1);
        assert_string_equal(hak_audit_summaries(), "SPAN-4");
        unit_summary_set(fit, index, right);
    }
    unit_summary_set(&hak_span_state.vacant, end, 1);
    assert_string_equal(hak_audit_summaries(), "SPAN-9");
    unit_summary_set(&hak_span_state.vacant, end, 0);
    unit_span_free(&span, 1);
    unit_summary_set(&hak_span_state.dirty, index, 0);
    assert_string_equal(hak_audit_summaries(), "SPAN-10");
    unit_summary_set(&hak_span_state.dirty, index, 1);
    unit_span_check();
}
