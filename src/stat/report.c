/* SPDX-License-Identifier: MIT
 *
 * The common part of reports: gathers the figures, and writes texts in pieces of whole lines. */
#include "stat/report.h"

#include "base/version.h"
#include "os/optional.h"

#include <string.h>

/* --- reports ---------------------------------------------------------------------------------- */

enum { REPORT_SCHEMA = 1, REPORT_PIECE_BYTES = 1024 };

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

typedef struct report_writer {
    hak_write_t *write;
    bool has_threads; /* shows them one by one */
} report_writer_t;

static void report_put(void *text, const char *data, size_t length) {
    hak_text_mem(text, data, length);
}

static void report_write(void *context, hak_snapshot_t *snapshot) {
    static const report_writer_t writers[] = {
        [HAK_REPORT_TEXT] = {hak_write_text, true},
        [HAK_REPORT_XML] = {hak_write_xml, false},
        [HAK_REPORT_JSON] = {hak_write_json, true},
        [HAK_REPORT_METRICS] = {hak_write_metrics, false},
        [HAK_REPORT_SUMMARY] = {hak_write_summary, false},
        [HAK_REPORT_EXPLAIN] = {hak_write_explain, true},
        [HAK_REPORT_EXPLAIN_JSON] = {hak_write_explain_json, true},
        [HAK_REPORT_MAP] = {hak_write_map, false},
    };
    const report_order_t *order = context;
    const report_writer_t *writer = &writers[order->report];
    HAK_TEXT(text, REPORT_PIECE_BYTES);
    const hak_sink_t lines = {.put = report_put, .context = &text};
    text.sink = order->sink;
    if (writer->has_threads) {
        hak_stat_threads(&snapshot->threads);
    }
    writer->write(&lines, snapshot);
    hak_text_flush(&text);
    if (writer->has_threads) {
        hak_stat_threads_done(&snapshot->threads);
    }
}

void hak_stat_report(hak_report_t report, const hak_sink_t *sink) {
    report_order_t order = {.report = report, .sink = sink};
    if (report == HAK_REPORT_MAP) {
        report_write(&order, NULL); /* the map needs no snapshot */
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
