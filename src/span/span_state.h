/* SPDX-License-Identifier: MIT
 *
 * The state of this folder, which the observer reads, too (door/). All of it [lock SPAN], unless it
 * says otherwise; searches without the lock read the table and fit[0]. */
#ifndef HAK_SPAN_SPAN_STATE_H
#define HAK_SPAN_SPAN_STATE_H

#include "base/counters.h"
#include "os/os.h"
#include "span/span.h"
#include "span/summary.h"

enum { HAK_SPAN_FITS = HAK_SPAN_ALIGNS + HAK_HARDEN };
enum { HAK_SPAN_VISIT_BATCH = 32 }; /* superslabs between two checks for waiters of the lock */

/* The kernel refused a superslab. Asking again at every refill would cost more than the refill. */
typedef struct hak_refusal {
    uint32_t run;         /* of refusals */
    uint32_t left;        /* times to refuse without asking, until a range is unmapped */
    uint32_t unmap_count; /* hak_os_unmap_count then */
} hak_refusal_t;

typedef struct hak_span_state {
    /* [atomic] Thresholds: units in spans << 32 | unused units that hold memory (SPAN-3). No search
     * reads this half of a line, which all threads write to, nor the next. */
    _Alignas(HAK_LINE_BYTES / 2) uint64_t counts;
    size_t low_units;    /* [atomic] least unused units in this window, as far as noticed */
    size_t high_units;   /* [atomic] most of them in this window */
    size_t dip_units;    /* [atomic] least of them since the last read */
    int32_t whole_count; /* [atomic] superslabs of which every unit is free; for a moment less */
    uint32_t count;      /* superslabs mapped */
    hak_refusal_t refusal;
    uint32_t end; /* places in use, empty ones included */
    /* Slow first touches of huge pages in a row; from 4 on, and so many more ranges to open with
     * small OS pages. */
    uint8_t huge_price;
    bool lacks_huge_pages;   /* the kernel refused one */
    bool has_partitions;     /* SPAN-11: there are two */
    hak_superslab_t **table; /* by index; NULL where a superslab was unmapped */
    hak_superslab_t *unused; /* records without a mapping */
    uint32_t capacity;
    uint8_t alignments;               /* bit n: fit[n] is kept; bit 0 is unused, fit[0] always is */
    hak_summary_t fit[HAK_SPAN_FITS]; /* SPAN-4; the last of the plain partition */
    hak_summary_t vacant;             /* SPAN-9 */
    hak_summary_t dirty;              /* SPAN-10 */
    size_t huge_page_count;           /* sum of popcount(huge_pages) */
} hak_span_state_t;

extern hak_span_state_t hak_span_state;

/* Units just taken out of free_units, and what that was before. */
typedef struct hak_units {
    uint64_t mask, before;
} hak_units_t;

/* Superslabs that purges visited to find units. Counted in the core for tests only. */
extern uint64_t hak_purge_visits; /* [lock SPAN] */

/* Inaccessible bytes behind every superslab of hardened builds. */
HAK_INLINE size_t hak_span_guard_bytes(void) {
    return HAK_HARDEN ? hak_os_page_bytes() : 0;
}

/* Takes the lowest free run of `count` units at a multiple of `align` bytes in the oldest superslab
 * of the partition that has one, and notes free_units before; NULL: none. SPAN is held, or `align`
 * is of one unit. */
hak_superslab_t *hak_fit_take(hak_partition_t partition, unsigned count, size_t align,
                              hak_units_t *units);
