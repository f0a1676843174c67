/* SPDX-License-Identifier: MIT
 *
 * The writers of reports, one per format; private to this folder. Every format walks the figures
 * once, in the same order. */
#ifndef HAK_STAT_REPORT_H
#define HAK_STAT_REPORT_H

#include "stat/stat.h"

typedef enum hak_figure_group {
    HAK_FIGURE_BYTES,
    HAK_FIGURE_COUNTS,
    HAK_FIGURE_LIMITS,
    HAK_FIGURE_EVENTS, /* counters: they only grow */
} hak_figure_group_t;

typedef struct hak_figure {
    hak_figure_group_t group;
    const char *name;   /* in text and XML; unique */
    const char *key;    /* in JSON, in the object of its group */
    const char *metric; /* without "hakmem_" */
    const char *text;
    uint64_t value;
} hak_figure_t;

typedef void hak_figure_visit_t(void *context, const hak_figure_t *figure);

void hak_stat_figures(const hak_snapshot_t *snapshot, hak_figure_visit_t *visit, void *context);

/* Whether reports show the class: it has slabs, or had events. */
bool hak_stat_has_class(const hak_class_stats_t *stats);

/* A writer of one format; XML, metrics and summary get no threads. */
typedef void hak_write_t(const hak_sink_t *sink, const hak_snapshot_t *snapshot,
                         const hak_thread_list_t *threads);
hak_write_t hak_write_text, hak_write_summary, hak_write_xml, hak_write_json, hak_write_metrics,
    hak_write_explain, hak_write_explain_json;
#define HAK_FORCED_NOTE "force_libc is on: blocks are the C library's own, and not in these figures"
/* A size with three significant digits and its unit. */
void hak_put_size(hak_text_t *text, uint64_t bytes);
/* The first line of every report in text. */
void hak_write_head(const hak_sink_t *sink);
/* The map, made without a snapshot. */
void hak_write_map(const hak_sink_t *sink);

#endif
