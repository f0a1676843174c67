/* SPDX-License-Identifier: MIT
 *
 * The records of memory by size (span/box.h), read: windows, and what reports say of a band. */
#ifndef HAK_RECLAIM_BANDS_H
#define HAK_RECLAIM_BANDS_H

#include "base/counters.h"
#include "span/box.h"

/* Rows like those of base/counters.h, also read by tools/gen_stats.py. */
#define HAK_BAND_FIGURES(X)                                                                        \
    X(from_bytes, "blocks or slabs above this size, up to the next band's")                        \
    X(in_use_bytes, "blocks in use, or slabs")                                                     \
    X(most_bytes, "most in use that events saw in the last window of 0.4 s")                       \
    X(least_bytes, "least of these")                                                               \
    X(reuse_ms, "what is freed waits so long on average to be taken; 0: not known")

/* Of the process; in the child of a fork they begin anew. */
#define HAK_BAND_SUMS(X)                                                                           \
    X(taken_bytes, "blocks allocated, or slabs made")                                              \
    X(fresh_bytes, "of these, untouched memory, which page faults fill where it is used")          \
    X(returned_bytes, "unused ranges of such sizes, or idle pages of slabs, given back")           \
    X(again_bytes, "taken for blocks or slabs although given back before: regret")                 \
    X(sampled_bytes, "of what was freed or full, looked at")                                       \
    X(touched_bytes, "of this, resident: written to, or read")

/* An event: notes what is in use; a window may end. */
void hak_bands_step(bool is_turn);

/* In the child of a fork: only what is in use stays. */
void hak_bands_after_fork(void);

/* What a report says of a band, in the last whole window. */
typedef struct hak_band_view {
    HAK_BAND_FIGURES(HAK_COUNTER_FIELD)
    HAK_BAND_SUMS(HAK_COUNTER_FIELD)
} hak_band_view_t;
void hak_band_look(unsigned band, hak_band_view_t *view);
/* "blocks of 1 to 4 MiB" */
const char *hak_band_text(unsigned band);

#endif
