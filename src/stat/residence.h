/* SPDX-License-Identifier: MIT
 *
 * What the resident memory of the process is used for; private to this folder. */
#ifndef HAK_STAT_RESIDENCE_H
#define HAK_STAT_RESIDENCE_H

#include "os/optional.h"
#include "stat/inventory.h"
#include "stat/stat.h"

#define HAK_CAUSE(name, title, advice) HAK_CAUSE_##name,
typedef enum hak_cause {
#include "stat/causes.def"
    HAK_CAUSE_COUNT
} hak_cause_t;
#undef HAK_CAUSE

/* It is not known before it is done, or nothing. */
#define HAK_RESIDENCE_UNKNOWN UINT64_MAX

typedef struct hak_residence {
    uint64_t rss_bytes; /* 0: not known */
    uint64_t bytes[HAK_CAUSE_COUNT];
    uint64_t returnable[HAK_CAUSE_COUNT]; /* of these, what malloc_trim(0) gives back; or: */
    struct hak_cause_class {
        unsigned block_bytes; /* of the size with most of the cause; 0: large and huge blocks */
        uint64_t bytes;       /* of that; 0: the cause is not by size */
    } most[HAK_CAUSE_COUNT];
    uint64_t other[HAK_OS_MAPPING_KINDS]; /* what `others` is */
    bool is_listed;                       /* there was memory to list what is ours */
    bool is_looked_at;                    /* the kernel told what is resident of it */
    bool is_told;                         /* and what is of each mapping: others are measured */
} hak_residence_t;

void hak_residence_look(hak_residence_t *residence, const hak_snapshot_t *snapshot);
uint64_t hak_residence_sum(const hak_residence_t *residence);

#endif
