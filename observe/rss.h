/* SPDX-License-Identifier: MIT
 *
 * RSS by cause: the use of the resident pages of the process. */
#ifndef OBS_RSS_H
#define OBS_RSS_H

#include "image.h"

#define OBS_CAUSE(name, title, advice) OBS_CAUSE_##name,
typedef enum obs_cause {
#include "causes.def"
    OBS_CAUSE_COUNT
} obs_cause_t;
#undef OBS_CAUSE

/* In `returnable`: known only after a trim. */
#define OBS_UNKNOWN UINT64_MAX

typedef struct obs_rss {
    uint64_t rss_bytes; /* 0: not known */
    uint64_t bytes[OBS_CAUSE_COUNT];
    uint64_t returnable[OBS_CAUSE_COUNT]; /* malloc_trim(0) would return so much of it */
    struct obs_cause_class {
        unsigned block_bytes; /* the size with most of the cause; 0: above 64 KiB */
        uint64_t bytes;       /* in that size; 0: the cause has no sizes */
    } most[OBS_CAUSE_COUNT];
    uint64_t other[OBS_MAPPING_KINDS]; /* parts of `others` */
    const char *doubt;                 /* why figures may be wrong; NULL: no reason */
    bool is_listed;                    /* there was memory for the list of our ranges */
    bool is_looked_at;                 /* the kernel told which of our pages are resident */
    bool is_told;                      /* and of each mapping how much: others are measured */
} obs_rss_t;

void obs_rss_measure(obs_rss_t *rss, const obs_snapshot_t *snapshot);
uint64_t obs_rss_sum(const obs_rss_t *rss);

#endif
