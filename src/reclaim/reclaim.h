/* SPDX-License-Identifier: MIT
 *
 * When memory goes back to the kernel. The layers below can give memory back; this folder decides
 * when, and how much: at events (front/event.h), and in slow paths where hak_wanted, a limit, a
 * free of a huge block or a refusal of the kernel asks for it. The hit path calls nothing of it. */
#ifndef HAK_RECLAIM_RECLAIM_H
#define HAK_RECLAIM_RECLAIM_H

#include "front/event.h"
#include "large/large.h"

/* Pools, the cheapest first: bins of a thread and remote frees, which become units or idle pages;
 * cached mappings; unused units; idle pages of slabs. */
enum { HAK_POOL_BINS, HAK_POOL_HUGE, HAK_POOL_UNITS, HAK_POOL_SLABS, HAK_POOLS };

/* A request for memory from some pools. */
typedef struct hak_reclaim_order {
    hak_tcache_t *tcache;         /* whose bins; NULL: none */
    unsigned pools;               /* a bit per pool */
    size_t wanted_bytes;          /* SIZE_MAX: all, at any cost */
    bool is_urgent;               /* at any cost, too, but no more than wanted */
    size_t keep_bytes;            /* of units; if all is wanted, of cached mappings, too */
    size_t given_back[HAK_POOLS]; /* result: bytes */
} hak_reclaim_order_t;

/* Takes the wanted bytes from one pool after the other. Returns the bytes. */
size_t hak_reclaim_order(hak_reclaim_order_t *order);

/* An event of the process: purges memory above its bounds; runs the learner. */
void hak_reclaim_maintain(hak_tcache_t *tcache);
/* An event of a step of time: purges idle pages of slabs. */
void hak_reclaim_step(hak_tcache_t *tcache);

/* Serves the bits of hak_wanted. Before a new peak it flushes the bins of `tcache`; NULL: none. */
void hak_reclaim_serve(hak_tcache_t *tcache);

/* Memory is out: see hak_services. */
bool hak_reclaim_memory_out(hak_tcache_t *tcache, unsigned attempt, size_t bytes);

/* malloc_trim: returns everything unused but about `keep_bytes` of whole units and the caches of
 * other threads. Returns the bytes. */
size_t hak_reclaim_trim(size_t keep_bytes);

/* Doublings of a pause, or halvings of a step: two more after a regretted purge, else one less. */
HAK_INLINE uint64_t hak_regret_backoff(uint64_t backoff, bool is_regretted, uint64_t most) {
    return is_regretted ? hak_least(backoff + 2, most) : backoff - (backoff != 0);
}

/* What a counter grew by since the last call; 0 if another thread was here with a later value. */
HAK_INLINE uint64_t hak_regret_growth(uint64_t *before, uint64_t now) {
    uint64_t last = hak_swap_relaxed(before, now);
    return hak_excess(now, last);
}

/* Limits of control groups (limit.c): reads them as the process starts, and when due; gives back
 * memory that exceeds them. */
void hak_limit_start(void);
void hak_limit_tick(void);

/* Purges by size and by time (target.c): unused units, and the huge cache. */
void hak_target_spans(void);
/* Purges units, of which so many bytes are unused, unless the kernel refused all of them a moment
 * ago. Returns the bytes. */
size_t hak_target_purge(hak_purge_plan_t *plan, size_t unused_bytes);
void hak_target_huge(void);
void hak_target_huge_bound(hak_huge_pool_t *pool);
/* In the child of a fork: nothing is learned yet. */
void hak_target_after_fork(void);
/* After HAK_WANTED_PEAK: raises the peak; returns the bytes to give back before it is reached. */
size_t hak_target_over_peak(void);
/* Bytes of unused units that stay even if idle. */
size_t hak_target_idle_bytes(size_t in_use_bytes);

/* Gives unused memory back if the process, with `bytes` of fresh memory that it is about to take,
 * exceeds the knob limit_soft_bytes. Called without locks. */
void hak_limit_give_back(size_t bytes);

/* Written by one thread at a time, as long as a read takes less than the pause after it. */
typedef struct hak_limit {
    uint64_t read_ns;   /* [atomic] */
    uint64_t pause_ns;  /* [atomic] until the next read */
    uint64_t backoff;   /* [atomic] */
    uint64_t misses;    /* [atomic] reads in a row without a limit, after one with */
    size_t due_bytes;   /* [atomic] of memory: the next read */
    size_t grain_bytes; /* [atomic] taken near the limit between two reads */
    size_t allow_bytes; /* [atomic] the same at present */
    size_t press_bytes; /* [atomic] with less memory, only cheap pools give: the last time all
                           gave too little */
    uint64_t given[2];  /* [atomic] counters at the last read: bytes of units, of huge blocks */
    uint64_t wanted[2]; /* [atomic] the same of purged and wanted again, mapped */
} hak_limit_t;
extern hak_limit_t hak_limit; /* exposed for tests */

#endif
