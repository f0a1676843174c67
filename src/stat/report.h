/* SPDX-License-Identifier: MIT
 *
 * The writers of reports, one a format; private to this folder. Figures are walked once, in one
 * order, for every format. */
#ifndef HAK_STAT_REPORT_H
#define HAK_STAT_REPORT_H

#include "stat/stat.h"

typedef enum hak_figure_group {
    HAK_FIGURE_BYTES,
    HAK_FIGURE_COUNTS,
    HAK_FIGURE_LIMITS,
    HAK_FIGURE_EVENTS, /* these only grow */
} hak_figure_group_t;

typedef struct hak_figure {
    hak_figure_group_t group;
    const char *name;   /* in text and XML: nothing else has it */
    const char *key;    /* in JSON, in the object of its group */
    const char *metric; /* without "hakmem_" */
    const char *text;
    uint64_t value;
} hak_figure_t;

typedef void hak_figure_visit_t(void *context, const hak_figure_t *figure);

void hak_stat_figures(const hak_snapshot_t *snapshot, hak_figure_visit_t *visit, void *context);

/* Whether a report says anything of the class: it has slabs, or had events. */
bool hak_stat_has_class(const hak_class_stats_t *stats);

void hak_write_text(const hak_sink_t *sink, const hak_snapshot_t *snapshot,
                    const hak_thread_list_t *threads);
void hak_write_summary(const hak_sink_t *sink, const hak_snapshot_t *snapshot);
void hak_write_xml(const hak_sink_t *sink, const hak_snapshot_t *snapshot);
void hak_write_json(const hak_sink_t *sink, const hak_snapshot_t *snapshot,
                    const hak_thread_list_t *threads);
void hak_write_metrics(const hak_sink_t *sink, const hak_snapshot_t *snapshot);
#define HAK_FORCED_NOTE "force_libc is on: blocks are the C library's own, and not in these figures"
/* A size with three significant digits and its unit. */
void hak_put_size(hak_text_t *text, uint64_t bytes);
/* The first line of every report in text. */
void hak_write_head(const hak_sink_t *sink);

void hak_write_map(const hak_sink_t *sink);
void hak_write_explain(const hak_sink_t *sink, const hak_snapshot_t *snapshot,
                       const hak_thread_list_t *threads, bool is_json);

#endif
