/* SPDX-License-Identifier: MIT
 *
 * Metrics in the text format 0.0.4 of Prometheus. Metrics of classes have the label `class`,
 * and names of their own, so that no sum counts twice. */
#include "write.h"

static void metric_head(const hak_sink_t *sink, const char *prefix, const char *name,
                        bool is_counter, const char *text) {
    hak_sink_format(sink, "# HELP hakmem_%s%s %s\n", prefix, name, text);
    hak_sink_format(sink, "# TYPE hakmem_%s%s %s\n", prefix, name,
                    is_counter ? "counter" : "gauge");
}

static void metric_class(const hak_sink_t *sink, const obs_snapshot_t *snapshot,
                         const obs_figure_t *figure) {
    obs_class_stats_t stats;
    metric_head(sink, "class_", figure->metric, figure->group == OBS_FIGURE_EVENTS, figure->text);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        if (obs_class_read(snapshot, sc, &stats)) {
            hak_sink_format(sink, "hakmem_class_%s{class=\"%u\"} %l\n", figure->metric,
                            hak_sc_info[sc].bytes, obs_figure_value(figure, &stats));
        }
    }
}

/* Figures of the process, for comparison. */
static void metric_process(const hak_sink_t *sink, const char *version) {
    uint64_t resident = obs_current->reader->resident_bytes;
    metric_head(sink, "", "info", false, "version of the library");
    hak_sink_format(sink, "hakmem_info{version=\"%s\"} 1\n", version);
    if (resident != 0) {
        metric_head(sink, "", "rss_bytes", false, "resident memory of the process, roughly");
        hak_sink_format(sink, "hakmem_rss_bytes %l\n", resident);
    }
}

void obs_write_metrics(const hak_sink_t *sink, const obs_snapshot_t *snapshot) {
    metric_process(sink, obs_current->library);
    for (const obs_figure_t *figure = obs_figures; figure->name[0] != '\0'; figure++) {
        metric_head(sink, "", figure->metric, figure->group == OBS_FIGURE_EVENTS, figure->text);
        hak_sink_format(sink, "hakmem_%s %l\n", figure->metric, obs_figure_value(figure, snapshot));
    }
    for (const obs_figure_t *figure = obs_class_figures; figure->name[0] != '\0'; figure++) {
        metric_class(sink, snapshot, figure);
    }
}