/* The lowest run that begins at one of `places`, while others may take and give units. */
HAK_INLINE bool hak_units_take(hak_superslab_t *superslab, unsigned count, uint64_t places,
                               hak_units_t *units) {
    uint64_t starts;
    units->before = hak_load_relaxed(&superslab->free_units);
    while ((starts = hak_run_starts(units->before, count) & places) != 0) {
        units->mask = hak_mask(count) << hak_ctz(starts);
        uint64_t after = units->before & ~units->mask; /* pairs UNITS */
        if (HAK_LIKELY(hak_cas_acquire(&superslab->free_units, &units->before, after))) {
            return true;
        }
    }
    return false;
}
/* The summary of the runs of a partition that begin at any unit. */
HAK_INLINE hak_summary_t *hak_fit_any(hak_partition_t partition) {
    return &hak_span_state
                .fit[HAK_HARDEN && partition == HAK_PARTITION_PLAIN ? HAK_SPAN_FITS - 1 : 0];
}
/* The units that are a multiple of 2^`align_log2`. */
uint64_t hak_fit_starts(unsigned align_log2);
/* Units came to a place, where `free` ones are these now, and new runs have `run` at most. */
HAK_NOINLINE void hak_fit_promise(uint32_t index, hak_partition_t partition, unsigned run,
                                  uint64_t free, bool is_dirty);
/* Lowers what a purge found too much promised. SPAN is held. */
void hak_fit_settle(uint32_t index);

/* Before clean units are used: counts purged ones as regret. */
void hak_span_note_wanted(hak_superslab_t *superslab, uint64_t units);

/* Units of the i-th huge page of a superslab. */
HAK_INLINE uint64_t hak_span_huge_page(unsigned i) {
    return hak_mask(HAK_HUGE_PAGE_UNITS) << (i * HAK_HUGE_PAGE_UNITS);
}
/* Of units taken, before they are used: chooses the backing of the ranges that they open. */
void hak_span_note_opened(hak_superslab_t *superslab, const hak_units_t *units, hak_dense_t *use);
/* Before units are purged: returns the huge pages that lose a part and so become small;
 * hak_span_split tells the kernel, without the lock, once they are purged. */
uint8_t hak_span_note_split(hak_superslab_t *superslab, uint64_t units);
void hak_span_split(const hak_superslab_t *superslab, uint8_t split);

/* The number of a span's units in `some` of them; mostly all or none. */
HAK_INLINE unsigned hak_span_count_units(uint64_t some, unsigned unit, unsigned count) {
    return some == 0 ? 0 : some == hak_mask(count) << unit ? count : hak_popcount(some);
}

HAK_INLINE size_t hak_span_in_use(uint64_t counts) {
    return counts >> 32;
}
HAK_INLINE size_t hak_span_unused(uint64_t counts) {
    return (uint32_t)counts;
}
HAK_INLINE uint64_t hak_span_counts(void) {
    return hak_load_relaxed(&hak_span_state.counts);
}

/* Before so many units leave spans, and so many dirty ones become unused. Returns the counts. */
HAK_INLINE uint64_t hak_span_count_given(size_t in_use, size_t dirty) {
    uint64_t more = dirty - ((uint64_t)in_use << 32);
    uint64_t counts = hak_add_relaxed(&hak_span_state.counts, more) + more;
    size_t *most = &hak_span_state.high_units, was = hak_load_relaxed(most);
    while (hak_span_unused(counts) > was && !hak_cas_relaxed(most, &was, hak_span_unused(counts))) {
    }
    return counts;
}

HAK_INLINE void hak_span_mark_least(size_t *least, size_t units) {
    size_t was = hak_load_relaxed(least);
    while (units < was && !hak_cas_relaxed(least, &was, units)) {
    }
}

/* After so many units came to spans, and so many dirty ones are unused no more. */
HAK_INLINE uint64_t hak_span_count_taken(size_t in_use, size_t dirty) {
    uint64_t more = ((uint64_t)in_use << 32) - dirty;
    uint64_t counts = hak_add_relaxed(&hak_span_state.counts, more) + more;
    hak_span_mark_least(&hak_span_state.low_units, hak_span_unused(counts));
    hak_span_mark_least(&hak_span_state.dip_units, hak_span_unused(counts));
    return counts;
}

#endif
