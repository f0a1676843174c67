/* SPDX-License-Identifier: MIT
 *
 * The common part of reports: gathers the figures, and writes texts in pieces of whole lines. */
#include "stat/report.h"

#include "base/version.h"
#include "os/optional.h"

#include <string.h>

/* --- figures ---------------------------------------------------------------------------------- */

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
#define FIGURE_SPAN(name, text) FIGURE_EVENT(hak_snapshot_t, spans.name, name, text)
#define FIGURE_PROCESS(name, text) FIGURE_EVENT(hak_snapshot_t, process.name, name, text)

const hak_figure_t hak_figures[] = {
    HAK_STAT_BYTES(FIGURE_BYTES) HAK_STAT_COUNTS(FIGURE_COUNT) HAK_STAT_LIMITS(FIGURE_LIMIT)
        HAK_TCACHE_COUNTERS(FIGURE_TCACHE) HAK_SPAN_COUNTERS(FIGURE_SPAN)
            HAK_PROCESS_COUNTERS(FIGURE_PROCESS){0},
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

/* --- pieces ----------------------------------------------------------------------------------- */

typedef struct report_buffer {
    const hak_sink_t *sink;
    size_t length;
    char data[1024];
} report_buffer_t;

static void buffer_flush(report_buffer_t *buffer, size_t length) {
    buffer->sink->put(buffer->sink->context, buffer->data, length);
    buffer->length -= length;
    memmove(buffer->data, buffer->data + length, buffer->length);
}

/* Writes the whole lines of a full buffer, so that other output comes between lines only. */
static void buffer_make_room(report_buffer_t *buffer) {
    size_t length = buffer->length;
    while (length != 0 && buffer->data[length - 1] != '\n') {
        length--;
    }
    buffer_flush(buffer, length != 0 ? length : buffer->length);
}

static void buffer_put(void *context, const char *data, size_t length) {
    report_buffer_t *buffer = context;
    while (length != 0) {
        size_t room = sizeof buffer->data - buffer->length;
        size_t part = length < room ? length : room;
        memcpy(buffer->data + buffer->length, data, part);
        buffer->length += part;
        data += part;
        length -= part;
        if (buffer->length == sizeof buffer->data) {
            buffer_make_room(buffer);
        }
    }
}

/* --- reports ---------------------------------------------------------------------------------- */

enum { REPORT_SCHEMA = 1 };

void hak_report_head(const hak_sink_t *sink) {
    char command[HAK_OS_COMMAND_BYTES];
    hak_sink_format(sink, "{\"hakmem\":\"" HAK_VERSION_TEXT "\",\"schema\":%u,\"pid\":%u",
                    (unsigned)REPORT_SCHEMA, hak_os_process_id());
    hak_os_command(command);
    if (command[0] != '\0') {
        hak_sink_format(sink, ",\"command\":");
        hak_sink_quoted(sink, command);
    }
}

/* Leaves out characters that control a terminal. */
void hak_write_head(const hak_sink_t *sink) {
    char command[HAK_OS_COMMAND_BYTES];
    hak_os_command(command);
    for (char *at = command; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            *at = '?';
        }
    }
    hak_sink_format(sink, "hakmem: " HAK_VERSION_TEXT ", process %u", hak_os_process_id());
    hak_sink_format(sink, command[0] != '\0' ? " (%s)\n" : "\n", command);
}

typedef struct report_order {
    hak_report_t report;
    const hak_sink_t *sink;
} report_order_t;

/* All reports but the map, which needs no snapshot. */
static void write_figures(const hak_sink_t *lines, hak_report_t report,
                          const hak_snapshot_t *snapshot) {
    static hak_write_t *const writers[] = {
        [HAK_REPORT_TEXT] = hak_write_text,
        [HAK_REPORT_XML] = hak_write_xml,
        [HAK_REPORT_JSON] = hak_write_json,
        [HAK_REPORT_METRICS] = hak_write_metrics,
        [HAK_REPORT_SUMMARY] = hak_write_summary,
        [HAK_REPORT_EXPLAIN] = hak_write_explain,
        [HAK_REPORT_EXPLAIN_JSON] = hak_write_explain_json,
    };
    hak_thread_list_t threads = {0};
    if (report != HAK_REPORT_XML && report != HAK_REPORT_METRICS && report != HAK_REPORT_SUMMARY) {
        hak_stat_threads(&threads);
    }
    writers[report](lines, snapshot, &threads);
    hak_stat_threads_done(&threads);
}

static void report_write(void *context, const hak_snapshot_t *snapshot) {
    const report_order_t *order = context;
    report_buffer_t buffer = {.sink = order->sink};
    const hak_sink_t lines = {.put = buffer_put, .context = &buffer};
    if (order->report == HAK_REPORT_MAP) {
        hak_write_map(&lines);
    } else {
        write_figures(&lines, order->report, snapshot);
    }
    buffer_flush(&buffer, buffer.length);
}

void hak_stat_report(hak_report_t report, const hak_sink_t *sink) {
    report_order_t order = {.report = report, .sink = sink};
    if (report == HAK_REPORT_MAP) {
        report_write(&order, NULL);
    } else {
        hak_stat_use(report_write, &order);
    }
}

static void put_descriptor(void *fd, const char *data, size_t length) {
    hak_os_write(*(int *)fd, data, length);
}

void hak_stat_print(hak_report_t report, int fd) {
    const hak_sink_t sink = {.put = put_descriptor, .context = &fd};
    hak_stat_report(report, &sink);
}
