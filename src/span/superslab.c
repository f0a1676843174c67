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

#include <string.h>

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
    char *memory = (char *)&table[capacity];
    for (unsigned n = 0; n < HAK_SPAN_FITS; n++, memory += summary_bytes) {
        bool is_kept = n % HAK_SPAN_ALIGNS == 0 || (state->alignments >> n & 1) != 0;
        hak_summary_move(&state->fit[n], is_kept ? state->end : 0, capacity, memory);
    }
    hak_summary_move(&state->vacant, state->end, capacity, memory);
    hak_summary_move(&state->dirty, state->end, capacity, memory + summary_bytes);
    state->table = table;
    state->capacity = capacity;
    return true;
}

/* The lowest free place in the table: an unmapped superslab's, or the end. */
static bool table_place(uint32_t *index) {
    hak_span_state_t *state = &hak_span_state;
    *index = state->count < state->end ? hak_summary_find(&state->vacant, 1) : HAK_SUMMARY_NONE;
    if (*index != HAK_SUMMARY_NONE) { /* after a fork in a section `count` may be wrong */
        hak_summary_set(&state->vacant, *index, 0);
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
        superslab = hak_meta_alloc_aside(sizeof *superslab, sizeof superslab->plane);
    }
    if (superslab == NULL) {
        hak_summary_set(&state->vacant, index, 1);
        return false;
    }
    memset(superslab, 0, offsetof(hak_superslab_t, units_to_first));
    superslab->base = base;
    superslab->free_units = ~0ull;
    superslab->clean_units = ~0ull;
    superslab->index = index;
    superslab->partition = (uint8_t)partition;
    state->has_partitions |= partition != HAK_PARTITION_ANY;
    hak_pagemap_set_superslab(base, superslab);
    state->table[index] = superslab;
    state->count++;
    state->whole_count++;
    hak_fit_note(superslab);
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

static void span_look_at_peak(void) {
    size_t in_use = hak_span_state.in_use_units * HAK_UNIT_BYTES;
    size_t peak = hak_load_relaxed(&hak_span_peak_bytes);
    if (HAK_UNLIKELY(in_use > peak) && in_use - peak > hak_load_relaxed(&hak_span_purged_bytes)) {
        hak_want(HAK_WANTED_PEAK);
    }
}

/* After clean units were taken, before they are touched. */
static void span_look_at_limit(void) {
    size_t units = hak_span_state.in_use_units + hak_span_state.unused_dirty_units;
    size_t held = units * HAK_UNIT_BYTES, limit = hak_load_relaxed(&hak_span_limit_bytes);
    if (HAK_UNLIKELY(held > limit) && held - limit > hak_load_relaxed(&hak_span_purged_bytes)) {
        hak_want(HAK_WANTED_LIMIT);
    }
}

/* Free units become part of a span. Returns whether they read as zero. */
HAK_INLINE bool units_take(hak_superslab_t *superslab, unsigned unit, unsigned count,
                           hak_dense_t *use) {
    uint64_t mask = hak_mask(count) << unit;
    bool is_growth = (superslab->clean_units & mask) != 0;
    hak_span_note_opened(superslab, mask, use);
    uint64_t dirty = mask & ~superslab->clean_units, before = superslab->free_units;
    hak_span_state.whole_count -= before == ~0ull;
    superslab->free_units = before & ~mask;
    hak_fit_note_taken(superslab);
    hak_span_note_dirty(superslab);
    hak_span_state.in_use_units += count;
    hak_span_take_dirty(hak_span_count_units(dirty, unit, count));
    if (dirty != mask) {
        hak_span_note_wanted(superslab, mask & ~dirty);
    }
    if (is_growth) {
        span_look_at_limit();
    }
    span_look_at_peak();
    return dirty == 0;
}

bool hak_span_alloc(hak_partition_t partition, unsigned count, size_t align, hak_dense_t *use,
                    hak_span_t *span) {
    uint64_t starts = 0;
    hak_lock_acquire(HAK_LOCK_SPAN);
    hak_superslab_t *superslab = hak_fit_find(partition, count, align, &starts);
    if (superslab == NULL && superslab_map(partition)) {
        superslab = hak_fit_find(partition, count, align, &starts);
    }
    if (superslab != NULL) {
        unsigned unit = hak_ctz(starts);
        HAK_ASSERT((superslab->free_units >> unit & hak_mask(count)) == hak_mask(count), "SPAN-1");
        char *base = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
        bool is_zero = units_take(superslab, unit, count, use);
        *span = (hak_span_t){superslab, base, unit, count, is_zero};
    }
    hak_lock_release(HAK_LOCK_SPAN);
    return superslab != NULL;
}

void hak_span_free(hak_superslab_t *superslab, unsigned unit, unsigned count, unsigned touched) {
    hak_span_state_t *state = &hak_span_state;
    uint64_t mask = hak_mask(count) << unit;
    hak_lock_acquire(HAK_LOCK_SPAN);
    HAK_ASSERT((superslab->free_units & mask) == 0, "SPAN-1");
    superslab->clean_units &= ~(hak_mask(touched) << unit);
    superslab->free_units |= mask;
    state->whole_count += superslab->free_units == ~0ull;
    hak_span_add_dirty(hak_span_count_units(mask & ~superslab->clean_units, unit, count));
    state->in_use_units -= count;
    hak_fit_note_free(superslab, unit);
    hak_span_note_dirty(superslab);
    size_t unused = state->unused_dirty_units * HAK_UNIT_BYTES;
    if (HAK_UNLIKELY(unused > hak_load_relaxed(&hak_knobs.retain_min_bytes)) &&
        unused > hak_retain_bytes(state->in_use_units * HAK_UNIT_BYTES)) {
        hak_want(HAK_WANTED_PURGE);
    }
    hak_lock_release(HAK_LOCK_SPAN);
}

bool hak_span_extend(hak_superslab_t *superslab, unsigned unit, unsigned count, unsigned wanted) {
    if (unit + wanted > HAK_SUPERSLAB_UNITS) {
        return false;
    }
    uint64_t mask = hak_mask(wanted - count) << (unit + count);
    hak_lock_acquire(HAK_LOCK_SPAN);
    bool fits = (superslab->free_units & mask) == mask;
    if (fits) {
        (void)units_take(superslab, unit + count, wanted - count, HAK_SPAN_SPARSE);
    }
    hak_lock_release(HAK_LOCK_SPAN);
    return fits;
}

void hak_span_stats(hak_span_stats_t *stats) {
    hak_lock_acquire(HAK_LOCK_SPAN);
    stats->superslab_count = hak_span_state.count;
    stats->whole_count = hak_span_state.whole_count;
    stats->mapped_bytes = hak_span_state.count * (size_t)HAK_SUPERSLAB_BYTES;
    stats->in_use_bytes = hak_span_state.in_use_units * HAK_UNIT_BYTES;
    stats->unused_dirty_bytes = hak_span_state.unused_dirty_units * HAK_UNIT_BYTES;
    hak_lock_release(HAK_LOCK_SPAN);
    stats->meta_bytes = hak_meta_bytes();
}

enum { VISIT_BATCH = 32 }; /* superslabs between two checks for waiters of the lock */

void hak_span_visit(void (*visit)(hak_superslab_t *, void *), void *context) {
    hak_lock_acquire(HAK_LOCK_SPAN);
    for (uint32_t i = 0; i < hak_span_state.end; i++) {
        if (i % VISIT_BATCH == VISIT_BATCH - 1) {
            hak_lock_pass(HAK_LOCK_SPAN);
        }
        if (hak_span_state.table[i] != NULL) {
            visit(hak_span_state.table[i], context);
        }
    }
    hak_lock_release(HAK_LOCK_SPAN);
}
