/* SPDX-License-Identifier: MIT
 *
 * Superslabs: map, carve, join, and their table in order of creation. fit.c chooses the oldest that
 * fits: the old ones stay packed, the young ones become empty (SPAN-5). purge.c returns memory to
 * the kernel. */
#include "base/atomics.h"
#include "base/check.h"
#include "base/counters.h"
#include "os/lock.h"
#include "os/optional.h"
#include "span/pagemap.h"
#include "span/span.h"
#include "span/span_state.h"

hak_span_state_t hak_span_state; /* [lock SPAN] */

enum { TABLE_LEAST = HAK_SUMMARY_LINE };

/* Doubles the table and its summaries; the old ones (at most half the new size) stay behind in
 * metadata. Summaries of unused alignments are not touched. */
static bool table_grow(void) {
    hak_span_state_t *state = &hak_span_state;
    uint32_t capacity = state->capacity == 0 ? TABLE_LEAST : state->capacity * 2;
    size_t summary_bytes = hak_summary_bytes(capacity);
    hak_superslab_t **table =
        hak_meta_alloc(capacity * sizeof *table + (HAK_SPAN_FITS + 2) * summary_bytes);
    if (table == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < state->end; i++) {
        table[i] = state->table[i];
    }
    hak_store_release(&state->table, table); /* pairs SUMMARY: before places that it has room for */
    char *memory = (char *)&table[capacity];
    for (unsigned n = 0; n < HAK_SPAN_FITS; n++, memory += summary_bytes) {
        bool is_kept = n % HAK_SPAN_ALIGNS == 0 || (state->alignments >> n & 1) != 0;
        hak_summary_move(&state->fit[n], is_kept ? state->end : 0, capacity, memory);
    }
    hak_summary_move(&state->vacant, state->end, capacity, memory);
    hak_summary_move(&state->dirty, state->end, capacity, memory + summary_bytes);
    hak_store_release(&state->capacity, capacity); /* pairs SUMMARY */
    return true;
}

/* The lowest free place in the table: an unmapped superslab's, or the end. */
static bool table_place(uint32_t *index) {
    hak_span_state_t *state = &hak_span_state;
    *index = state->count < state->end ? hak_summary_find(&state->vacant, 1) : HAK_SUMMARY_NONE;
    if (*index != HAK_SUMMARY_NONE) { /* after a fork in a section `count` may be wrong */
        (void)hak_summary_lower(&state->vacant, *index, 0);
        return true;
    }
    if (state->end == state->capacity && !table_grow()) {
        return false;
    }
    *index = state->end++;
    return true;
}

/* Makes a superslab of fresh memory. false: metadata ran out, the caller keeps the memory. */
static bool superslab_add(char *base, hak_partition_t partition) {
    hak_span_state_t *state = &hak_span_state;
    uint32_t index;
    if (!hak_pagemap_prepare(base, HAK_SUPERSLAB_BYTES) || !table_place(&index)) {
        return false;
    }
    hak_superslab_t *superslab = state->unused;
    if (superslab != NULL) {
        state->unused = superslab->next;
    } else { /* behind the table: only the front of a new one is touched soon, first by a write */
        superslab = hak_meta_alloc(sizeof *superslab);
        hak_meta_note_used(superslab != NULL ? -(ptrdiff_t)sizeof superslab->plane
                                             : 0); /* not yet */
    }
    if (superslab == NULL) {
        hak_summary_raise(&state->vacant, index, 1);
        return false;
    }
    superslab->base = base;
    superslab->leaving_units = superslab->purged_units = superslab->padding_units = 0;
    superslab->clean_units = ~0ull;
    superslab->huge_pages = 0;
    superslab->index = index;
    superslab->partition = (uint8_t)partition;
    state->has_partitions |= partition != HAK_PARTITION_ANY;
    hak_pagemap_set_superslab(base, superslab);
    hak_store_relaxed(&state->table[index], superslab);
    hak_single_writer_add(&state->count, 1);
    (void)hak_add_relaxed(&state->whole_count, 1);
    hak_store_release(&superslab->free_units, ~0ull); /* pairs UNITS */
    hak_fit_promise(index, partition, HAK_SUPERSLAB_UNITS, ~0ull, false);
    hak_count(superslab_map);
    return true;
}

