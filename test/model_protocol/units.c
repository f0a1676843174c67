/* SPDX-License-Identifier: MIT
 *
 * Units without a lock: span/ as it is, with one superslab, or two that share an address range.
 * Whoever has a unit writes to it, so that two are a race, and what is called zero is. */
#define hak_span_alloc unit_alloc /* beside the doubles of world.c and platform.c */
#define hak_span_free unit_free
#define hak_span_visit unit_visit
#define hak_span_purged_bytes unit_purged_bytes
#define hak_span_limit_bytes unit_limit_bytes
#define hak_huge_page_due unit_huge_page_due
#define hak_huge_page_touch unit_huge_page_touch
#define hak_dense_sure unit_dense_sure
#define hak_meta_alloc unit_meta_alloc

#include "world.h"

#include "os/optional.h"
#include "os/os.h"
#include "span/fit.c"
#include "span/huge_page.c"
#include "span/purge.c"
#include "span/summary.c"
#include "span/superslab.c"

enum {
    UNIT_TAKEN = 11, /* beside MARK_s of world.h */
    UNIT_NONE,
    UNIT_PURGED,
    UNIT_UNMAPPED,
    UNIT_MAPPED,
    UNIT_EITHER = 1 << UNIT_TAKEN | 1 << UNIT_NONE,
};

hak_dense_t unit_dense_sure;
uint32_t hak_os_unmap_count;

static hak_superslab_t unit_superslab;
static struct {
    hak_superslab_t *table[HAK_SUMMARY_LINE];
    HAK_LINE_ALIGNED uint8_t line[HAK_SPAN_FITS + 2][HAK_SUMMARY_LINE];
    uint8_t more[3][HAK_SUMMARY_LINE]; /* of fit[0]: two lines and one above, zeroed */
} unit_meta;
static uint32_t unit_memory[HAK_SUPERSLAB_UNITS]; /* plain: what its holder wrote; 0: clean */

/* --- what the sources call -------------------------------------------------------------------- */

bool hak_dense_take(hak_dense_t *dense) {
    (void)dense;
    return true;
}
void *hak_meta_alloc(size_t bytes) {
    (void)bytes;
    return NULL;
}
size_t hak_meta_bytes(void) {
    return 0;
}
bool hak_pagemap_prepare(const void *base, size_t bytes) {
    (void)base, (void)bytes;
    return true;
}
void hak_pagemap_set_superslab(const void *base, hak_superslab_t *superslab) {
    (void)base, (void)superslab;
}
void *hak_os_map(size_t bytes, size_t align) {
    (void)bytes, (void)align;
    bool is_there = hak_span_state.unused != NULL; /* else there would be no record */
    is_there ? model_reach(UNIT_MAPPED) : (void)0;
    return is_there ? (void *)(uintptr_t)HAK_SUPERSLAB_BYTES : NULL;
}
static void unit_zero(size_t from, size_t count) {
    for (size_t unit = 0; unit < count; unit++) {
        unit_memory[from + unit] = 0;
    }
}
bool hak_os_unmap(void *base, size_t bytes) {
    (void)base, (void)bytes;
    unit_zero(0, HAK_SUPERSLAB_UNITS);
    model_reach(UNIT_UNMAPPED);
    return true;
}
bool hak_os_purge(void *base, size_t bytes) {
    unit_zero(((uintptr_t)base - HAK_SUPERSLAB_BYTES) / HAK_UNIT_BYTES, bytes / HAK_UNIT_BYTES);
    model_reach(UNIT_PURGED);
    return true;
}
bool hak_os_advise_huge(void *base, size_t bytes, bool is_huge) {
    (void)base, (void)bytes, (void)is_huge;
    return true;
}
bool hak_os_split_huge(void *base, size_t bytes) {
    (void)base, (void)bytes;
    return true;
}
bool hak_os_huge_may_be_default(void) {
    return false;
}

/* --- setting up ------------------------------------------------------------------------------- */

static void summary_start(hak_summary_t *summary, unsigned line, unsigned promise) {
    summary->level[0] = unit_meta.line[line];
    summary->size_log2 = HAK_SUMMARY_LINE_LOG2;
    unit_meta.line[line][0] = (uint8_t)promise;
}

/* One superslab; runs of `promise` units are promised, and dirty ones. Enough is in use for huge
 * pages. */
