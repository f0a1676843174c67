/* SPDX-License-Identifier: MIT
 *
 * Which superslabs a purge takes units from, and what it costs to find them beside many that have
 * nothing to give back. */
#include "unit/span.h"

/* Steps are counted: lines of summaries that searches read, and superslabs that purges visit. */
enum { FULL_MANY = 3000, STEPS_MOST = 64, WALK_SPANS = 128 };

static hak_span_t purge_steps_walls[FULL_MANY];

static void walls_take(unsigned count) {
    UNIT_TAKE_ALL(purge_steps_walls, count, unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES));
    hak_span_purge(0); /* what was mapped ahead */
}

static uint64_t steps(void) {
    return hak_summary_lines_read + hak_purge_visits;
}

/* --- the cost -------------------------------------------------------------------------------- */

enum { GIVERS = 4, GIVEN_UNITS = 3 };

static unsigned giver(unsigned i, unsigned superslabs) {
    return i == GIVERS - 1 ? superslabs - 2 : i * superslabs / GIVERS + 1;
}

/* Steps of a purge that returns some units of a few superslabs, all others being full. */
static uint64_t steps_for_units(unsigned superslabs, size_t keep_bytes) {
    walls_take(superslabs);
    for (unsigned i = 0; i < GIVERS; i++) {
        hak_span_t *wall = &purge_steps_walls[giver(i, superslabs)];
        hak_span_free(wall->superslab, 0, GIVEN_UNITS, GIVEN_UNITS);
        wall->unit = GIVEN_UNITS;
        wall->count -= GIVEN_UNITS;
    }
    uint64_t before = steps();
    assert_int_equal(hak_span_purge(keep_bytes), GIVERS * GIVEN_UNITS * HAK_UNIT_BYTES);
    uint64_t taken = steps() - before;
    assert_int_equal(unit_span_check().unused_dirty_bytes, 0);
    unit_span_free_all(purge_steps_walls, superslabs, 0);
    hak_span_purge(0);
    return taken;
}

static const unsigned sizes[] = {100, 1000, FULL_MANY};

static void expect_few(uint64_t taken, unsigned superslabs) {
    UNIT_EXPECT(taken != 0 && taken <= STEPS_MOST, "%llu steps with %u superslabs",
                (unsigned long long)taken, superslabs);
}

SPAN_TEST(purge_beside_many_full_superslabs_takes_few_steps) {
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        expect_few(steps_for_units(sizes[i], 2 * HAK_UNIT_BYTES), sizes[i]);
        expect_few(steps_for_units(sizes[i], 0), sizes[i]);
    }
}

/* Steps of a purge that unmaps a few superslabs, which are clean; the others are full. */
static uint64_t steps_for_whole(unsigned superslabs) {
    walls_take(superslabs);
    for (unsigned i = 0; i < GIVERS; i++) {
        unit_span_free(&purge_steps_walls[giver(i, superslabs)], 0);
    }
    uint64_t before = steps();
    assert_int_equal(hak_span_purge(0), (size_t)GIVERS * HAK_SUPERSLAB_BYTES);
    uint64_t taken = steps() - before;
    for (unsigned i = 0; i < GIVERS; i++) {
        purge_steps_walls[giver(i, superslabs)] = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES);
    }
    unit_span_check();
    unit_span_free_all(purge_steps_walls, superslabs, 0);
    hak_span_purge(0);
    return taken;
}

SPAN_TEST(purge_of_unused_superslabs_beside_many_full_ones_takes_few_steps) {
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        expect_few(steps_for_whole(sizes[i]), sizes[i]);
    }
}

/* --- the choice ------------------------------------------------------------------------------ */

enum { MOST_SUPERSLABS = 256 };

typedef struct expected {
    const hak_superslab_t *superslab;
    uint64_t free, clean;
    bool is_gone;
} expected_t;

typedef struct walk {
    expected_t at[MOST_SUPERSLABS];
    size_t seen, as_expected; /* superslabs afterwards */
} walk_t;

static void walk_note(hak_superslab_t *superslab, void *context) {
    walk_t *walk = context;
    walk->at[superslab->index % MOST_SUPERSLABS] =
        (expected_t){superslab, superslab->free_units, superslab->clean_units, false};
}

static void walk_compare(hak_superslab_t *superslab, void *context) {
    walk_t *walk = context;
    const expected_t *expected = &walk->at[superslab->index % MOST_SUPERSLABS];
    walk->seen++;
    walk->as_expected += superslab == expected->superslab && !expected->is_gone &&
                         superslab->free_units == expected->free &&
                         superslab->clean_units == expected->clean;
}

/* From the youngest on, superslab by superslab, as long as too much is unused: purge.c says what
 * goes. Returns how many stay. */
static size_t walk_purge(walk_t *walk, size_t keep_units) {
    size_t count = hak_span_state.count, whole = hak_span_state.whole_count;
    size_t unused = hak_span_unused(hak_span_counts());
    for (unsigned i = MOST_SUPERSLABS; i-- > 0 && (unused > keep_units || keep_units == 0);) {
        expected_t *at = &walk->at[i];
        if (at->superslab == NULL) {
            continue;
        }
        bool is_whole = at->free == ~0ull;
        unused -= hak_popcount(at->free & ~at->clean);
        if (is_whole && (keep_units == 0 || (whole > 16 && whole > count / 2))) {
            at->is_gone = true;
            whole--;
            count--;
        } else {
            at->clean |= at->free;
        }
    }
    return count;
}

static void purge_and_compare(size_t keep_units) {
    static walk_t walk;
    walk = (walk_t){0};
    hak_span_visit(walk_note, &walk);
    size_t stay = walk_purge(&walk, keep_units);
    hak_span_purge(keep_units * HAK_UNIT_BYTES);
    hak_span_visit(walk_compare, &walk);
    assert_int_equal(walk.seen, stay);
    assert_int_equal(walk.as_expected, stay);
    unit_span_check();
}

/* Superslabs are full, partly or wholly unused, clean or not; many or few are wholly unused. */
SPAN_TEST(purge_of_any_state_takes_what_a_walk_from_the_youngest_takes) {
    static hak_span_t held[WALK_SPANS];
    uint64_t seed = 19;
    unsigned count = 0;
    for (unsigned step = 0; step < 1500; step++) {
        uint64_t random = hak_rng_next(&seed);
        unsigned want = (unsigned)(random >> 8) % WALK_SPANS;
        while (count < want) {
            uint64_t shape = hak_rng_next(&seed);
            bool is_full = shape % 4 == 0;
            held[count++] =
                unit_span(is_full ? 64 : 1 + (unsigned)(shape >> 8) % 40, HAK_UNIT_BYTES);
        }
        while (count > want) {
            uint64_t shape = hak_rng_next(&seed);
            unsigned which = (unsigned)(shape >> 8) % count;
            bool is_dirty = shape % 2 == 0;
            unit_span_free(&held[which],
                           is_dirty ? (unsigned)(shape >> 40) % (held[which].count + 1) : 0);
            held[which] = held[--count];
        }
        size_t unused = hak_span_unused(hak_span_counts());
        size_t keep = random % 8 == 0 ? 0 : (size_t)(random >> 32) % (unused + 2);
        purge_and_compare(keep);
    }
}
