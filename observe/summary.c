/* SPDX-License-Identifier: MIT
 *
 * The short report at exit: five lines. The last is the largest cause of RSS, and what lowers it.
 */
#include "write.h"

void obs_write_summary(const hak_sink_t *sink, const hak_snapshot_t *s) {
    uint64_t large = s->large_bytes + s->huge_bytes, rss = obs_current->reader->resident_bytes;
    uint64_t caches = s->cached_bytes + s->remote_bytes + s->quarantine_bytes;
    uint64_t kept = s->unused_dirty_bytes + s->huge_cached_dirty_bytes;
    uint64_t slabs = s->slab_free_bytes + s->lost_bytes;
    obs_write_head(sink);
    if (obs_current->knobs.force_libc != 0) {
        hak_sink_format(sink, "hakmem: " OBS_FORCED_NOTE "\n");
    }
    hak_sink_format(sink,
                    "hakmem: the program holds %b: %b in small blocks, %b in large and huge ones\n",
                    s->live_bytes + large, s->live_bytes, large);
    hak_sink_format(sink,
                    "hakmem: %b are free: %b in caches of threads, %b in slabs, %b kept for "
                    "reuse\n",
                    caches + slabs + kept, caches, slabs, kept);
    if (rss == 0) {
        hak_sink_format(sink, "hakmem: RSS is not known; the allocator's tables take %b\n",
                        s->meta_bytes);
    } else {
        hak_sink_format(sink,
                        "hakmem: RSS is %b, %b at its peak, memory of others than the allocator "
                        "included; the allocator's tables take %b\n",
                        rss, obs_process_peak(obs_current->reader), s->meta_bytes);
    }
    obs_write_cause(sink, s);
}
