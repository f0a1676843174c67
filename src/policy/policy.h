/* SPDX-License-Identifier: MIT
 *
 * The learner: reads counters at events, writes knobs that slow paths read. It decides nothing per
 * call, and stays inside bounds:
 *
 *   retain_learned_percent   0 to 100, on top of retain_percent
 *   retain_wanted_bytes      what was purged and wanted again soon; at most what was purged
 *
 * What it minimises is regret: units that were purged and wanted again within a window cost a
 * system call and a page fault each, for nothing. The share of regretted purges, averaged 90/10
 * over windows, raises what is retained quickly above REGRET_HIGH and lowers it slowly below
 * REGRET_LOW. That serves loads that breathe faster than a window of the decay (span/purge.c). For
 * those that breathe in seconds it remembers how much they took again; the memory of both, what was
 * purged and what was wanted, fades by 1/WANTED_FADE a window, to a half in 4 s. With
 * option learn:0 all windows count as calm: what was learned fades. */
#ifndef HAK_POLICY_POLICY_H
#define HAK_POLICY_POLICY_H

#include "base/words.h"

/* Called at the events of the process (front/event.h); returns at once unless a window has passed
 * and no other thread is here. */
void hak_policy_tick(void);

/* The same for the memory limits of control groups (pressure.c). */
void hak_policy_limit_tick(void);

/* One thread at a time, as long as a look takes less than the pause behind it. */
typedef struct hak_pressure {
    uint64_t looked_ns; /* [atomic] */
    uint64_t pause_ns;  /* [atomic] until the next look */
    uint64_t backoff;   /* [atomic] */
    uint64_t misses;    /* [atomic] looks in a row that saw no limit though there was one */
    uint64_t given[2];  /* [atomic] counters at the last look: bytes of units, of huge blocks */
    uint64_t wanted[2]; /* [atomic] the same: purged and wanted again, mapped */
} hak_pressure_t;
extern hak_pressure_t hak_pressure; /* exposed for tests */

/* In the child of a fork: the thread that was here may be gone. */
void hak_policy_after_fork(void);

/* One window: `purged` units of which `regretted` were wanted again. Exposed for tests. */
void hak_policy_window(uint64_t purged, uint64_t regretted);
/* `count` windows passed in which nothing happened. Exposed for tests. */
void hak_policy_fade(uint64_t count);

#endif
