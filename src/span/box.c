/* SPDX-License-Identifier: MIT
 *
 * The records of bands: what slow paths add to them. */
#include "span/box.h"

#include "base/wanted.h"
#include "span/span.h"

HAK_LOCKED_STATE HAK_LARGE_STATE(5) hak_band_flow_t hak_band_flow;
HAK_LOCKED_STATE HAK_LARGE_STATE(5) hak_band_t hak_band[HAK_BANDS];
HAK_LOCKED_STATE hak_band_count_t hak_band_slabs[HAK_BANDS_OF_SLABS];
HAK_LOCKED_STATE HAK_LARGE_STATE(4) uint64_t hak_band_owed_bytes;

enum { BOX_STATE_MOST = 4096 - 1280 }; /* BOX-1: the learner's takes the rest */
_Static_assert(sizeof hak_band_flow + sizeof hak_band + sizeof hak_band_slabs <= BOX_STATE_MOST,
               "BOX-1");
_Static_assert((int)HAK_BAND_UNITS_MOST == (int)HAK_SUPERSLAB_UNITS,
               "a block may grow so far in place");

HAK_COLD void hak_band_fresh(hak_band_t *band, size_t fresh_bytes, size_t again_bytes) {
    (void)hak_add_relaxed(&band->fresh_bytes, fresh_bytes);
    (void)hak_add_relaxed(&band->again_bytes, again_bytes);
}

/* Threads may come between: an estimate. */
HAK_COLD void hak_band_huge_fresh(size_t bytes) {
    uint64_t owed = hak_load_relaxed(&hak_band_owed_bytes), again = hak_least(owed, bytes);
    hak_store_relaxed(&hak_band_owed_bytes, owed - again);
    hak_band_fresh(hak_band_of(bytes), bytes, again);
}

HAK_COLD void hak_band_return(hak_band_t *band, size_t bytes) {
    (void)hak_add_relaxed(&band->returned_bytes, bytes);
}

HAK_COLD void hak_band_huge_return(size_t bytes, size_t resident) {
    (void)hak_add_relaxed(&hak_band_owed_bytes, resident);
    hak_band_return(hak_band_of(bytes), resident);
}

HAK_COLD void hak_band_sample(hak_band_t *band, size_t bytes, size_t resident) {
    if (resident <= bytes) { /* else not known */
        (void)hak_add_relaxed(&band->sampled_bytes, bytes);
        (void)hak_add_relaxed(&band->touched_bytes, resident);
    }
}
