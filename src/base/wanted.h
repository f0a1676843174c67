/* SPDX-License-Identifier: MIT
 *
 * What lower ranks want of higher ones: bits, perhaps set while a lock is held, and calls. */
#ifndef HAK_BASE_WANTED_H
#define HAK_BASE_WANTED_H

#include "base/atomics.h"
#include "base/check.h"

/* Requests of lower layers to reclaim/: bits, perhaps set while they hold a lock. */
enum {
    HAK_WANTED_PURGE = 1, /* more units are unused than the bound */
    HAK_WANTED_PEAK = 2,  /* the heap is about to grow beyond its peak (hak_span_peak_bytes) */
    HAK_WANTED_LIMIT = 4, /* memory is about to be taken near a limit (hak_span_limit_bytes) */
};
extern uint32_t hak_wanted; /* [atomic] */

HAK_INLINE void hak_want(uint32_t request) {
    if ((hak_load_relaxed(&hak_wanted) & request) == 0) {
        (void)hak_or_relaxed(&hak_wanted, request);
    }
}

struct hak_huge_pool;

/* The request that a bin is refilled for. */
struct hak_request {
    size_t bytes, align;
};

/* Calls of lower ranks to higher ones, which fill this in once, at process start; NULL before.
 * Only slow paths and fatal reports call. */
typedef struct hak_services {
    /* --- guard/, for fatal reports */
    void (*describe)(struct hak_text *text, const void *address); /* appends a description */
    void (*trace)(void); /* prints the stack from its caller on; NULL: not wanted */
    /* --- reclaim/ */
    void (*serve)(hak_tcache_t *tcache); /* does what hak_wanted asks; NULL: no tcache */
    void (*give_back)(size_t bytes);     /* before fresh memory is used, with a limit */
    /* Sets the bounds of freed huge blocks. Begins a window when the last is over. */
    void (*huge_bound)(struct hak_huge_pool *pool);
    /* The kernel has no room for a mapping of so many bytes: reclaims, if that can make room; true:
     * try again. Attempts count from 0. */
    bool (*memory_out)(hak_tcache_t *tcache, unsigned attempt, size_t bytes);
    /* --- guard/ */
    /* The tcache's countdown is over: returns a guarded block, or NULL for none. */
    void *(*guard_sample)(hak_tcache_t *tcache, const hak_request_t *request);
    /* Frees an address whose entry is HAK_KIND_GUARD; fatal if no block in use begins there. */
    void (*guard_free)(void *block);
    /* The usable size of such a block, at least 1; else fatal as `kind`. */
    size_t (*guard_usable)(const void *block, hak_fatal_kind_t kind);
    /* --- profile/: while hak_profile_rate is not 0, or for a block that it sampled */
    /* The tcache's countdown is over: returns a sampled block of the class, or NULL for none. */
    void *(*profile_sample)(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request);
    /* Frees a block of a slab of sampled blocks (SLAB-10). */
    void (*profile_free)(void *block, uint32_t entry);
    /* A large block was allocated; tcache is NULL in a thread without one. */
    void (*profile_large)(hak_tcache_t *tcache, void *block, size_t size);
    /* A block is about to be freed, moved or resized: takes its record; 0: it has none. */
    uint64_t (*profile_take)(const void *block);
    /* Ends profile_take: the block is freed, or was left as it is and keeps the record. */
    void (*profile_end)(const void *block, uint64_t record, bool is_kept);
} HAK_SEALED hak_services_t;
extern hak_services_t hak_services; /* [init] */

/* Serves the requests; in slow paths of the front, with no owner held. `tcache` is the caller's
 * own, none of whose bins is being changed. */
HAK_INLINE void hak_wanted_serve_by(hak_tcache_t *tcache) {
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_wanted) != 0)) {
        hak_services.serve(tcache);
    }
}
HAK_INLINE void hak_wanted_serve(void) {
    hak_wanted_serve_by(NULL);
}

#endif
