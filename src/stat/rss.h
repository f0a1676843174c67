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

/* Of `returnable`: known only after a trim, or nothing. */
#define HAK_RSS_UNKNOWN UINT64_MAX

typedef struct hak_rss {
    uint64_t rss_bytes; /* 0: not known */
    uint64_t bytes[HAK_CAUSE_COUNT];
    uint64_t returnable[HAK_CAUSE_COUNT]; /* of these, malloc_trim(0) would give back; or: */
    struct hak_cause_class {
        unsigned block_bytes; /* of the size with most of the cause; 0: large and huge blocks */
        uint64_t bytes;       /* of that; 0: the cause is not by size */
    } most[HAK_CAUSE_COUNT];
    uint64_t other[HAK_OS_MAPPING_KINDS]; /* parts of `others` */
    bool is_listed;                       /* there was memory for the list of our ranges */
    bool is_looked_at;                    /* the kernel told which of their pages are resident */
    bool is_told;                         /* and how much of each mapping: others are measured */
} hak_rss_t;

void hak_rss_measure(hak_rss_t *rss, const hak_snapshot_t *snapshot);
uint64_t hak_rss_sum(const hak_rss_t *rss);

#endif
