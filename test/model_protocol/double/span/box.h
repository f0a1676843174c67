/* SPDX-License-Identifier: MIT
 *
 * span/box.h without figures: nothing decides by them, and each would be a step to explore. */
#ifndef HAK_SPAN_BOX_H
#define HAK_SPAN_BOX_H

#include "base/atomics.h"

typedef struct hak_band hak_band_t;

static inline hak_band_t *hak_band_of_slab(unsigned units) {
    (void)units;
    return NULL;
}

static inline void hak_band_slab_enter(unsigned units, bool is_fresh, unsigned again_units) {
    (void)units;
    (void)is_fresh;
    (void)again_units;
}

static inline void hak_band_slab_leave(unsigned units) {
    (void)units;
}

static inline void hak_band_fresh(hak_band_t *band, size_t fresh_bytes, size_t again_bytes) {
    (void)band;
    (void)fresh_bytes;
    (void)again_bytes;
}

static inline void hak_band_sample(hak_band_t *band, size_t bytes, size_t resident) {
    (void)band;
    (void)bytes;
    (void)resident;
}

static inline void hak_band_return(hak_band_t *band, size_t bytes) {
    (void)band;
    (void)bytes;
}

#endif
