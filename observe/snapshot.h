/* SPDX-License-Identifier: MIT
 *
 * All figures of another program: those that it could collect itself (stat/stat.h), bounds, and
 * sums of its counters. */
#ifndef OBS_SNAPSHOT_H
#define OBS_SNAPSHOT_H

#include "stat/stat.h"

/* Bounds, and the bounded figures: name, text. Read by tools/gen_stats.py. */
#define OBS_STAT_LIMITS(X)                                                                         \
    X(cache_bytes, "growth of the bins of all threads")                                            \
    X(cache_budget_bytes, "bound of the growth of the bins of all threads")                        \
    X(memory_limit_bytes, "limit of the tightest control group; 0: none known")                    \
    X(memory_is_tight, "1 if the limit is near even after full reclaim")                           \
    X(keep_units_ms, "how long the learner keeps unused memory; 0: the standard rules decide")     \
    X(keep_huge_ms, "how long the learner keeps freed huge blocks; 0: the standard rules decide")  \
    X(keep_units_saves_bytes, "bytes a second that keep_units_ms saves (docs/learning.md)")        \
    X(keep_huge_saves_bytes, "bytes a second that keep_huge_ms saves (docs/learning.md)")          \
    X(profile_rate_bytes, "the heap profiler samples one byte in so many; 0: none")

/* All counters of tcaches and owners. */
#define OBS_TCACHE_COUNTERS(X) HAK_BIN_COUNTERS(X) HAK_CLASS_COUNTERS(X) HAK_THREAD_COUNTERS(X)

typedef struct obs_tcache_counters {
    OBS_TCACHE_COUNTERS(HAK_COUNTER_FIELD)
} obs_tcache_counters_t;

/* Of a class. */
typedef struct obs_class_stats {
    union {
        hak_class_stats_t heap;
        struct {
            HAK_STAT_BLOCKS(HAK_STAT_FIELD)
        };
    };
    hak_bin_counters_t bin;
    hak_class_counters_t owner;
} obs_class_stats_t;

typedef struct obs_snapshot {
    union {
        hak_snapshot_t heap;
        struct {
            HAK_STAT_FIELDS
        };
    };
    OBS_STAT_LIMITS(HAK_STAT_FIELD)
    obs_tcache_counters_t events; /* sums of all classes and threads */
    hak_process_counters_t process;
    hak_bin_counters_t bin[HAK_SC_COUNT];
    hak_class_counters_t owner[HAK_SC_COUNT];
} obs_snapshot_t;

/* False: the class has no slabs and had no events, so reports leave it out. */
bool obs_class_read(const obs_snapshot_t *snapshot, unsigned sc, obs_class_stats_t *stats);

#endif
