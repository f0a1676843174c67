/* SPDX-License-Identifier: MIT */
#include "figures.h"

#define FIGURE(group, record, field, name, key, metric, text)                                      \
    {OBS_FIGURE_##group, offsetof(record, field), name, key, metric, text},
#define FIGURE_BYTES(name, text)                                                                   \
    FIGURE(BYTES, obs_snapshot_t, name##_bytes, #name "_bytes", #name, #name "_bytes", text)
#define FIGURE_COUNT(name, key, metric, text)                                                      \
    FIGURE(COUNTS, obs_snapshot_t, name, #name, #key, #metric, text)
#define FIGURE_LIMIT(name, text) FIGURE(LIMITS, obs_snapshot_t, name, #name, #name, #name, text)
#define FIGURE_EVENT(record, field, name, text)                                                    \
    FIGURE(EVENTS, record, field, #name, #name, #name "_total", text)
#define FIGURE_TCACHE(name, text) FIGURE_EVENT(obs_snapshot_t, events.name, name, text)
#define FIGURE_PROCESS(name, text) FIGURE_EVENT(obs_snapshot_t, process.name, name, text)

const obs_figure_t obs_figures[] = {
    HAK_STAT_BYTES(FIGURE_BYTES) HAK_STAT_COUNTS(FIGURE_COUNT) OBS_STAT_LIMITS(FIGURE_LIMIT)
        OBS_TCACHE_COUNTERS(FIGURE_TCACHE) HAK_PROCESS_COUNTERS(FIGURE_PROCESS){0},
};

#define CLASS_BLOCKS(name, text) FIGURE(BLOCKS, obs_class_stats_t, name, #name, #name, #name, text)
#define CLASS_BIN(name, text) FIGURE_EVENT(obs_class_stats_t, bin.name, name, text)
#define CLASS_OWNER(name, text) FIGURE_EVENT(obs_class_stats_t, owner.name, name, text)

const obs_figure_t obs_class_figures[] = {
    HAK_STAT_BLOCKS(CLASS_BLOCKS) HAK_BIN_COUNTERS(CLASS_BIN) HAK_CLASS_COUNTERS(CLASS_OWNER){0},
};

bool obs_class_read(const obs_snapshot_t *snapshot, unsigned sc, obs_class_stats_t *stats) {
    stats->heap = snapshot->sc[sc];
    stats->bin = snapshot->bin[sc];
    stats->owner = snapshot->owner[sc];
    const uint64_t *value = (const uint64_t *)stats;
    uint64_t any = 0;
    for (size_t i = 0; i < sizeof *stats / sizeof *value; i++) {
        any |= value[i];
    }
    return any != 0;
}
