/* SPDX-License-Identifier: MIT
 *
 * The parts of superslabs that the kernel may back with huge pages. A fault there costs a quarter
 * of those of small OS pages per byte, and one TLB entry replaces 512; but one byte touched makes 2
 * MiB resident. So the choice is made when the first unit of a 2 MiB range is taken
 * (docs/experiments/0007-huge-pages.md):
 *
 *   the span will be written to throughout (span/dense.h), much is in use,
 *   and first touches are not dear                                                huge
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
    /* A first touch takes 0.2 ms, its 512 small OS pages 1 to 1.5; but 5 to 30 ms in a virtual
     * machine whose host took the unused memory back (docs/experiments/0108-dear-huge-pages.md). */
    HUGE_PAGE_DEAR_NS = 2000000,
    HUGE_PAGE_LEAST_NS = 20000, /* faster: the memory was there already */
    /* So many in a row begin a pause: on a busy machine three of ten lose their CPU meanwhile. The
     * CPU time of the thread would tell, but is a system call, which sandboxes may refuse. */
    HUGE_PAGE_DEAR_RUN = 4,
    HUGE_PAGE_PAUSE_LEAST = 64,
    HUGE_PAGE_PAUSE_MOST = 1024, /* pauses, in ranges, double until a touch is not dear */
};

/* --- what first touches cost ------------------------------------------------------------------ */

/* A range is opened; the taker of the span finds its unit here, touches it and notes how long that
 * took. The unit whose first touch is to be timed; 0: none; 1: one is being timed. */
HAK_LOCKED_STATE uintptr_t hak_huge_page_due; /* [atomic] */

/* Under HAK_LOCK_SPAN. */
static void huge_price_note(bool is_dear) {
    hak_huge_price_t *price = &hak_span_state.huge_price;
    if (!is_dear) {
        *price = (hak_huge_price_t){0};
        return;
    }
    hak_count(huge_page_dear);
    if (++price->dear_run >= HUGE_PAGE_DEAR_RUN) {
        size_t pause = hak_most(2u * price->pause, HUGE_PAGE_PAUSE_LEAST);
        price->left = price->pause = (uint16_t)hak_least(pause, HUGE_PAGE_PAUSE_MOST);
        price->dear_run = HUGE_PAGE_DEAR_RUN - 1; /* the next trial decides alone */
    }
}

HAK_COLD void hak_huge_page_touch(char *block) {
    uintptr_t due = (uintptr_t)block & ~(uintptr_t)(HAK_UNIT_BYTES - 1);
    if (!hak_cas_relaxed(&hak_huge_page_due, &due, HAK_HUGE_PAGE_IS_TOUCHED)) {
        return; /* another one is due by now */
    }
    uint64_t begin_ns = hak_os_exact_ns();
    if (HAK_FAULT) {
        hak_os_fault_touch(block);
    }
    *(volatile char *)block = 0; /* nothing is there yet */
    uint64_t ns = hak_os_exact_ns() - begin_ns;
    hak_lock_acquire(HAK_LOCK_SPAN);
    if (hak_load_relaxed(&hak_huge_page_due) == HAK_HUGE_PAGE_IS_TOUCHED) {
        if (ns >= HUGE_PAGE_LEAST_NS) {
            huge_price_note(ns > HUGE_PAGE_DEAR_NS);
        }
        hak_store_relaxed(&hak_huge_page_due, 0); /* one note of touches at the same time */
    }
    hak_lock_release(HAK_LOCK_SPAN);
}

/* Whether a range that would be huge may be. Of one that begins with a span, whose taker can touch
 * `unit` (else NULL), the price is asked. With learn:counterfactual only the score is kept. */
static bool huge_price_allows(const char *unit) {
    hak_huge_price_t *price = &hak_span_state.huge_price;
    uint64_t learn = hak_load_relaxed(&hak_knobs.learn);
    if (learn == HAK_LEARN_OFF) {
        *price = (hak_huge_price_t){0};
        return true;
    }
    bool is_over = price->left == 0;
    bool is_asked = is_over && unit != NULL;
    if (is_asked) { /* in place of one whose touch never ended, too */
        hak_store_relaxed(&hak_huge_page_due, (uintptr_t)unit);
    }
    if (price->pause == 0) {
        return true;
    }
    if (is_asked) {
        price->left = price->pause; /* a trial; others wait for its end */
        return true;
    }
    price->left -= !is_over;
    hak_count(huge_page_pause);
    return learn == HAK_LEARN_COUNTERFACTUAL;
}

/* --- ranges ----------------------------------------------------------------------------------- */

static bool huge_page_is_wanted(hak_dense_t *use, const char *unit) {
    const hak_span_state_t *state = &hak_span_state;
    size_t small_count = (size_t)state->count * HAK_SUPERSLAB_HUGE_PAGES - state->huge_page_count;
    return use != HAK_SPAN_SPARSE && state->in_use_units >= HUGE_PAGE_LEAST_UNITS &&
           hak_load_relaxed(&hak_knobs.huge_pages) && !state->lacks_huge_pages &&
           !hak_load_relaxed(&hak_knobs.is_tight) &&
           (state->huge_page_count < HUGE_PAGE_MIXED_MOST || small_count < HUGE_PAGE_MIXED_MOST) &&
           hak_dense_take(use) && huge_price_allows(unit);
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
        bool begins = (range >> hak_ctz(units) & 1) != 0; /* with the span */
        char *unit = superslab->base + (size_t)hak_ctz(units) * HAK_UNIT_BYTES;
        bool is_wanted = huge_page_is_wanted(use, begins ? unit : NULL);
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