static void unit_start_alone(uint64_t free, uint64_t clean, unsigned promise) {
    hak_span_state_t *state = &hak_span_state;
    world_threads();
    for (unsigned n = 0; n < HAK_SPAN_FITS; n++) {
        summary_start(&state->fit[n], n, n == 0 ? promise : 0);
    }
    summary_start(&state->vacant, HAK_SPAN_FITS, 0);
    summary_start(&state->dirty, HAK_SPAN_FITS + 1, 1);
    state->table = unit_meta.table;
    state->capacity = HAK_SUMMARY_LINE;
    state->end = state->count = 1;
    state->counts = (128ull + hak_popcount(~free)) << 32 | hak_popcount(free & ~clean);
    state->high_units = HAK_SUPERSLAB_UNITS;
    state->whole_count = free == ~0ull;
    state->table[0] = &unit_superslab;
    unit_superslab.base = (char *)(uintptr_t)HAK_SUPERSLAB_BYTES;
    unit_superslab.free_units = free;
    unit_superslab.clean_units = clean;
    unit_memory[1] = (clean & 2) == 0; /* all others are clean where they are free */
    model_share(MODEL_WORD(&unit_superslab.free_units));
    model_share(MODEL_WORD(&unit_meta.line[0][0]));
}

/* The same where several threads lock, or change clean units. */
static void unit_start(uint64_t free, uint64_t clean, unsigned promise) {
    unit_start_alone(free, clean, promise);
    model_share(MODEL_WORD(&hak_locks[HAK_LOCK_SPAN].state));
    model_share(MODEL_WORD(&unit_superslab.clean_units));
}

static void use_units(bool is_there, unsigned unit, unsigned count, bool is_zero) {
    model_reach(is_there ? UNIT_TAKEN : UNIT_NONE);
    for (unsigned i = 0; is_there && i < count; i++) {
        MODEL_CHECK(!is_zero || unit_memory[unit + i] == 0, "SPAN-2: a unit is not zero");
        unit_memory[unit + i] = 1;
    }
}

static void take(unsigned count, hak_dense_t *use) {
    hak_span_t span = {0};
    bool is_there = unit_alloc(HAK_PARTITION_ANY, count, HAK_UNIT_BYTES, use, &span);
    use_units(is_there, span.unit, count, span.is_zero);
}

/* The same without a second search, under the lock. */
static void try_take(unsigned count) {
    hak_units_t units;
    hak_superslab_t *superslab = hak_fit_take(HAK_PARTITION_ANY, count, HAK_UNIT_BYTES, &units);
    unsigned unit = superslab != NULL ? hak_ctz(units.mask) : 0;
    bool is_zero = superslab != NULL && span_begin(superslab, &units, unit, count, HAK_SPAN_SPARSE);
    use_units(superslab != NULL, unit, count, is_zero);
}

/* A unit that was clean, and is written to or not. */
static void give(unsigned unit, bool is_written) {
    unit_memory[unit] += is_written;
    unit_free(&unit_superslab, unit, 1, is_written);
}

STEP(take_one, take(1, HAK_SPAN_SPARSE))
STEP(try_one, try_take(1))
STEP(try_two, try_take(2))
STEP(take_dense, take(1, HAK_SPAN_DENSE))
STEP(give_first, give(0, true))
STEP(give_second, give(1, true))
STEP(give_clean, give(0, false))
STEP(purge_all, hak_span_purge(0))
STEP(lower_fit, fit_lower(HAK_PARTITION_ANY, 0, 0, &unit_superslab, 0))

static void move_fit(void) {
    hak_lock_acquire(HAK_LOCK_SPAN);
    hak_summary_move(&hak_span_state.fit[0], 1, 2 * HAK_SUMMARY_LINE, unit_meta.more);
    hak_lock_release(HAK_LOCK_SPAN);
}

static void unit_check(void) {
    const hak_span_state_t *state = &hak_span_state;
    const hak_superslab_t *superslab = &unit_superslab;
    uint64_t free = superslab->free_units, clean = superslab->clean_units;
    bool is_there = state->table[0] != NULL;
    size_t used = is_there ? hak_popcount(~free) : 0;
    MODEL_CHECK(is_there || free == 0, "SPAN-1: units of no superslab");
    MODEL_CHECK(state->counts >> 32 == 128 + used, "SPAN-3: units in use");
    MODEL_CHECK((uint32_t)state->counts == hak_popcount(free & ~clean), "SPAN-3: unused units");
    MODEL_CHECK(state->whole_count == (free == ~0ull), "SPAN-3: whole superslabs");
    for (unsigned level = 0; level <= hak_summary_top(state->fit[0].size_log2); level++) {
        MODEL_CHECK(state->fit[0].level[level][0] >= hak_longest_run(free, ~0ull),
                    "SPAN-4: too little promised");
    }
    MODEL_CHECK((free & ~clean) == 0 || unit_meta.line[HAK_SPAN_FITS + 1][0] != 0, "SPAN-10");
    MODEL_CHECK((superslab->huge_pages & 1) == 0 || (clean & hak_span_huge_page(0)) == 0 ||
                    (clean & free & hak_span_huge_page(0)) == hak_span_huge_page(0),
                "SPAN-6: a part of a huge page is clean");
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS; unit++) {
        bool is_clean = (free & clean) >> unit & 1;
        MODEL_CHECK(!is_clean || unit_memory[unit] == 0, "SPAN-2: a clean unit is not zero");
    }
}

