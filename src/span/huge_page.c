/* SPDX-License-Identifier: MIT
 *
 * The parts of superslabs that the kernel may back with huge pages. A fault there costs a quarter
 * of those of small OS pages per byte, and one TLB entry replaces 512; but one byte touched makes 2
 * MiB resident. So the choice is made when the first unit of a 2 MiB range is taken
 * (docs/experiments/0007-huge-pages.md):
 *
 *   the span will be written to throughout (span/dense.h) and much is in use       huge
 *   else                                                                          small
 *
 * Superslabs are filled from the oldest on (SPAN-5): a new range opens when the older ones are
 * full, and only the youngest has untouched memory. A range is purged whole and stays huge, or in
 * part and becomes small, because the kernel would fill up a huge page again. */
#include "base/counters.h"
#include "base/knobs.h"
#include "os/lock.h"
#include "os/optional.h"
#include "span/span_state.h"

enum {
    /* In use before any huge page: the untouched rest of one is 2 MiB at most, 1 MiB mostly. */
    HUGE_PAGE_LEAST_UNITS = (8 << 20) / HAK_UNIT_BYTES,
    /* Each change between huge and small along the addresses splits a mapping, and a process may
     * have 65 530: at most so many ranges of the rarer kind. */
    HUGE_PAGE_MIXED_MOST = 8192,
};

static bool huge_page_is_wanted(hak_dense_t *use) {
    const hak_span_state_t *state = &hak_span_state;
    size_t small_count = (size_t)state->count * HAK_SUPERSLAB_HUGE_PAGES - state->huge_page_count;
    return use != HAK_SPAN_SPARSE && state->in_use_units >= HUGE_PAGE_LEAST_UNITS &&
           hak_load_relaxed(&hak_knobs.huge_pages) && !state->lacks_huge_pages &&
           !hak_load_relaxed(&hak_knobs.is_tight) &&
           (state->huge_page_count < HUGE_PAGE_MIXED_MOST || small_count < HUGE_PAGE_MIXED_MOST) &&
           hak_dense_take(use);
}

static char *huge_page_base(const hak_superslab_t *superslab, unsigned i) {
    return superslab->base + (size_t)i * HAK_HUGE_PAGE_BYTES;
}

static void huge_page_change(hak_superslab_t *superslab, unsigned i, bool is_huge) {
    hak_span_state_t *state = &hak_span_state;
    if (hak_os_advise_huge(huge_page_base(superslab, i), HAK_HUGE_PAGE_BYTES, is_huge)) {
        superslab->huge_pages ^= (uint8_t)(1u << i);
        state->huge_page_count += is_huge ? 1 : -(size_t)1;
    } else {
        state->lacks_huge_pages = true; /* not built in, or too many mappings */
    }
}

/* Its first byte makes all of it resident, so none of it counts as clean. */
static void huge_page_open(hak_superslab_t *superslab, uint64_t range) {
    hak_span_note_wanted(superslab, range);
    superslab->clean_units &= ~range;
    superslab->padding_units |= range;
    hak_span_add_dirty(HAK_HUGE_PAGE_UNITS);
    hak_count(huge_page_open);
}

void hak_span_note_opened(hak_superslab_t *superslab, uint64_t units, hak_dense_t *use) {
    uint64_t clean = superslab->free_units & superslab->clean_units;
    for (unsigned i = 0; (units & clean) != 0 && i < HAK_SUPERSLAB_HUGE_PAGES; i++) {
        uint64_t range = hak_span_huge_page(i);
        if ((units & range) == 0 || (clean & range) != range) {
            continue;
        }
        bool is_wanted = huge_page_is_wanted(use);
        if (is_wanted != ((superslab->huge_pages >> i & 1) != 0)) {
            huge_page_change(superslab, i, is_wanted);
        }
        if ((superslab->huge_pages >> i & 1) != 0) {
            huge_page_open(superslab, range);
        }
    }
    superslab->padding_units &= ~units;
}

uint8_t hak_span_note_split(hak_superslab_t *superslab, uint64_t units) {
    uint8_t split = 0;
    for (unsigned i = 0; i < HAK_SUPERSLAB_HUGE_PAGES; i++) {
        uint64_t range = hak_span_huge_page(i);
        if ((units & range) != 0 && (units & range) != range) {
            split |= (uint8_t)(superslab->huge_pages & 1u << i);
        }
    }
    superslab->huge_pages &= (uint8_t)~split;
    hak_span_state.huge_page_count -= hak_popcount(split);
    return split;
}

void hak_span_note_purged(hak_superslab_t *superslab, uint64_t units) {
    hak_lock_acquire(HAK_LOCK_SPAN);
    uint8_t split = hak_span_note_split(superslab, units);
    hak_lock_release(HAK_LOCK_SPAN);
    hak_span_split(superslab, split);
}

void hak_span_split(const hak_superslab_t *superslab, uint8_t split) {
    for (unsigned i = 0; i < HAK_SUPERSLAB_HUGE_PAGES; i++) {
        if ((split >> i & 1) != 0) {
            hak_os_advise_huge(huge_page_base(superslab, i), HAK_HUGE_PAGE_BYTES, false);
        }
    }
}