enum {
    MAP_SHARE = 4, /* of the present superslabs, and one more: mapped by one call */
    MAP_MOST = 16,
    REFUSED_LOG2 = 6, /* refused so often without asking: memory of others may have gone */
    REFUSED_EACH = 4, /* refusals in a row double the number */
};

bool hak_span_is_refused;

/* After n refusals in a row, 2^(n/4) - 1 requests are refused without asking, at most 63. */
static bool map_is_refused_still(void) {
    hak_refusal_t *refusal = &hak_span_state.refusal;
    bool is_same = refusal->unmap_count == hak_load_relaxed(&hak_os_unmap_count);
    bool is_refused = refusal->left != 0 && is_same;
    refusal->left -= is_refused;
    hak_store_relaxed(&hak_span_is_refused, is_refused);
    return is_refused;
}

static void map_note(bool is_refused) {
    hak_refusal_t *refusal = &hak_span_state.refusal;
    uint32_t run = (uint32_t)hak_least(refusal->run + 1, REFUSED_LOG2 * REFUSED_EACH);
    refusal->run = is_refused ? run : 0;
    refusal->left = (1u << refusal->run / REFUSED_EACH) - 1;
    refusal->unmap_count = hak_load_relaxed(&hak_os_unmap_count);
}

/* Maps superslabs in batches: a growing heap makes few calls, an oscillating one none. Untouched
 * addresses cost only a place under RLIMIT_AS, so when a batch does not fit, one is tried. The lock
 * is held throughout: a mapping call is short. */
static bool superslab_map(hak_partition_t partition) {
    size_t guard = hak_span_guard_bytes();
    uint32_t wanted = guard != 0 ? 1 : hak_span_state.count / MAP_SHARE + 1;
    if (map_is_refused_still()) {
        return false;
    }
    wanted = wanted > MAP_MOST ? MAP_MOST : wanted;
    char *base = hak_os_map((size_t)wanted * HAK_SUPERSLAB_BYTES + guard, HAK_SUPERSLAB_BYTES);
    if (base == NULL && wanted > 1) {
        wanted = 1;
        base = hak_os_map(HAK_SUPERSLAB_BYTES, HAK_SUPERSLAB_BYTES);
    }
    map_note(base == NULL);
    if (base == NULL) {
        return false;
    }
    /* huge_page.c decides, even where the kernel's default is huge; if it is not, the first
     * superslab, all that a small process has, saves the call */
    if (hak_span_state.count != 0 || hak_os_huge_may_be_default()) {
        hak_os_advise_huge(base, (size_t)wanted * HAK_SUPERSLAB_BYTES, false);
    }
    if (guard != 0) {
        hak_os_conceal(base + HAK_SUPERSLAB_BYTES, guard);
    }
    if (HAK_MTE) {
        hak_os_tags_allow(base, HAK_SUPERSLAB_BYTES);
    }
    uint32_t added = 0;
    while (added < wanted && superslab_add(base + (size_t)added * HAK_SUPERSLAB_BYTES, partition)) {
        added++;
    }
    if (added < wanted) {
        hak_os_unmap(base + (size_t)added * HAK_SUPERSLAB_BYTES,
                     (size_t)(wanted - added) * HAK_SUPERSLAB_BYTES + guard);
    }
    return added != 0;
}

HAK_LOCKED_STATE HAK_LINE_ALIGNED size_t hak_span_purged_bytes; /* [atomic] */
HAK_LOCKED_STATE size_t hak_span_peak_bytes;                    /* [atomic] */
HAK_LOCKED_STATE size_t hak_span_limit_bytes = SIZE_MAX;        /* [atomic] */

