/* SPDX-License-Identifier: MIT
 *
 * The parts of superslabs that the kernel may back with huge pages. A fault there costs a quarter
 * of those of small OS pages per byte, and one TLB entry replaces 512; but one byte touched makes 2
 * MiB resident. So the choice is made when the first unit of a 2 MiB range is taken
 * (docs/experiments/0007-huge-pages.md):
 *
 *   the span will be written to throughout (span/dense.h), much is in use,
 *   and first touches are not slow                                                huge
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
    HUGE_PAGE_SLOW_NS = 2000000,
    /* This many in a row begin a pause: three of ten lose their CPU on a busy machine, and 0.2 ms
     * may lie across a tick of the coarse clock. The exact clock may be a
     * system call, which a sandbox may forbid. */
    HUGE_PAGE_SLOW_RUN = 4,
    HUGE_PAGE_PAUSE = 64, /* ranges with small OS pages, until one is huge, as a probe */
};

/* --- what first touches cost ------------------------------------------------------------------ */

/* A range is opened; the taker of the span finds its unit here, touches it and notes how long that
 * took. Until then no other is timed: a fast touch would overtake a slow one. The child
 * of a fork forgets it, as its thread may be gone. */
HAK_LOCKED_STATE uintptr_t hak_huge_page_due; /* [atomic] */

HAK_COLD void hak_huge_page_touch(char *block) {
    uintptr_t due = (uintptr_t)block & ~(uintptr_t)(HAK_UNIT_BYTES - 1);
    uint64_t begin_ns = hak_os_now_ns();
    if (HAK_FAULT) {
        hak_os_fault_touch(block);
    }
    *(volatile char *)block = 0; /* nothing is there yet */
    bool is_slow = hak_os_now_ns() - begin_ns > HUGE_PAGE_SLOW_NS;
    hak_lock_acquire(HAK_LOCK_SPAN);
    if (hak_cas_relaxed(&hak_huge_page_due, &due, 0)) { /* else another one is due by now */
        unsigned run = is_slow ? hak_span_state.huge_price + 1u : 0;
        run = run < HUGE_PAGE_SLOW_RUN ? run : HUGE_PAGE_SLOW_RUN + HUGE_PAGE_PAUSE;
        hak_span_state.huge_price = (uint8_t)run;
    }
    hak_lock_release(HAK_LOCK_SPAN);
}

/* Whether a range that would be huge may be. One that begins with a span, whose taker can touch
 * `unit` (else NULL), is timed. With learn:counterfactual pauses are only counted. */
static bool huge_price_allows(const char *unit) {
    uint8_t *price = &hak_span_state.huge_price;
    uint64_t learn = hak_load_relaxed(&hak_knobs.learn);
    if (learn == HAK_LEARN_OFF) {
        *price = 0;
        return true;
    }
    bool pauses = *price >= HUGE_PAGE_SLOW_RUN;
    bool may_time =
        pauses ? *price == HUGE_PAGE_SLOW_RUN : hak_load_relaxed(&hak_huge_page_due) == 0;
    if (may_time && unit != NULL) {
        hak_store_relaxed(&hak_huge_page_due, (uintptr_t)unit);
        *price += pauses ? HUGE_PAGE_PAUSE : 0; /* it waits for its probe */
        return true;
    }
    *price -= *price > HUGE_PAGE_SLOW_RUN;
    hak_count_by(huge_page_skipped, pauses);
    return !pauses || learn == HAK_LEARN_COUNTERFACTUAL;
}

/* --- ranges ----------------------------------------------------------------------------------- */

