/* SPDX-License-Identifier: MIT
 *
 * What happens to memory by size: one record per band of blocks above 64 KiB, and per size of
 * slabs. Slow paths fill it in, reports read it (reclaim/bands.h). Nothing decides by it. Classes
 * of small blocks have their own counters (base/counters.h).
 *
 *   BOX-1  With what the learner knows (LEARN-1) at most 4 KiB of state. */
#ifndef HAK_SPAN_BOX_H
#define HAK_SPAN_BOX_H

#include "base/atomics.h"
#include "base/bits.h"

/* Blocks up to 256 KiB, 1 MiB, 4 MiB, 32 MiB, and larger ones; slabs of one unit, of two, of more.
 */
enum { HAK_BANDS_OF_BLOCKS = 5, HAK_BANDS_OF_SLABS = 3, HAK_BAND_UNITS_MOST = 64 };
enum { HAK_BANDS = HAK_BANDS_OF_BLOCKS + HAK_BANDS_OF_SLABS };
enum { HAK_BAND_LOG2_LEAST = HAK_UNIT_LOG2 - 1, HAK_BAND_LOG2_MOST = 48 };

typedef struct hak_band_count {
    uint64_t taken, freed; /* [atomic] side by side: one cache line moves between CPUs, not two */
} hak_band_count_t;

/* Kept so that a call counts in two instructions: blocks of superslabs by their number of units,
 * and bytes of mappings of their own by the logarithm of the size less 1. */
typedef struct hak_band_flow {
    hak_band_count_t large[HAK_BAND_UNITS_MOST + 1];
    hak_band_count_t huge[HAK_BAND_LOG2_MOST - HAK_BAND_LOG2_LEAST];
} hak_band_flow_t;
extern hak_band_flow_t hak_band_flow;
/* Units of slabs: apart, on a page that every process writes to. */
extern hak_band_count_t hak_band_slabs[HAK_BANDS_OF_SLABS];
/* [atomic] Resident bytes that the cache of huge blocks gave back lately, and that no block was
 * mapped for since; a window halves them. */
extern uint64_t hak_band_owed_bytes;

/* [atomic] all; sums are of the process, and begin anew in the child of a fork. */
typedef struct hak_band {
    uint64_t fresh_bytes, returned_bytes, again_bytes, sampled_bytes, touched_bytes;
    uint64_t reused_bytes;            /* of slabs: not fresh; a young process writes nothing here */
    uint64_t most_bytes, least_bytes; /* in use in this window, as events see it */
    uint64_t last_most_bytes, last_least_bytes, last_taken_bytes; /* the one before */
    uint64_t begin_taken_bytes;                                   /* as this window began */
    uint64_t parent_taken_bytes; /* before the fork that made this process */
} hak_band_t;
extern hak_band_t hak_band[HAK_BANDS];

HAK_INLINE hak_band_t *hak_band_of(size_t bytes) {
    size_t most = bytes - (bytes != 0);
    unsigned is_above_256k = most >> 18 != 0, is_above_1m = most >> 20 != 0;
    return &hak_band[is_above_256k + is_above_1m + (most >> 22 != 0) + (most >> 25 != 0)];
}

HAK_INLINE unsigned hak_band_slab_row(unsigned units) {
    return units < HAK_BANDS_OF_SLABS ? units - 1 : HAK_BANDS_OF_SLABS - 1;
}

HAK_INLINE hak_band_t *hak_band_of_slab(unsigned units) {
    return &hak_band[HAK_BANDS_OF_BLOCKS + hak_band_slab_row(units)];
}

/* Blocks of so many units of a superslab come and go. */
HAK_INLINE void hak_band_large_enter(unsigned units) {
    (void)hak_add_relaxed(&hak_band_flow.large[units].taken, 1);
}

HAK_INLINE void hak_band_large_leave(unsigned units) {
    (void)hak_add_relaxed(&hak_band_flow.large[units].freed, 1);
}

/* The same of larger ones. [lock HUGE] */
HAK_INLINE void hak_band_huge_enter(size_t bytes) {
    hak_single_writer_add(&hak_band_flow.huge[hak_log2(bytes - 1) - HAK_BAND_LOG2_LEAST].taken,
                          bytes);
}

HAK_INLINE void hak_band_huge_leave(size_t bytes) {
    hak_single_writer_add(&hak_band_flow.huge[hak_log2(bytes - 1) - HAK_BAND_LOG2_LEAST].freed,
                          bytes);
}

/* A slab is made, of untouched memory or not, of which so many units had been given back. */
HAK_INLINE void hak_band_slab_enter(unsigned units, bool is_fresh, unsigned again_units) {
    (void)hak_add_relaxed(&hak_band_slabs[hak_band_slab_row(units)].taken, units);
    if (!is_fresh || again_units != 0) {
        hak_band_t *band = hak_band_of_slab(units);
        size_t reused = is_fresh ? 0 : (size_t)units * HAK_UNIT_BYTES;
        (void)hak_add_relaxed(&band->reused_bytes, reused);
        (void)hak_add_relaxed(&band->again_bytes, (size_t)again_units * HAK_UNIT_BYTES);
    }
}

HAK_INLINE void hak_band_slab_leave(unsigned units) {
    (void)hak_add_relaxed(&hak_band_slabs[hak_band_slab_row(units)].freed, units);
}

/* Of what was taken these bytes are untouched memory; the others, or the same, had been given back.
 */
void hak_band_fresh(hak_band_t *band, size_t fresh_bytes, size_t again_bytes);

/* The same of a mapping of its own: had been given back what is owed. */
void hak_band_huge_fresh(size_t bytes);

/* Resident bytes go back to the kernel. */
void hak_band_return(hak_band_t *band, size_t bytes);
void hak_band_huge_return(size_t bytes, size_t resident);

/* Of `bytes` looked at so many were resident; SIZE_MAX: not known. */
void hak_band_sample(hak_band_t *band, size_t bytes, size_t resident);

#endif
