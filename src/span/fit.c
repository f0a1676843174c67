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

uint64_t hak_fit_places(unsigned align_log2) {
    return align_log2 == 0 ? ~0ull : ~0ull / hak_mask(1u << align_log2); /* a bit of every 2^n */
}

static void fit_set(const hak_superslab_t *superslab, unsigned align_log2) {
    unsigned longest = hak_longest_run(superslab->free_units, hak_fit_places(align_log2));
    hak_summary_set(align_log2 == 0 ? hak_fit_of(superslab) : &hak_span_state.fit[align_log2],
                    superslab->index, longest);
}

HAK_COLD void hak_fit_note_aligned(const hak_superslab_t *superslab) {
    bool is_any = hak_span_partition(superslab) == HAK_PARTITION_ANY;
    for (unsigned n = 1; is_any && n < HAK_SPAN_ALIGNS; n++) {
        if ((hak_span_state.alignments >> n & 1) != 0) {
            fit_set(superslab, n);
        }
    }
}

void hak_fit_note(const hak_superslab_t *superslab) {
    fit_set(superslab, 0);
    if (HAK_UNLIKELY(hak_span_state.alignments != 0)) {
        hak_fit_note_aligned(superslab);
    }
}

void hak_fit_settle(hak_superslab_t *next) {
    if (hak_span_state.unsettled != NULL) {
        fit_set(hak_span_state.unsettled, 0);
    }
    hak_span_state.unsettled = next;
}

static HAK_COLD void fit_begin(unsigned align_log2) {
    hak_span_state_t *state = &hak_span_state;
    state->alignments |= (uint8_t)(1u << align_log2);
    for (uint32_t i = 0; i < state->end; i++) {
        const hak_superslab_t *superslab = state->table[i];
        if (superslab != NULL && hak_span_partition(superslab) == HAK_PARTITION_ANY) {
            fit_set(superslab, align_log2);
        }
    }
}

/* Corrects a summary that promises too much: the unsettled one, or after a fork in a section. */
hak_superslab_t *hak_fit_find(hak_partition_t partition, unsigned count, size_t align,
                              uint64_t *starts) {
    hak_span_state_t *state = &hak_span_state;
    unsigned align_log2 = align <= HAK_UNIT_BYTES ? 0 : hak_log2(align) - HAK_UNIT_LOG2;
    HAK_ASSERT(align_log2 < HAK_SPAN_ALIGNS, "SPAN-4");
    if (HAK_UNLIKELY(state->capacity == 0)) {
        return NULL;
    }
    if (HAK_UNLIKELY(align_log2 != 0) && (state->alignments >> align_log2 & 1) == 0) {
        fit_begin(align_log2);
    }
    HAK_ASSERT(align_log2 == 0 || partition == HAK_PARTITION_ANY, "SPAN-4");
    const hak_summary_t *fit = align_log2 == 0 ? hak_fit_any(partition) : &state->fit[align_log2];
    uint32_t index;
    while ((index = hak_summary_find(fit, count)) != HAK_SUMMARY_NONE) {
        hak_superslab_t *superslab = state->table[index];
        *starts = hak_run_starts(superslab->free_units, count) & hak_fit_places(align_log2);
        if (HAK_LIKELY(*starts != 0)) {
            return superslab;
        }
        fit_set(superslab, align_log2);
    }
    return NULL;
}
