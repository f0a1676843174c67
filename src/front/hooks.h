/* SPDX-License-Identifier: MIT
 *
 * What directs the front from above: the heap profiler, and the up-calls of src/LAYERS. */
#ifndef HAK_FRONT_HOOKS_H
#define HAK_FRONT_HOOKS_H

#include "base/atomics.h"
#include "base/wanted.h"

extern size_t hak_profile_rate; /* [atomic] bytes a sample; 0: no sampling */
/* [atomic] Sampled large blocks in use, by a hash of their unit: where it is 0, no free asks. */
enum { HAK_PROFILE_PLACES = 64 };
extern uint32_t hak_profile_large_count[HAK_PROFILE_PLACES];
HAK_INLINE uint32_t *hak_profile_cell(const void *block) {
    return &hak_profile_large_count[(uintptr_t)block / HAK_UNIT_BYTES % HAK_PROFILE_PLACES];
}
HAK_INLINE void hak_profile_forget_large(void) {
    for (unsigned i = 0; i < HAK_PROFILE_PLACES; i++) {
        hak_store_relaxed(&hak_profile_large_count[i], 0);
    }
}

/* First use of the process: reads options, wires the layers. Cheap when done. */
HAK_COLD void hak_life_process_start(void);

/* First use of a thread: gives it a tcache and arranges for its exit; if it has one, gives it the
 * second, too (TCACHE-10). NULL when it cannot have one: it is past its exit hook, metadata ran
 * out, or force_libc is on. */
HAK_COLD hak_tcache_t *hak_life_thread_start(void);

#endif
