/* SPDX-License-Identifier: MIT
 *
 * What happens to blocks above 64 KiB, in one record per band of sizes: the figures from which a
 * reader tells which memory was worth keeping. Slow paths fill it in; the reports read it. Nothing
 * decides by it. Classes of small blocks have their own counters (base/counters.h). */
#ifndef HAK_LARGE_BOX_H
#define HAK_LARGE_BOX_H

#include "base/atomics.h"
#include "base/bits.h"

/* Blocks up to 256 KiB, 1 MiB, 4 MiB, 32 MiB, and larger ones. */
enum { HAK_BANDS = 5, HAK_BAND_UNITS_MOST = 64, HAK_BAND_LOG2_MOST = 64 };

typedef struct hak_band_count {
    uint64_t taken, freed; /* [atomic] side by side: one cache line moves between CPUs, not two */
} hak_band_count_t;

/* Kept so that a call counts in two instructions: blocks of superslabs by their number of units,
 * and bytes of mappings of their own by the logarithm of the size. */
typedef struct hak_band_flow {
    hak_band_count_t large[HAK_BAND_UNITS_MOST + 1], huge[HAK_BAND_LOG2_MOST];
} hak_band_flow_t;
extern hak_band_flow_t hak_band_flow;

/* [atomic] all; sums are of the process, and begin anew in the child of a fork. */
typedef struct hak_band {
    uint64_t fresh_bytes;                  /* taken as untouched memory: faults, where used */
    uint64_t sampled_bytes, touched_bytes; /* of freed blocks that were looked at */
    uint64_t most_bytes, least_bytes;      /* in use in this window, as events see it */
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

/* Blocks of so many units of a superslab come and go. */
HAK_INLINE void hak_band_large_enter(unsigned units) {
    (void)hak_add_relaxed(&hak_band_flow.large[units].taken, 1);
}

HAK_INLINE void hak_band_large_leave(unsigned units) {
    (void)hak_add_relaxed(&hak_band_flow.large[units].freed, 1);
}

/* The same of larger ones. [lock HUGE] */
HAK_INLINE void hak_band_huge_enter(size_t bytes) {
    hak_single_writer_add(&hak_band_flow.huge[hak_log2(bytes - 1)].taken, bytes);
}

HAK_INLINE void hak_band_huge_leave(size_t bytes) {
    hak_single_writer_add(&hak_band_flow.huge[hak_log2(bytes - 1)].freed, bytes);
}

/* Of what was taken these bytes are untouched memory. */
void hak_band_fresh(size_t bytes);

/* Of `bytes` looked at so many were resident. */
void hak_band_sample(size_t bytes, size_t resident);

/* An event: notes what is in use; a window may end. */
void hak_band_step(bool is_turn);

/* In the child of a fork: only what is in use stays. */
void hak_band_after_fork(void);

/* What a report says of a band, in the last whole window. */
typedef struct hak_band_view {
    const char *text; /* "1 to 4 MiB" */
    uint64_t least_size, in_use_bytes, taken_bytes, fresh_bytes;
    uint64_t sampled_bytes, touched_bytes;
    uint64_t most_bytes, least_bytes;
    uint64_t reuse_ms; /* what is free at the least waits so long, on average; 0: not known */
} hak_band_view_t;
void hak_band_look(unsigned band, hak_band_view_t *view);

#endif
