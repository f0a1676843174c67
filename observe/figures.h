/* SPDX-License-Identifier: MIT
 *
 * The tables of figures, for every format; threads, one by one. */
#ifndef OBS_FIGURES_H
#define OBS_FIGURES_H

#include "snapshot.h"

typedef enum obs_figure_group {
    OBS_FIGURE_BLOCKS, /* of a class; has no object of its own in JSON */
    OBS_FIGURE_BYTES,
    OBS_FIGURE_COUNTS,
    OBS_FIGURE_LIMITS,
    OBS_FIGURE_EVENTS, /* counters: they only grow */
} obs_figure_group_t;

/* No pointers: the dynamic linker would have to write the tables. */
typedef struct obs_figure {
    obs_figure_group_t group;
    uint32_t offset; /* of the value, in its record */
    char name[24];   /* in text and XML; unique */
    char key[24];    /* in JSON, in the object of its group */
    char metric[32]; /* without "hakmem_" */
    char text[88];
} obs_figure_t;

/* Of a snapshot, and of the statistics of a class; the last row has no name. */
extern const obs_figure_t obs_figures[], obs_class_figures[];

HAK_INLINE uint64_t obs_figure_value(const obs_figure_t *figure, const void *record) {
    return *(const uint64_t *)((const char *)record + figure->offset);
}

/* A thread's cache. Events include those of its earlier threads. */
typedef struct obs_thread_stats {
    uint32_t id;      /* of the thread; 0: threads without a cache of their own */
    uint32_t owner;   /* its home, from 0 */
    bool is_attached; /* false: a fork left it behind, or id is 0 */
    uint64_t cached_bytes, drawn_bytes;
    uint64_t idle_ms;       /* since a slow path last read the clock; 0: none did, or just now */
    hak_bin_counters_t bin; /* sums of all classes */
    hak_thread_counters_t own;
} obs_thread_stats_t;

/* Caches that have a thread, or hold something. */
typedef struct obs_thread_list {
    obs_thread_stats_t *thread; /* NULL: there are none, or no memory for them */
    size_t count, room;
} obs_thread_list_t;
extern obs_thread_list_t obs_threads; /* those of the snapshot that was collected last */

#endif
