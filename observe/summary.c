/* SPDX-License-Identifier: MIT
 *
 * The short report at exit: five lines. The last is the largest cause of RSS, and what lowers it.
 */
#include "put.h"
#include "write.h"

void obs_write_summary(const hak_sink_t *sink, const obs_snapshot_t *s) {
    uint64_t large = s->large_bytes + s->huge_bytes, rss = obs_current->reader->resident_bytes;
    uint64_t caches = s->cached_bytes + s->remote_bytes + s->quarantine_bytes;
    uint64_t kept = s->unused_dirty_bytes + s->huge_cached_dirty_bytes;
    uint64_t slabs = s->slab_free_bytes + s->lost_bytes;
    obs_write_head(sink);
    if (obs_current->knobs.force_libc != 0) {
        hak_sink_format(sink, "hakmem: " OBS_FORCED_NOTE "\n");
    }
    hak_sink_format(sink,
                    "hakmem: the program holds %s: %s in small blocks, %s in large and huge ones\n",
                    OBS_SIZE(s->live_bytes + large), OBS_SIZE(s->live_bytes), OBS_SIZE(large));
    hak_sink_format(sink,
                    "hakmem: %s are free: %s in caches of threads, %s in slabs, %s kept for "
                    "reuse\n",
                    OBS_SIZE(caches + slabs + kept), OBS_SIZE(caches), OBS_SIZE(slabs),
                    OBS_SIZE(kept));
    if (rss == 0) {
        hak_sink_format(sink, "hakmem: RSS is not known; the allocator's tables take %s\n",
                        OBS_SIZE(s->meta_bytes));
    } else {
        hak_sink_format(sink,
                        "hakmem: RSS is %s, %s at its peak, memory of others than the allocator "
                        "included; the allocator's tables take %s\n",
                        OBS_SIZE(rss), OBS_SIZE(obs_process_peak(obs_current->reader)),
                        OBS_SIZE(s->meta_bytes));
    }
    obs_write_cause(sink, s);
}
