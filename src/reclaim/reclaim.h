/* SPDX-License-Identifier: MIT
 *
 * When memory goes back to the kernel. The layers below know how to give memory back; this folder
 * decides when, and how much. A decision is made at an event (front/event.h), never per call. */
#ifndef HAK_RECLAIM_RECLAIM_H
#define HAK_RECLAIM_RECLAIM_H

#include "front/tcache.h"

/* An event of the process: memory above its bounds goes back, and both learners look. */
void hak_reclaim_tend(hak_tcache_t *tcache);
/* An event of a step of time: purges pages of idle slabs. */
void hak_reclaim_step(hak_tcache_t *tcache);

/* malloc_trim: everything unused goes back but about `keep_bytes` of whole units, and the caches of
 * other threads. Returns the bytes. */
size_t hak_reclaim_trim(size_t keep_bytes);

/* In the child of a fork: the thread that was here may be gone. */
void hak_reclaim_after_fork(void);

/* The learner (regret.c); returns at once unless a window has passed and no other thread is here.
 */
void hak_regret_tick(void);
/* One window: `purged` units of which `regretted` were wanted again. Exposed for tests. */
void hak_regret_window(uint64_t purged, uint64_t regretted);
/* `count` windows passed in which nothing happened. Exposed for tests. */
void hak_regret_fade(uint64_t count);

/* Limits of control groups (limit.c): reads them if it is time; gives back what exceeds them. */
void hak_limit_tick(void);

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
