/* SPDX-License-Identifier: MIT
 *
 * span/box.h without figures: nothing decides by them, and each would be a step to explore. */
#ifndef HAK_SPAN_BOX_H
#define HAK_SPAN_BOX_H

#include "base/atomics.h"

typedef struct hak_band hak_band_t;

#define MODEL_NO_FIGURE(...) ((void)sizeof((unsigned long[]){__VA_ARGS__}))
#define hak_band_of_slab(units) ((void)(units), (hak_band_t *)NULL)
#define hak_band_slab_enter(units, is_fresh, again) MODEL_NO_FIGURE(units, is_fresh, again)
#define hak_band_slab_leave(units) MODEL_NO_FIGURE(units)
#define hak_band_fresh(band, fresh, again) ((void)(band), MODEL_NO_FIGURE(fresh, again))
#define hak_band_sample(band, bytes, resident) ((void)(band), MODEL_NO_FIGURE(bytes, resident))
#define hak_band_return(band, bytes) ((void)(band), MODEL_NO_FIGURE(bytes))

#endif