STEP(before_full, unit_start(0, 3, 2))

/* Too much is promised above the lowest level. */
static void before_levels(void) {
    unit_start(0, 3, 0);
    move_fit();
    hak_span_state.fit[0].level[1][0] = 2;
    model_share(MODEL_WORD(&unit_meta.more[0][0]));
    model_share(MODEL_WORD(&unit_meta.more[2][0]));
}

/* One thread locks, one changes clean units, and units_levels has the level above: no steps. */
static void before_move(void) {
    unit_start_alone(0, 3, 1);
    model_share(MODEL_WORD(&hak_span_state.fit[0].size_log2));
    model_share(MODEL_WORD(&hak_span_state.fit[0].level[0]));
    model_share(MODEL_WORD(&unit_meta.more[0][0]));
}

static void before_dirty(void) {
    unit_start(2, 1, 2);
    model_share(MODEL_WORD(&unit_meta.line[HAK_SPAN_FITS + 1][0]));
}

/* Dirty units are promised, and there are none. */
static void before_settle(void) {
    unit_start(0, 1, 2);
    model_share(MODEL_WORD(&unit_meta.line[HAK_SPAN_FITS + 1][0]));
}

STEP(before_one_used, unit_start(~1ull, ~0ull, 64);
     model_share(MODEL_WORD(&hak_span_state.table[0])))
STEP(before_whole, unit_start(~0ull, ~0ull, 64); model_share(MODEL_WORD(&hak_span_state.table[0])))

static void before_huge(void) {
    unit_start(hak_span_huge_page(0), hak_span_huge_page(0), 64);
    hak_knobs.huge_pages = 1;
    unit_superslab.huge_pages = 1;
    model_share(MODEL_WORD(&unit_superslab.huge_pages));
    hak_span_state.huge_page_count = 1;
}

static void before_huge_dirty(void) {
    before_huge();
    unit_superslab.clean_units = 0;
    hak_span_state.counts += HAK_HUGE_PAGE_UNITS;
}

static void before_small(void) {
    before_huge();
    unit_superslab.huge_pages = 0;
    hak_span_state.huge_page_count = 0;
}

const model_scenario_t unit_scenarios[] = {
    {"units", before_full, {give_first, try_one, try_one}, unit_check, UNIT_EITHER},
    {"units_merge", before_full, {give_first, give_second, try_two}, unit_check, UNIT_EITHER},
    {"units_levels", before_levels, {give_first, try_one, NULL}, unit_check, UNIT_EITHER},
    {"units_move", before_move, {give_first, lower_fit, move_fit}, unit_check, 0, 3},
    {"units_move_every", before_move, {give_first, lower_fit, move_fit}, unit_check, 0, 5},
    {"units_purge", before_dirty, {give_first, purge_all, NULL}, unit_check, 1u << UNIT_PURGED},
    {"units_settle", before_settle, {give_first, purge_all, NULL}, unit_check, 1u << UNIT_PURGED},
    {"units_back",
     before_dirty,
     {try_one, purge_all, NULL},
     unit_check,
     1u << UNIT_PURGED | 1u << UNIT_NONE},
    {"units_unmap",
     before_one_used,
     {give_clean, purge_all, NULL},
     unit_check,
     1u << UNIT_UNMAPPED},
    {"units_map",
     before_whole,
     {purge_all, take_one, NULL},
     unit_check,
     1u << UNIT_UNMAPPED | 1u << UNIT_MAPPED},
    {"units_huge", before_huge, {take_dense, take_one, NULL}, unit_check, 1u << UNIT_TAKEN},
    {"units_rest", before_huge, {take_dense, try_two, NULL}, unit_check, UNIT_EITHER},
    {"units_huge_purge",
     before_huge_dirty,
     {take_dense, purge_all, NULL},
     unit_check,
     1u << UNIT_PURGED,
     4},
    {"units_huge_purge_every",
     before_huge_dirty,
     {take_dense, purge_all, NULL},
     unit_check,
     1u << UNIT_PURGED},
    {"units_small", before_small, {take_dense, take_dense, NULL}, unit_check, 1u << UNIT_TAKEN},
    {0},
};
