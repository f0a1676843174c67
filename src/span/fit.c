/* SPDX-License-Identifier: MIT
 *
 * Chooses the superslab of a span: the oldest that has room (SPAN-5). A summary per alignment has
 * the longest run of each superslab (SPAN-4), so a search among 10 000 superslabs is as short as
 * among 100 (docs/experiments/0035-oldest-that-fits.md).
 *
 * Alignments above a unit are rare: their summaries are kept from the first request on, which
 * visits all superslabs. The plain partition has none of them: its large blocks with such
 * alignments have mappings of their own. */
#include "base/check.h"
#include "span/span_state.h"

uint64_t hak_fit_starts(unsigned align_log2) {
    return align_log2 == 0 ? ~0ull : ~0ull / hak_mask(1u << align_log2); /* a bit of every 2^n */
}

static hak_summary_t *fit_of(hak_partition_t partition, unsigned align_log2) {
    return align_log2 == 0 ? hak_fit_any(partition) : &hak_span_state.fit[align_log2];
}

void hak_fit_promise(uint32_t index, hak_partition_t partition, unsigned run, uint64_t free,
                     bool is_dirty) {
    hak_summary_raise(hak_fit_any(partition), index, run);
    for (unsigned kept = hak_load_relaxed(&hak_span_state.alignments); kept != 0;
         kept &= kept - 1) {
        unsigned n = hak_ctz(kept);
        hak_summary_raise(fit_of(partition, n), index, hak_longest_run(free, hak_fit_starts(n)));
    }
    if (is_dirty) {
        hak_summary_raise(&hak_span_state.dirty, index, 1);
    }
}

/* The superslab at a place that the partition's summaries may name; NULL: none. */
static hak_superslab_t *table_get(uint32_t index, hak_partition_t partition) {
    hak_superslab_t **table = hak_load_acquire(&hak_span_state.table); /* pairs SUMMARY */
    hak_superslab_t *superslab = hak_load_relaxed(&table[index]);
    return superslab != NULL && hak_span_partition(superslab) == partition ? superslab : NULL;
}

static uint64_t units_look(hak_superslab_t *superslab) {
    return hak_or_acquire_release(&superslab->free_units, 0); /* pairs UNITS */
}

/* A search in vain saw `before`. Who lowers a promise looks at the units afterwards, and who gives
 * units at the promise: one of both sees that it is too small, and promises what it saw. By then
 * the place may be another superslab's, too, or have been nobody's (NULL). */
static void fit_lower(hak_partition_t partition, unsigned align_log2, uint32_t index,
                      hak_superslab_t *superslab, uint64_t before) {
    hak_summary_t *fit = fit_of(partition, align_log2);
    uint64_t places = hak_fit_starts(align_log2);
    if (hak_summary_lower(fit, index, hak_longest_run(before, places))) {
        uint64_t free = superslab != NULL ? units_look(superslab) : 0;
        bool is_same = table_get(index, partition) == superslab;
        if (HAK_UNLIKELY(!is_same || (free & ~before) != 0)) {
            unsigned run = is_same ? hak_longest_run(free, places) : HAK_SUPERSLAB_UNITS;
            hak_summary_raise(fit, index, run);
        }
    }
}

void hak_fit_settle(uint32_t index) {
    hak_superslab_t *superslab = hak_span_state.table[index];
    uint64_t free = superslab != NULL ? hak_load_relaxed(&superslab->free_units) : 0;
    fit_lower(HAK_PARTITION_ANY, 0, index, table_get(index, HAK_PARTITION_ANY), free);
    if (hak_summary_lower(&hak_span_state.dirty, index, 0) && superslab != NULL &&
        (units_look(superslab) & ~hak_load_relaxed(&superslab->clean_units)) != 0) {
        hak_summary_raise(&hak_span_state.dirty, index, 1);
    }
}

static HAK_COLD void fit_begin(unsigned align_log2) {
    hak_span_state_t *state = &hak_span_state;
    hak_store_relaxed(&state->alignments, (uint8_t)(state->alignments | 1u << align_log2));
    for (uint32_t i = 0; i < state->end; i++) {
        hak_superslab_t *superslab = table_get(i, HAK_PARTITION_ANY);
        if (superslab != NULL) { /* who gives after the look promises by itself */
            unsigned run = hak_longest_run(units_look(superslab), hak_fit_starts(align_log2));
            hak_summary_raise(&state->fit[align_log2], i, run);
        }
    }
}

hak_superslab_t *hak_fit_take(hak_partition_t partition, unsigned count, size_t align,
                              hak_units_t *units) {
    const hak_span_state_t *state = &hak_span_state;
    unsigned align_log2 = align <= HAK_UNIT_BYTES ? 0 : hak_log2(align) - HAK_UNIT_LOG2;
    HAK_ASSERT(align_log2 < HAK_SPAN_ALIGNS, "SPAN-4");
    if (HAK_UNLIKELY(hak_load_acquire(&state->capacity) == 0)) { /* pairs SUMMARY */
        return NULL;
    }
    if (HAK_UNLIKELY(align_log2 != 0) && (state->alignments >> align_log2 & 1) == 0) {
        fit_begin(align_log2);
    }
    HAK_ASSERT(align_log2 == 0 || partition == HAK_PARTITION_ANY, "SPAN-4");
    uint64_t places = hak_fit_starts(align_log2);
    uint32_t index;
    while ((index = hak_summary_find(fit_of(partition, align_log2), count)) != HAK_SUMMARY_NONE) {
        hak_superslab_t *superslab = table_get(index, partition);
        units->before = 0;
        if (superslab != NULL && HAK_LIKELY(hak_units_take(superslab, count, places, units))) {
            return superslab;
        }
        fit_lower(partition, align_log2, index, superslab, units->before);
    }
    return NULL;
}
