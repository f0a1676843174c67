/* SPDX-License-Identifier: MIT
 *
 * The short report at exit: five lines. */
#include "base/knobs.h"
#include "os/optional.h"
#include "stat/report.h"

typedef struct summary_size {
    char text[24];
} summary_size_t;

static const char *sized(summary_size_t *size, uint64_t bytes) {
    hak_text_t text;
    hak_text_init(&text, size->text, sizeof size->text - 1);
    hak_put_size(&text, bytes);
    size->text[text.length] = '\0';
    return size->text;
}

static void summary_resident(const hak_sink_t *sink, uint64_t meta_bytes) {
    summary_size_t now, peak, tables;
    uint64_t rss = hak_os_resident_all();
    if (rss == 0) {
        hak_sink_format(sink, "hakmem: RSS is not known; the allocator's tables take %s\n",
                        sized(&tables, meta_bytes));
        return;
    }
    hak_sink_format(sink,
                    "hakmem: RSS is %s, %s at its peak, memory of others than the allocator "
                    "included; the allocator's tables take %s\n",
                    sized(&now, rss), sized(&peak, hak_os_resident_peak()),
                    sized(&tables, meta_bytes));
}

void hak_write_summary(const hak_sink_t *sink, const hak_snapshot_t *s,
                       const hak_thread_list_t *threads) {
    (void)threads;
    summary_size_t size[4];
    uint64_t large = s->large_bytes + s->huge_bytes;
    uint64_t caches = s->cached_bytes + s->outbox_bytes + s->remote_bytes + s->quarantine_bytes;
    uint64_t kept = s->unused_dirty_bytes + s->huge_cached_dirty_bytes;
    uint64_t slabs = s->slab_free_bytes + s->lost_bytes;
    hak_write_head(sink);
    if (hak_load_relaxed(&hak_knobs.force_libc)) {
        hak_sink_format(sink, "hakmem: " HAK_FORCED_NOTE "\n");
    }
    hak_sink_format(sink,
                    "hakmem: the program holds %s: %s in small blocks, %s in large and huge ones\n",
                    sized(&size[0], s->live_bytes + large), sized(&size[1], s->live_bytes),
                    sized(&size[2], large));
    hak_sink_format(sink,
                    "hakmem: %s are free: %s in caches of threads, %s in slabs, %s kept for "
                    "reuse\n",
                    sized(&size[0], caches + slabs + kept), sized(&size[1], caches),
                    sized(&size[2], slabs), sized(&size[3], kept));
    summary_resident(sink, s->meta_bytes);
    hak_sink_format(sink,
                    "hakmem: %l large and huge blocks were asked for, %l superslabs mapped, %l "
                    "times memory given back; more: report:stats, report:explain\n",
                    s->events.large_alloc, s->process.superslab_map,
                    s->process.purge_calls + s->process.huge_unmap + s->process.superslab_unmap);
}
