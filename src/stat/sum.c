/* SPDX-License-Identifier: MIT
 *
 * The figures that are sums of others: the observer makes them of what it reads, too. */
#include "base/bits.h"
#include "stat/stat.h"

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
}

void hak_stat_sum(hak_snapshot_t *snapshot) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        sum_class(snapshot, sc);
    }
    snapshot->in_use_bytes += snapshot->large_bytes + snapshot->huge_bytes;
    snapshot->mapped_bytes = snapshot->superslab_count * HAK_SUPERSLAB_BYTES +
                             snapshot->huge_bytes + snapshot->huge_cached_bytes;
}
