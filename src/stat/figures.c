/* SPDX-License-Identifier: MIT */
#include "stat/figures.h"

#include "base/bits.h"
#include "reclaim/learner.h"

#define FIGURE(group, record, field, name, key, metric, text)                                      \
    {HAK_FIGURE_##group, offsetof(record, field), name, key, metric, text},
#define FIGURE_BYTES(name, text)                                                                   \
    FIGURE(BYTES, hak_snapshot_t, name##_bytes, #name "_bytes", #name, #name "_bytes", text)
#define FIGURE_COUNT(name, key, metric, text)                                                      \
    FIGURE(COUNTS, hak_snapshot_t, name, #name, #key, #metric, text)
#define FIGURE_LIMIT(name, text) FIGURE(LIMITS, hak_snapshot_t, name, #name, #name, #name, text)
#define FIGURE_EVENT(record, field, name, text)                                                    \
    FIGURE(EVENTS, record, field, #name, #name, #name "_total", text)
#define FIGURE_TCACHE(name, text) FIGURE_EVENT(hak_snapshot_t, events.name, name, text)
#define FIGURE_PROCESS(name, text) FIGURE_EVENT(hak_snapshot_t, process.name, name, text)

const hak_figure_t hak_figures[] = {
    HAK_STAT_BYTES(FIGURE_BYTES) HAK_STAT_COUNTS(FIGURE_COUNT) HAK_STAT_LIMITS(FIGURE_LIMIT)
        HAK_TCACHE_COUNTERS(FIGURE_TCACHE) HAK_PROCESS_COUNTERS(FIGURE_PROCESS){0},
};

#define CLASS_BLOCKS(name, text) FIGURE(BLOCKS, hak_class_stats_t, name, #name, #name, #name, text)
#define CLASS_BIN(name, text) FIGURE_EVENT(hak_class_stats_t, bin.name, name, text)
#define CLASS_OWNER(name, text) FIGURE_EVENT(hak_class_stats_t, owner.name, name, text)

const hak_figure_t hak_class_figures[] = {
    HAK_STAT_BLOCKS(CLASS_BLOCKS) HAK_BIN_COUNTERS(CLASS_BIN) HAK_CLASS_COUNTERS(CLASS_OWNER){0},
};

bool hak_stat_has_class(const hak_class_stats_t *stats) {
    const uint64_t *value = (const uint64_t *)stats;
    uint64_t any = 0;
    for (size_t i = 0; i < sizeof *stats / sizeof *value; i++) {
        any |= value[i];
    }
    return any != 0;
}

static void sum_class(hak_snapshot_t *snapshot, unsigned sc) {
    const hak_sc_info_t *info = &hak_sc_info[sc];
    hak_class_stats_t *stats = &snapshot->sc[sc];
    uint64_t used = stats->blocks - stats->free;
    uint64_t idle = stats->cached + stats->remote + stats->quarantine + stats->lost;
    size_t bytes = info->bytes;
    stats->live = used > idle ? used - idle : 0; /* counted twice on its way */
#define SUM_BYTES(name) snapshot->name##_bytes += stats->name * bytes;
    SUM_BYTES(live)
    SUM_BYTES(cached)
    SUM_BYTES(remote)
    SUM_BYTES(quarantine)
    SUM_BYTES(lost)
    snapshot->in_use_bytes += used * bytes;
    snapshot->slab_free_bytes += stats->free * bytes;
    snapshot->uncarved_bytes += (stats->slabs * info->blocks - stats->blocks) * bytes;
    snapshot->slab_tail_bytes +=
        stats->slabs * ((size_t)info->units * HAK_UNIT_BYTES - info->blocks * bytes);
    snapshot->slab_count += stats->slabs;
#define SUM_BIN(name, text) snapshot->events.name += stats->bin.name;
#define SUM_CLASS(name, text) snapshot->events.name += stats->owner.name;
    HAK_BIN_COUNTERS(SUM_BIN)
    HAK_CLASS_COUNTERS(SUM_CLASS)
}

/* 0: the standard rules decide. *saved: bytes a second. */
static uint64_t learned_ms(hak_learner_pool_t pool, uint64_t *saved) {
    hak_learner_view_t view;
    hak_learner_look_at(pool, &view);
    const hak_price_t *own = &view.price[view.strategy],
                      *other = &view.price[HAK_STRATEGY_STANDARD];
    bool decides = view.acts && view.strategy != HAK_STRATEGY_STANDARD;
    uint64_t less = hak_excess(other->taken + other->held, own->taken + own->held);
    *saved = decides ? hak_learner_rate(less) : 0;
    return decides ? HAK_STRATEGY_MS[view.strategy] : 0;
}

void hak_stat_sum(hak_snapshot_t *snapshot) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        sum_class(snapshot, sc);
    }
    snapshot->in_use_bytes += snapshot->large_bytes + snapshot->huge_bytes;
    snapshot->mapped_bytes = snapshot->superslab_count * HAK_SUPERSLAB_BYTES +
                             snapshot->huge_bytes + snapshot->huge_cached_bytes;
    snapshot->keep_units_ms = learned_ms(HAK_LEARNER_UNITS, &snapshot->keep_units_saves_bytes);
    snapshot->keep_huge_ms = learned_ms(HAK_LEARNER_HUGE, &snapshot->keep_huge_saves_bytes);
}
