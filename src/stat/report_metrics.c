/* SPDX-License-Identifier: MIT
 *
 * Metrics in the text format 0.0.4 of Prometheus. Metrics of classes have the label `class` and
 * names of their own, so that no sum counts anything twice. */
#include "base/version.h"
#include "os/optional.h"
#include "stat/report.h"

static void metric_head(const hak_sink_t *sink, const char *prefix, const char *name,
                        const char *type, const char *text) {
    hak_sink_format(sink, "# HELP hakmem_%s%s %s\n", prefix, name, text);
    hak_sink_format(sink, "# TYPE hakmem_%s%s %s\n", prefix, name, type);
}

static void metric_figure(void *sink, const hak_figure_t *figure) {
    const char *type = figure->group == HAK_FIGURE_EVENTS ? "counter" : "gauge";
    metric_head(sink, "", figure->metric, type, figure->text);
    hak_sink_format(sink, "hakmem_%s %l\n", figure->metric, figure->value);
}

/* `offset` is the figure's offset in the statistics of a class. */
static void metric_class(const hak_sink_t *sink, const hak_snapshot_t *snapshot, const char *name,
                         const char *type, const char *text, size_t offset) {
    metric_head(sink, "class_", name, type, text);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_class_stats_t *stats = &snapshot->sc[sc];
        if (hak_stat_has_class(stats)) {
            hak_sink_format(sink, "hakmem_class_%s{class=\"%u\"} %l\n", name, hak_sc_info[sc].bytes,
                            *(const uint64_t *)((const char *)stats + offset));
        }
    }
}

#define METRIC_BLOCKS(name, text)                                                                  \
    metric_class(sink, snapshot, #name, "gauge", text, offsetof(hak_class_stats_t, name));
#define METRIC_EVENT(name, text, field)                                                            \
    metric_class(sink, snapshot, #name "_total", "counter", text,                                  \
                 offsetof(hak_class_stats_t, field));
#define METRIC_BIN(name, text) METRIC_EVENT(name, text, bin.name)
#define METRIC_CLASS(name, text) METRIC_EVENT(name, text, owner.name)

/* Figures of the process, for comparison. */
static void metric_process(const hak_sink_t *sink) {
    uint64_t resident = hak_os_resident_all();
    metric_head(sink, "", "info", "gauge", "version of the library");
    hak_sink_format(sink, "hakmem_info{version=\"" HAK_VERSION_TEXT "\"} 1\n");
    if (resident != 0) {
        metric_head(sink, "", "rss_bytes", "gauge", "resident memory of the process, roughly");
        hak_sink_format(sink, "hakmem_rss_bytes %l\n", resident);
    }
}

void hak_write_metrics(const hak_sink_t *sink, const hak_snapshot_t *snapshot,
                       const hak_thread_list_t *threads) {
    (void)threads;
    metric_process(sink);
    hak_stat_figures(snapshot, metric_figure, (void *)(uintptr_t)sink);
    HAK_STAT_BLOCKS(METRIC_BLOCKS)
    HAK_BIN_COUNTERS(METRIC_BIN)
    HAK_CLASS_COUNTERS(METRIC_CLASS)
}