/* Whether so many units, less purged pages, pass a bound: then `request` is made. */
HAK_INLINE void span_look(size_t units, size_t bound_bytes, uint32_t request) {
    size_t bytes = units * HAK_UNIT_BYTES; /* others write the line of the purged ones */
    if (HAK_UNLIKELY(bytes > bound_bytes) &&
        bytes - bound_bytes > hak_load_relaxed(&hak_span_purged_bytes)) {
        hak_want(request);
    }
}

/* Purged units that are wanted again cost a fault for each OS page: regret, for reclaim/. */
void hak_span_note_wanted(hak_superslab_t *superslab, uint64_t units) {
    uint64_t regret = units & hak_load_relaxed(&superslab->purged_units);
    if (regret != 0) {
        (void)hak_and_relaxed(&superslab->purged_units, ~units);
        hak_count_by(purge_regret_units, hak_popcount(regret));
    }
}

/* Units that were taken become part of a span. Returns whether they read as zero. */
HAK_INLINE bool span_begin(hak_superslab_t *superslab, const hak_units_t *units, unsigned unit,
                           unsigned count, hak_dense_t *use) {
    uint64_t mask = units->mask, clean = mask & hak_load_relaxed(&superslab->clean_units);
    bool is_growth = clean != 0;
    if (is_growth) {
        hak_span_note_opened(superslab, units, use);
        clean = mask & hak_load_relaxed(&superslab->clean_units);
        hak_span_note_wanted(superslab, clean);
    }
    if ((hak_load_relaxed(&superslab->padding_units) & mask) != 0) {
        (void)hak_and_relaxed(&superslab->padding_units, ~mask);
    }
    if (HAK_UNLIKELY(units->before == ~0ull)) {
        (void)hak_sub_relaxed(&hak_span_state.whole_count, 1);
    }
    uint64_t counts = hak_span_count_taken(count, hak_span_count_units(mask & ~clean, unit, count));
    size_t in_use = hak_span_in_use(counts);
    if (is_growth) { /* before the clean units are touched */
        size_t limit_bytes = hak_load_relaxed(&hak_span_limit_bytes);
        span_look(in_use + hak_span_unused(counts), limit_bytes, HAK_WANTED_LIMIT);
    }
    span_look(in_use, hak_load_relaxed(&hak_span_peak_bytes), HAK_WANTED_PEAK);
    return clean == mask;
}

/* The oldest superslab by the summaries, or mapped, as they say all that others gave. */
static HAK_NOINLINE hak_superslab_t *units_find(hak_partition_t partition, unsigned count,
                                                size_t align, hak_units_t *units) {
    hak_lock_acquire(HAK_LOCK_SPAN);
    hak_superslab_t *superslab = hak_fit_take(partition, count, align, units);
    if (superslab == NULL && superslab_map(partition)) {
        superslab = hak_fit_take(partition, count, align, units);
    }
    hak_lock_release(HAK_LOCK_SPAN);
    return superslab;
}

bool hak_span_alloc(hak_partition_t partition, unsigned count, size_t align, hak_dense_t *use,
                    hak_span_t *span) {
    hak_units_t units;
    hak_superslab_t *superslab = NULL;
    hak_set_unlocked_update(true);
    if (!HAK_HARDEN && align <= HAK_UNIT_BYTES) { /* records change partition: SPAN-11 */
        superslab = hak_fit_take(partition, count, HAK_UNIT_BYTES, &units);
    }
    if (superslab == NULL) {
        superslab = units_find(partition, count, align, &units);
    }
    if (superslab != NULL) {
        unsigned unit = hak_ctz(units.mask);
        HAK_ASSERT((units.before & units.mask) == units.mask, "SPAN-1");
        char *base = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
        bool is_zero = span_begin(superslab, &units, unit, count, use);
        *span = (hak_span_t){superslab, base, unit, count, is_zero};
    }
    hak_set_unlocked_update(false);
    return superslab != NULL;
}

/* Whether a run of so many units is more than its superslab promised, or its first dirty one. Once
 * the units are free, the superslab may be gone, and its record another's. */
