/* SPDX-License-Identifier: MIT
 *
 * The probes that fleet profilers listen to: none so far. */
#ifndef HAK_PROFILE_PROBE_H
#define HAK_PROFILE_PROBE_H

#include "base/compiler.h"
#include "base/words.h"

/* Whether somebody listens. */
HAK_INLINE bool hak_probe_is_armed(void) {
    return false;
}

HAK_INLINE void hak_probe_alloc(const void *block, size_t bytes, size_t rate) {
    (void)block, (void)bytes, (void)rate;
}

HAK_INLINE void hak_probe_free(const void *block) {
    (void)block;
}

#endif
