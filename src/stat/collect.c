/* SPDX-License-Identifier: MIT
 *
 * Merges what the layers counted into one snapshot. Reads other threads' fields as estimates. */
#include "base/knobs.h"
#include "front/tcache.h"
#include "large/large.h"
#include "stat/stat.h"

#include <string.h>

static void collect_slab(hak_snapshot_t *snapshot, const hak_slab_t *slab, unsigned sc) {
    hak_class_stats_t *stats = &snapshot->sc[sc];
    uint64_t carved = hak_owner_load(&slab->carved);
    uint64_t free = hak_owner_load(&slab->free_count);
    free = free > carved ? carved : free; /* caught in between */
    stats->slabs++;
    stats->carved += carved;
    stats->free += free;
    snapshot->in_use_bytes += (carved - free) * hak_sc_info[sc].bytes;
    snapshot->slab_free_bytes += free * hak_sc_info[sc].bytes;
}

static void collect_superslab(hak_superslab_t *superslab, void *context) {
    hak_snapshot_t *snapshot = context;
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS; unit++) {
        const char *address = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
        uint32_t entry = hak_pagemap_get(hak_pagemap_base(), address);
        uint32_t low = entry & HAK_KIND_MASK;
        if ((superslab->free_units >> unit & 1) != 0) {
            continue;
        }
        if (hak_slab_is_entry(entry)) {
            if (hak_owner_load(&superslab->back[unit]) == 0) {
                const hak_slab_t *slab = (const hak_slab_t *)&superslab->unit[unit];
                collect_slab(snapshot, slab, hak_sc_of_entry(entry));
            }
        } else if (low == HAK_KIND_LARGE || low == HAK_KIND_LARGE_BODY) {
            snapshot->large_bytes += HAK_UNIT_BYTES;
            snapshot->large_count += low == HAK_KIND_LARGE;
        }
    }
}

static void collect_events(hak_snapshot_t *snapshot, const hak_tcache_counters_t *counters) {
    const uint64_t *from = (const uint64_t *)counters;
    uint64_t *to = (uint64_t *)&snapshot->events;
    for (size_t i = 0; i < sizeof snapshot->events / sizeof *to; i++) {
        to[i] += hak_owner_load(&from[i]);
    }
}

static void collect_owner(hak_owner_t *owner, void *context) {
    collect_events(context, &owner->counters);
}

static void collect_tcache(hak_tcache_t *tcache, void *context) {
    hak_snapshot_t *snapshot = context;
    collect_events(snapshot, &tcache->counters);
    snapshot->thread_count += tcache->tag != 0;
}

void hak_stat_collect(hak_snapshot_t *snapshot) {
    hak_span_stats_t span;
    hak_large_stats_t large;
    memset(snapshot, 0, sizeof *snapshot);
    hak_tcache_visit(collect_tcache, snapshot);
    hak_owner_visit(collect_owner, snapshot);
    hak_span_visit(collect_superslab, snapshot);
    hak_span_stats(&span);
    hak_large_stats(&large);
    const uint64_t *from = (const uint64_t *)&hak_counters;
    uint64_t *to = (uint64_t *)&snapshot->process;
    for (size_t i = 0; i < sizeof snapshot->process / sizeof *to; i++) {
        to[i] = hak_load_relaxed(&from[i]);
    }
    snapshot->cache_bytes = hak_budget_drawn_bytes();
    snapshot->cache_budget_bytes = hak_budget_bytes();
    snapshot->limit_bytes = hak_load_relaxed(&hak_knobs.limit_bytes);
    snapshot->is_tight = hak_load_relaxed(&hak_knobs.is_tight);
    snapshot->superslab_count = span.superslab_count;
    snapshot->unused_dirty_bytes = span.unused_dirty_bytes;
    snapshot->meta_bytes = span.meta_bytes;
    snapshot->huge_bytes = large.huge_in_use_bytes;
    snapshot->huge_count = large.huge_count;
    snapshot->huge_cached_bytes = large.huge_cached_bytes;
    snapshot->mapped_bytes = span.mapped_bytes + large.huge_in_use_bytes + large.huge_cached_bytes;
    snapshot->in_use_bytes += snapshot->large_bytes + snapshot->huge_bytes;
}