HAK_INLINE bool is_news(const hak_summary_t *fit, uint32_t index, unsigned run, unsigned dirty) {
    return run > hak_summary_get(fit, index) ||
           (dirty != 0 && hak_summary_get(&hak_span_state.dirty, index) == 0) ||
           hak_load_relaxed(&hak_span_state.alignments) != 0;
}

void hak_span_free(hak_superslab_t *superslab, unsigned unit, unsigned count, unsigned touched) {
    uint64_t mask = hak_mask(count) << unit, written = hak_mask(touched) << unit;
    hak_partition_t partition = hak_span_partition(superslab);
    uint32_t index = superslab->index;
    hak_set_unlocked_update(true);
    uint64_t clean = hak_load_relaxed(&superslab->clean_units);
    if ((clean & written) != 0) {
        clean = hak_and_relaxed(&superslab->clean_units, ~written) & ~written;
    }
    unsigned dirty = hak_span_count_units(mask & ~clean, unit, count);
    uint64_t counts = hak_span_count_given(count, dirty);
    uint64_t before = hak_or_acquire_release(&superslab->free_units, mask); /* pairs UNITS */
    HAK_ASSERT((before & mask) == 0, "SPAN-1");
    uint64_t free = before | mask;
    if (HAK_UNLIKELY(free == ~0ull)) {
        (void)hak_add_relaxed(&hak_span_state.whole_count, 1);
    }
    unsigned run = hak_run_around(free, unit);
    if (HAK_UNLIKELY(is_news(hak_fit_any(partition), index, run, dirty))) {
        hak_fit_promise(index, partition, run, free, dirty != 0);
    }
    hak_set_unlocked_update(false);
    size_t unused = hak_span_unused(counts) * HAK_UNIT_BYTES;
    if (HAK_UNLIKELY(unused > hak_load_relaxed(&hak_knobs.retain_min_bytes)) &&
        unused > hak_retain_bytes(hak_span_in_use(counts) * HAK_UNIT_BYTES)) {
        hak_want(HAK_WANTED_PURGE);
    }
}

bool hak_span_extend(hak_superslab_t *superslab, unsigned unit, unsigned count, unsigned wanted) {
    if (unit + wanted > HAK_SUPERSLAB_UNITS) {
        return false;
    }
    hak_units_t units;
    unsigned more = wanted - count, next = unit + count;
    hak_set_unlocked_update(true);
    bool is_taken = hak_units_take(superslab, more, 1ull << next, &units);
    if (is_taken) {
        (void)span_begin(superslab, &units, next, more, HAK_SPAN_SPARSE);
    }
    hak_set_unlocked_update(false);
    return is_taken;
}

void hak_span_stats(hak_span_stats_t *stats) {
    uint64_t counts = hak_span_counts();
    int32_t whole = hak_load_relaxed(&hak_span_state.whole_count);
    stats->superslab_count = hak_load_relaxed(&hak_span_state.count);
    stats->whole_count = whole > 0 ? (size_t)whole : 0;
    stats->mapped_bytes = stats->superslab_count * (size_t)HAK_SUPERSLAB_BYTES;
    stats->in_use_bytes = hak_span_in_use(counts) * HAK_UNIT_BYTES;
    stats->unused_dirty_bytes = hak_span_unused(counts) * HAK_UNIT_BYTES;
    stats->meta_bytes = hak_meta_bytes();
}

void hak_span_visit(void (*visit)(hak_superslab_t *, void *), void *context) {
    hak_lock_acquire(HAK_LOCK_SPAN);
    for (uint32_t i = 0; i < hak_span_state.end; i++) {
        if (i % HAK_SPAN_VISIT_BATCH == HAK_SPAN_VISIT_BATCH - 1) {
            hak_lock_pass(HAK_LOCK_SPAN);
        }
        if (hak_span_state.table[i] != NULL) {
            visit(hak_span_state.table[i], context);
        }
    }
    hak_lock_release(HAK_LOCK_SPAN);
}
