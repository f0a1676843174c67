/* SPDX-License-Identifier: MIT
 *
 * When memory goes back to the kernel. The layers below know how to give memory back; this folder
 * decides when, and how much. A decision is made at an event (front/event.h), never per call. */
#ifndef HAK_RECLAIM_RECLAIM_H
#define HAK_RECLAIM_RECLAIM_H

#include "base/wanted.h"
#include "front/tcache.h"

/* Pools, the cheapest first: bins of a thread, and what waits at owners, which become units or
 * idle pages; cached mappings; unused units; idle pages of slabs. */
enum { HAK_POOL_BINS, HAK_POOL_HUGE, HAK_POOL_UNITS, HAK_POOL_SLABS, HAK_POOLS };

/* Memory that shall go now. */
typedef struct hak_reclaim_order {
    hak_tcache_t *tcache;         /* whose bins; NULL: nobody's */
    unsigned pools;               /* bit each */
    size_t wanted_bytes;          /* SIZE_MAX: all, whatever it costs */
    size_t keep_bytes;            /* of units stay; if all is wanted, of cached mappings, too */
    size_t given_back[HAK_POOLS]; /* set: bytes */
} hak_reclaim_order_t;

/* Takes what is wanted from one pool after the other. Returns the bytes. */
size_t hak_reclaim_order(hak_reclaim_order_t *order);

/* An event of the process: memory above its bounds goes back, and both learners look. */
void hak_reclaim_tend(hak_tcache_t *tcache);
/* An event of a step of time: purges pages of idle slabs. */
void hak_reclaim_step(hak_tcache_t *tcache);

/* Does what the bits of hak_wanted ask for. */
void hak_reclaim_serve(void);

/* The kernel gives no more: see hak_reclaim_hooks. */
bool hak_reclaim_memory_out(hak_tcache_t *tcache, unsigned attempt);

/* malloc_trim: everything unused goes back but about `keep_bytes` of whole units, and the caches of
 * other threads. Returns the bytes. */
size_t hak_reclaim_trim(size_t keep_bytes);

/* In the child of a fork: the thread that was here may be gone. */
void hak_reclaim_after_fork(void);

/* The learner (regret.c); returns at once unless a window has passed and no thread is here. */
void hak_regret_tick(void);
/* One window: `purged` units of which `regretted` were wanted again. Exposed for tests. */
void hak_regret_window(uint64_t purged, uint64_t regretted);
/* `count` windows passed in which nothing happened. Exposed for tests. */
void hak_regret_fade(uint64_t count);

/* How often a pause is doubled, or a step halved: more after a regretted purge, else less. */
HAK_INLINE uint64_t hak_regret_backoff(uint64_t backoff, bool is_regretted, uint64_t most) {
    return is_regretted ? hak_least(backoff + 2, most) : backoff - (backoff != 0);
}

/* Limits of control groups (limit.c): reads them if it is time; gives back what exceeds them. */
void hak_limit_tick(void);

/* What goes by size and by time (target.c): of unused units, and of the huge cache. */
void hak_target_spans(void);
/* Purges units, unless the kernel refused all of them a moment ago. Returns the bytes. */
size_t hak_target_purge(hak_purge_plan_t *plan);
void hak_target_huge(void);
size_t hak_target_huge_bound(hak_huge_pool_t *pool);
/* Unused units that stay although nobody needs them. */
size_t hak_target_idle_bytes(size_t in_use_bytes);

/* So many bytes of fresh memory are about to be taken: gives unused memory back if they do not fit
 * below the knob limit_soft_bytes. Without locks. */
void hak_limit_give_back(size_t bytes);

/* One thread at a time, as long as a look takes less than the pause behind it. */
typedef struct hak_limit {
    uint64_t looked_ns; /* [atomic] */
    uint64_t pause_ns;  /* [atomic] until the next look */
    uint64_t backoff;   /* [atomic] */
    uint64_t misses;    /* [atomic] looks in a row that saw no limit though there was one */
    uint64_t given[2];  /* [atomic] counters at the last look: bytes of units, of huge blocks */
    uint64_t wanted[2]; /* [atomic] the same: purged and wanted again, mapped */
} hak_limit_t;
extern hak_limit_t hak_limit; /* exposed for tests */

#endif
