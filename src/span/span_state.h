/* SPDX-License-Identifier: MIT
 *
 * The state of this folder, which the observer reads, too (door/). All of it [lock SPAN]. */
#ifndef HAK_SPAN_SPAN_STATE_H
#define HAK_SPAN_SPAN_STATE_H

#include "base/counters.h"
#include "os/os.h"
#include "span/span.h"
#include "span/summary.h"

enum { HAK_SPAN_FITS = HAK_SPAN_ALIGNS + HAK_HARDEN };

/* The kernel refused a superslab. Asking again at every refill would cost more than the refill. */
typedef struct hak_refusal {
    uint32_t run;         /* of refusals */
    uint32_t left;        /* times to refuse without asking, until a range is unmapped */
    uint32_t unmap_count; /* hak_os_unmap_count then */
} hak_refusal_t;

typedef struct hak_span_state {
    hak_superslab_t **table; /* by index; NULL where a superslab was unmapped */
    hak_superslab_t *unused; /* records without a mapping */
    uint32_t end;            /* places in use, empty ones included */
    uint32_t capacity;
    uint32_t whole_count;             /* superslabs of which every unit is free */
    uint32_t count;                   /* superslabs mapped */
    hak_superslab_t *unsettled;       /* SPAN-4: the one whose run may be shorter; NULL: none */
    uint8_t alignments;               /* bit n: fit[n] is kept; bit 0 is unused, fit[0] always is */
    hak_summary_t fit[HAK_SPAN_FITS]; /* SPAN-4; the last of the plain partition */
    hak_summary_t vacant;             /* SPAN-9 */
    hak_summary_t dirty;              /* SPAN-10 */
    size_t huge_page_count;           /* sum of popcount(huge_pages) */
    /* Dear first touches of huge pages in a row; from 4 on, and so many more ranges to open with
     * small OS pages. */
    uint8_t huge_price;
    hak_refusal_t refusal;
    bool lacks_huge_pages; /* the kernel refused one */
    bool has_partitions;   /* SPAN-11: there are two */
    size_t in_use_units;
    size_t unused_dirty_units; /* SPAN-3 */
    size_t low_units;          /* least unused_dirty_units in this window */
    size_t high_units;         /* most of them in this window */
    size_t dip_units;          /* least of them since the last look */
} hak_span_state_t;

extern hak_span_state_t hak_span_state;

/* Superslabs that purges visited to find units. Counted in the core for tests only. */
extern uint64_t hak_purge_visits; /* [lock SPAN] */

/* Inaccessible bytes behind every superslab of hardened builds. */
HAK_INLINE size_t hak_span_guard_bytes(void) {
    return HAK_HARDEN ? hak_os_page_bytes() : 0;
}

/* The oldest superslab of the partition with a free run of `count` units at a multiple of `align`
 * bytes, and the units where such runs begin; NULL: none (fit.c). */
hak_superslab_t *hak_fit_find(hak_partition_t partition, unsigned count, size_t align,
                              uint64_t *starts);
/* The summary of the runs of a partition that begin at any unit. */
HAK_INLINE hak_summary_t *hak_fit_any(hak_partition_t partition) {
    return &hak_span_state
                .fit[HAK_HARDEN && partition == HAK_PARTITION_PLAIN ? HAK_SPAN_FITS - 1 : 0];
}
HAK_INLINE hak_summary_t *hak_fit_of(const hak_superslab_t *superslab) {
    return hak_fit_any(hak_span_partition(superslab));
}
/* The units that are a multiple of 2^`align_log2`. */
uint64_t hak_fit_places(unsigned align_log2);
/* After free_units changed: keeps SPAN-4. */
void hak_fit_note(const hak_superslab_t *superslab);
void hak_fit_note_aligned(const hak_superslab_t *superslab);

/* Makes another superslab the unsettled one; NULL: none. */
void hak_fit_settle(hak_superslab_t *next);

/* The same after a span was taken. Most that follow come from the same superslab, or are freed
 * before its longest run matters. */
HAK_INLINE void hak_fit_note_taken(hak_superslab_t *superslab) {
    if (hak_span_state.unsettled != superslab) {
        hak_fit_settle(superslab);
    }
    if (HAK_UNLIKELY(hak_span_state.alignments != 0)) {
        hak_fit_note_aligned(superslab);
    }
}

/* The same after `unit`, and others of the same run, became free. */
HAK_INLINE void hak_fit_note_free(const hak_superslab_t *superslab, unsigned unit) {
    unsigned length = hak_run_around(superslab->free_units, unit);
    if (length > hak_summary_get(hak_fit_of(superslab), superslab->index)) {
        hak_summary_set(hak_fit_of(superslab), superslab->index, length);
    }
    if (HAK_UNLIKELY(hak_span_state.alignments != 0)) {
        hak_fit_note_aligned(superslab);
    }
}

/* After free_units or clean_units changed: keeps SPAN-10. */
HAK_INLINE void hak_span_note_dirty(const hak_superslab_t *superslab) {
    unsigned is_dirty = (superslab->free_units & ~superslab->clean_units) != 0;
    if (is_dirty != hak_summary_get(&hak_span_state.dirty, superslab->index)) {
        hak_summary_set(&hak_span_state.dirty, superslab->index, is_dirty);
    }
}

/* Before clean units are used: counts purged ones as regret. */
void hak_span_note_wanted(hak_superslab_t *superslab, uint64_t units);

/* Units of the i-th huge page of a superslab. */
HAK_INLINE uint64_t hak_span_huge_page(unsigned i) {
    return hak_mask(HAK_HUGE_PAGE_UNITS) << (i * HAK_HUGE_PAGE_UNITS);
}
/* Before free units are used: chooses the backing of the ranges that they open. */
void hak_span_note_opened(hak_superslab_t *superslab, uint64_t units, hak_dense_t *use);
/* Before units are purged: returns the huge pages that lose a part and so become small;
 * hak_span_split tells the kernel, without the lock, once they are purged. */
uint8_t hak_span_note_split(hak_superslab_t *superslab, uint64_t units);
void hak_span_split(const hak_superslab_t *superslab, uint8_t split);

/* The number of a span's units in `some` of them; mostly all or none. */
HAK_INLINE unsigned hak_span_count_units(uint64_t some, unsigned unit, unsigned count) {
    return some == 0 ? 0 : some == hak_mask(count) << unit ? count : hak_popcount(some);
}

/* So many dirty units more are unused. */
HAK_INLINE void hak_span_add_dirty(size_t units) {
    size_t unused = hak_span_state.unused_dirty_units + units;
    hak_span_state.unused_dirty_units = unused;
    hak_span_state.high_units = hak_most(hak_span_state.high_units, unused);
}

/* So many dirty units less are unused. */
HAK_INLINE void hak_span_take_dirty(size_t units) {
    size_t unused = hak_span_state.unused_dirty_units - units;
    hak_span_state.unused_dirty_units = unused;
    hak_span_state.low_units = hak_least(hak_span_state.low_units, unused);
    hak_span_state.dip_units = hak_least(hak_span_state.dip_units, unused);
}

#endif
