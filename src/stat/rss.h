/* SPDX-License-Identifier: MIT
 *
 * RSS by cause: the use of the resident pages of the process; private to this folder. */
#ifndef HAK_STAT_RSS_H
#define HAK_STAT_RSS_H

#include "os/optional.h"
#include "stat/inventory.h"
#include "stat/stat.h"

#define HAK_CAUSE(name, title, advice) HAK_CAUSE_##name,
typedef enum hak_cause {
#include "stat/causes.def"
    HAK_CAUSE_COUNT
} hak_cause_t;
#undef HAK_CAUSE

/* In `returnable`: known only after a trim. */
#define HAK_RSS_UNKNOWN UINT64_MAX

typedef struct hak_rss {
    uint64_t rss_bytes; /* 0: not known */
    uint64_t bytes[HAK_CAUSE_COUNT];
    uint64_t returnable[HAK_CAUSE_COUNT]; /* malloc_trim(0) would return so much of it */
    struct hak_cause_class {
        unsigned block_bytes; /* the size with most of the cause; 0: above 64 KiB */
        uint64_t bytes;       /* in that size; 0: the cause has no sizes */
    } most[HAK_CAUSE_COUNT];
    uint64_t other[HAK_OS_MAPPING_KINDS]; /* parts of `others` */
    const char *doubt;                    /* why figures may be wrong; NULL: no reason */
    bool is_listed;                       /* there was memory for the list of our ranges */
    bool is_looked_at;                    /* the kernel told which of our pages are resident */
    bool is_told;                         /* and of each mapping how much: others are measured */
} hak_rss_t;

void hak_rss_measure(hak_rss_t *rss, const hak_snapshot_t *snapshot);
uint64_t hak_rss_sum(const hak_rss_t *rss);

#endif
