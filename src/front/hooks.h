/* SPDX-License-Identifier: MIT
 *
 * The front's calls to higher ranks: tables that they fill in, and the up-calls of src/LAYERS. */
#ifndef HAK_FRONT_HOOKS_H
#define HAK_FRONT_HOOKS_H

#include "base/atomics.h"
#include "base/check.h"

/* The request that a bin is refilled for. */
struct hak_request {
    size_t bytes, align;
};

/* The sampled guard (guard/guard.h) fills it in when the process starts; NULL before. */
typedef struct hak_guard_table {
    /* The tcache's countdown is over: returns a guarded block, or NULL for none. */
    void *(*sample)(hak_tcache_t *tcache, const hak_request_t *request);
    /* Frees an address whose entry is HAK_KIND_GUARD; fatal if no block in use begins there. */
    void (*free)(void *block);
    /* The usable size of such a block, at least 1; else fatal as `kind`. */
    size_t (*usable)(const void *block, hak_fatal_kind_t kind);
} HAK_SEALED hak_guard_table_t;

extern hak_guard_table_t hak_guard_table; /* [init] */

/* The heap profiler (profile/profile.h) fills it in when the process starts. It is called only
 * while hak_profile_rate is not 0, or for a block that it sampled. */
typedef struct hak_profile_table {
    /* The tcache's countdown is over: returns a sampled block of the class, or NULL for none. */
    void *(*sample)(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request);
    /* Frees a block of a slab of sampled blocks (SLAB-10). */
    void (*free)(void *block, uint32_t entry);
    /* Such a block is free for the program, but not yet for reuse. */
    void (*forget)(const void *block);
    /* A large block was allocated; tcache is NULL in a thread without one. */
    void (*large)(hak_tcache_t *tcache, void *block, size_t size);
    /* A large block is about to be freed, moved or resized: takes its record; 0: it has none. */
    uint64_t (*take)(const void *block);
    /* Ends that: the block is freed, or was left as it is and keeps the record. */
    void (*end)(uint64_t record);
    void (*keep)(uint64_t record);
} HAK_SEALED hak_profile_table_t;

extern hak_profile_table_t hak_profile_table; /* [init] */
extern size_t hak_profile_rate;               /* [atomic] bytes a sample; 0: no sampling */
/* [atomic] Large blocks in use that have a record, by their unit: most of the others don't ask. */
enum { HAK_PROFILE_PLACES = 64 };
extern uint32_t hak_profile_large_count[HAK_PROFILE_PLACES];
HAK_INLINE uint32_t *hak_profile_place(const void *block) {
    return &hak_profile_large_count[(uintptr_t)block / HAK_UNIT_BYTES % HAK_PROFILE_PLACES];
}
HAK_INLINE void hak_profile_forget_large(void) {
    for (unsigned i = 0; i < HAK_PROFILE_PLACES; i++) {
        hak_store_relaxed(&hak_profile_large_count[i], 0);
    }
}

/* First use of the process: reads options, wires the layers. Cheap when done. */
HAK_COLD void hak_life_process_start(void);

/* First use of a thread: gives it a tcache and arranges for its exit. NULL when the thread cannot
 * have one: it is past its exit hook, metadata ran out, or force_libc is on. */
HAK_COLD hak_tcache_t *hak_life_thread_start(void);

#endif