static bool huge_page_is_wanted(hak_dense_t *use, const char *unit) {
    const hak_span_state_t *state = &hak_span_state;
    size_t small_count = (size_t)state->count * HAK_SUPERSLAB_HUGE_PAGES - state->huge_page_count;
    return use != HAK_SPAN_SPARSE && hak_span_in_use(hak_span_counts()) >= HUGE_PAGE_LEAST_UNITS &&
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
        hak_store_relaxed(&superslab->huge_pages, (uint8_t)(superslab->huge_pages ^ 1u << i));
        state->huge_page_count += is_huge ? 1 : -(size_t)1;
    } else {
        state->lacks_huge_pages = true; /* not built in, or too many mappings */
    }
}

/* Under the lock, which keeps purges away: takes what is free and clean of the range beside the
 * caller's units, so that what changes is the caller's. Others may have clean units of it, and wait
 * to come here. */
static void range_open(hak_superslab_t *superslab, unsigned i, uint64_t mask, hak_dense_t *use) {
    uint64_t range = hak_span_huge_page(i), bit = 1ull << i, mine = mask & range;
    uint64_t rest = hak_load_relaxed(&superslab->clean_units) & range & ~mask;
    rest &= hak_and_acquire(&superslab->free_units, ~rest); /* pairs UNITS */
    uint64_t clean = hak_load_relaxed(&superslab->clean_units) & range;
    bool is_huge = (superslab->huge_pages & bit) != 0;
    if (clean == range && (is_huge || (rest | mine) == range)) { /* nobody wrote to it */
        bool begins = (range >> hak_ctz(mask) & 1) != 0;         /* with the span */
        char *unit = superslab->base + (size_t)hak_ctz(mask) * HAK_UNIT_BYTES;
        if (huge_page_is_wanted(use, begins ? unit : NULL) != is_huge) {
            huge_page_change(superslab, i, !is_huge);
        }
    }
    is_huge = (superslab->huge_pages & bit) != 0;
    if (is_huge) { /* its first byte makes all of it resident, so none of it counts as clean */
        uint64_t units = clean & (rest | mine);
        hak_span_note_wanted(superslab, units);
        (void)hak_and_relaxed(&superslab->clean_units, ~units);
        (void)hak_or_relaxed(&superslab->padding_units, units);
        (void)hak_span_count_given(0, hak_popcount(units));
    }
    uint64_t free = hak_or_acquire_release(&superslab->free_units, rest) | rest; /* pairs UNITS */
    hak_fit_promise(superslab->index, hak_span_partition(superslab), hak_longest_run(free, ~0ull),
                    free, is_huge);
}

void hak_span_note_opened(hak_superslab_t *superslab, const hak_units_t *units, hak_dense_t *use) {
    uint64_t clean = hak_load_relaxed(&superslab->clean_units), unwritten = units->before & clean;
    for (unsigned i = 0; i < HAK_SUPERSLAB_HUGE_PAGES; i++) {
        uint64_t range = hak_span_huge_page(i);
        bool is_huge = (hak_load_relaxed(&superslab->huge_pages) >> i & 1) != 0;
        bool may_open = use != HAK_SPAN_SPARSE && (unwritten & range) == range;
        if ((units->mask & clean & range) != 0 && (is_huge || may_open)) {
            hak_lock_acquire(HAK_LOCK_SPAN);
            range_open(superslab, i, units->mask, use);
            hak_lock_release(HAK_LOCK_SPAN);
        }
    }
}

uint8_t hak_span_note_split(hak_superslab_t *superslab, uint64_t units) {
    uint8_t split = 0;
    for (unsigned i = 0; i < HAK_SUPERSLAB_HUGE_PAGES; i++) {
        uint64_t range = hak_span_huge_page(i);
        if ((units & range) != 0 && (units & range) != range) {
            split |= (uint8_t)(superslab->huge_pages & 1u << i);
        }
    }
    hak_store_relaxed(&superslab->huge_pages, (uint8_t)(superslab->huge_pages & ~split));
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
            if (hak_load_relaxed(&hak_knobs.limit_bytes) != 0) { /* which counts all of it */
                hak_os_split_huge(huge_page_base(superslab, i), HAK_HUGE_PAGE_BYTES);
            }
        }
    }
}
