/* SPDX-License-Identifier: MIT
 *
 * Merges the figures of all layers into one snapshot. Blocks held by threads and owners are read
 * first, then superslab by superslab. While other threads work these are not of one moment, nor is
 * each: a unit that was free in its word may be read as a slab, and count as both. */
#include "front/abandoned.h"
#include "large/large.h"
#include "os/os.h"
#include "slab/remote.h"
#include "stat/inventory.h"
#include "stat/stat.h"

#include <string.h>

static void collect_bin(hak_class_stats_t *stats, const hak_tcache_view_t *view, unsigned sc,
                        bool is_lost) {
    if (is_lost) {
        stats->lost += view->cached[sc] + view->quarantine[sc];
    } else {
        stats->cached += view->cached[sc];
        stats->quarantine += view->quarantine[sc];
    }
}

static bool collect_tcache(hak_tcache_t *tcache, void *context) {
    hak_snapshot_t *snapshot = context;
    hak_tcache_view_t view;
    hak_tcache_read(tcache, &view);
    snapshot->tcache_count += view.first_entry != 0;
    /* threads are counted by their first one */
    snapshot->thread_count +=
        tcache->is_attached && hak_tcache_partition(tcache) != HAK_PARTITION_PLAIN;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        collect_bin(&snapshot->sc[sc], &view, sc, hak_tcache_is_left(tcache));
    }
    return true;
}

/* --- superslabs ------------------------------------------------------------------------------- */

typedef struct superslab_work {
    hak_snapshot_t *snapshot;
    unsigned used; /* units in slabs and large blocks */
} superslab_work_t;

static void collect_piece(void *context, const hak_range_t *range, const hak_piece_t *piece) {
    superslab_work_t *work = context;
    hak_snapshot_t *snapshot = work->snapshot;
    hak_class_stats_t *stats = &snapshot->sc[piece->sc];
    if (piece->kind == HAK_PIECE_SLAB) {
        size_t remote = hak_remote_waiting(range->superslab, piece->unit);
        stats->slabs++;
        stats->blocks += piece->carved;
        stats->free += piece->free;
        stats->remote += hak_least(remote, piece->carved - piece->free);
        work->used += piece->units;
    } else if (piece->kind == HAK_PIECE_LARGE) {
        snapshot->large_bytes += (size_t)piece->units * HAK_UNIT_BYTES;
        snapshot->large_count++;
        work->used += piece->units;
    }
}

/* Units that are neither free nor in a slab or a large block count as moving. */
static void collect_superslab(hak_superslab_t *superslab, void *context) {
    superslab_work_t work = {.snapshot = context};
    const hak_range_t range = hak_inventory_superslab(superslab);
    if (range.free_units != ~0ull) {
        hak_inventory_pieces(&range, collect_piece, &work);
    }
    uint64_t free = range.free_units, clean = free & range.clean_units;
    size_t moving = hak_popcount(~free) - hak_least(hak_popcount(~free), work.used);
    work.snapshot->superslab_count++;
    work.snapshot->moving_bytes += moving * HAK_UNIT_BYTES;
    work.snapshot->unused_clean_bytes += (size_t)hak_popcount(clean) * HAK_UNIT_BYTES;
    work.snapshot->unused_dirty_bytes += (size_t)hak_popcount(free & ~clean) * HAK_UNIT_BYTES;
}

/* --- all -------------------------------------------------------------------------------------- */

void hak_stat_collect(hak_snapshot_t *snapshot) {
    hak_span_stats_t span;
    hak_large_stats_t large;
    memset(snapshot, 0, sizeof *snapshot);
    hak_tcache_visit(collect_tcache, snapshot);
    hak_span_visit(collect_superslab, snapshot);
    hak_span_stats(&span);
    hak_large_stats(&large);
    uint64_t sampled = hak_load_relaxed(&hak_counters.guard_sample);
    uint64_t freed = hak_load_relaxed(&hak_counters.guard_free); /* read after the other */
    snapshot->guard_bytes = hak_excess(sampled, freed) * hak_os_page_bytes();
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        snapshot->sc[sc].lost += hak_load_relaxed(&hak_tcache_lost[sc]);
    }
    snapshot->hole_bytes = hak_load_relaxed(&hak_span_purged_bytes);
    snapshot->meta_bytes = span.meta_bytes;
    snapshot->huge_bytes = large.huge_in_use_bytes;
    snapshot->huge_count = large.huge_count;
    snapshot->huge_cached_bytes = large.huge_cached_bytes;
    snapshot->huge_cached_dirty_bytes = large.huge_cached_dirty_bytes;
    hak_stat_sum(snapshot);
}

/* Takes the page faults now, not under a lock that others wait for. */
void *hak_stat_map(size_t *bytes) {
    size_t page = hak_os_page_bytes();
    *bytes = hak_align_up(*bytes, page);
    char *base = hak_os_map(*bytes, page);
    for (size_t at = 0; base != NULL && at < *bytes; at += page) {
        *(volatile char *)(base + at) = 0;
    }
    return base;
}

static HAK_NOINLINE void use_on_stack(hak_stat_use_t *use, void *context) {
    hak_snapshot_t snapshot;
    hak_stat_collect(&snapshot);
    use(context, &snapshot);
}

void hak_stat_use(hak_stat_use_t *use, void *context) {
    size_t bytes = sizeof(hak_snapshot_t);
    hak_snapshot_t *snapshot = hak_stat_map(&bytes);
    if (snapshot == NULL) {
        use_on_stack(use, context);
        return;
    }
    hak_stat_collect(snapshot);
    use(context, snapshot);
    hak_os_unmap(snapshot, bytes);
}
