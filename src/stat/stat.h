/* SPDX-License-Identifier: MIT
 *
 * One snapshot of all counters, and reports made from it. Figures are estimates while other threads
 * work, exact when they rest. "In use" includes blocks cached in bins and outboxes, or held back
 * (front/quarantine.c). */
#ifndef HAK_STAT_STAT_H
#define HAK_STAT_STAT_H

#include "base/counters.h"
#include "base/fmt.h"
#include "slab/slab.h"

typedef struct hak_class_stats {
    uint64_t slabs;
    uint64_t carved; /* blocks that exist */
    uint64_t free;   /* of these, on the slabs' own lists */
} hak_class_stats_t;

typedef struct hak_snapshot {
    size_t mapped_bytes;       /* superslabs and huge mappings, cached ones included */
    size_t in_use_bytes;       /* blocks handed out, or cached in bins */
    size_t slab_free_bytes;    /* free blocks on slabs' lists */
    size_t unused_dirty_bytes; /* free units that hold memory */
    size_t large_bytes;        /* large blocks in superslabs */
    size_t large_count;
    size_t huge_bytes;
    size_t huge_count;
    size_t huge_cached_bytes;
    size_t meta_bytes;
    size_t superslab_count;
    size_t thread_count; /* tcaches ever made */
    size_t cache_bytes;  /* what bins have grown by */
    size_t cache_budget_bytes;
    size_t limit_bytes; /* of memory, of the control group with least room; 0: none known */
    bool is_tight;
    hak_tcache_counters_t events;
    hak_process_counters_t process;
    hak_class_stats_t sc[HAK_SC_COUNT];
} hak_snapshot_t;

void hak_stat_collect(hak_snapshot_t *snapshot);

/* Writes the text report to a file descriptor. */
void hak_stat_report_text(int fd, const hak_snapshot_t *snapshot);

/* Writes the XML report of malloc_info through `put`. */
void hak_stat_report_xml(void (*put)(void *context, const char *data, size_t length), void *context,
                         const hak_snapshot_t *snapshot);

#endif
