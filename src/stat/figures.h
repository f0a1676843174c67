/* SPDX-License-Identifier: MIT
 *
 * The tables of figures, for every format; private to this folder. */
#ifndef HAK_STAT_FIGURES_H
#define HAK_STAT_FIGURES_H

#include "stat/stat.h"

typedef enum hak_figure_group {
    HAK_FIGURE_BLOCKS, /* of a class; has no object of its own in JSON */
    HAK_FIGURE_BYTES,
    HAK_FIGURE_COUNTS,
    HAK_FIGURE_LIMITS,
    HAK_FIGURE_EVENTS, /* counters: they only grow */
} hak_figure_group_t;

/* No pointers: the dynamic linker would have to write the tables. */
typedef struct hak_figure {
    hak_figure_group_t group;
    uint32_t offset; /* of the value, in its record */
    char name[24];   /* in text and XML; unique */
    char key[24];    /* in JSON, in the object of its group */
    char metric[28]; /* without "hakmem_" */
    char text[88];
} hak_figure_t;

/* Of a snapshot, and of the statistics of a class; the last row has no name. */
extern const hak_figure_t hak_figures[], hak_class_figures[];

HAK_INLINE uint64_t hak_figure_value(const hak_figure_t *figure, const void *record) {
    return *(const uint64_t *)((const char *)record + figure->offset);
}

/* Whether reports show the class: it has slabs, or had events. */
bool hak_stat_has_class(const hak_class_stats_t *stats);
/* Sums up what was collected, and asks the learner; the observer does, too. */
void hak_stat_sum(hak_snapshot_t *snapshot);

#endif
