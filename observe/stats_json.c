/* SPDX-License-Identifier: MIT
 *
 * JSON, as in docs/schema/stats.schema.json. Each member begins with the comma after the previous
 * one; `comma` is "" before the first. */
#include "write.h"

typedef struct json {
    const hak_sink_t *sink;
    const char *comma;
} json_t;

static void json_member(json_t *json, const char *key, uint64_t value) {
    hak_sink_format(json->sink, "%s\"%s\":%l", json->comma, key, value);
    json->comma = ",";
}

static void json_open(json_t *json, const char *text) {
    hak_sink_format(json->sink, "%s%s", json->comma, text);
    json->comma = "";
}

static void json_close(json_t *json, const char *text) {
    hak_sink_format(json->sink, "%s", text);
    json->comma = ",";
}

/* All figures of a record; `before` stands in front of the key of an object. */
static void json_figures(json_t *json, const obs_figure_t *figure, const void *record,
                         const char *before) {
    static const char titles[][8] = {"", "bytes", "counts", "limits", "events"};
    for (obs_figure_group_t group = OBS_FIGURE_BLOCKS; figure->name[0] != '\0'; figure++) {
        if (group != figure->group) {
            if (group != OBS_FIGURE_BLOCKS) {
                json_close(json, "}");
            }
            group = figure->group;
            hak_sink_format(json->sink, "%s%s\"%s\":{", json->comma, before, titles[group]);
            json->comma = "";
        }
        json_member(json, figure->key, obs_figure_value(figure, record));
    }
    json_close(json, "}");
}

#define JSON_THREAD(name, text) json_member(json, #name, thread->own.name);
#define JSON_THREAD_BIN(name, text) json_member(json, #name, thread->bin.name);

static void json_thread(json_t *json, const obs_thread_stats_t *thread) {
    json_open(json, "\n{");
    json_member(json, "id", thread->id);
    json_open(json, thread->is_attached ? "\"attached\":true" : "\"attached\":false");
    json->comma = ",";
    json_member(json, "owner", thread->owner);
    json_member(json, "cached_bytes", thread->cached_bytes);
    json_member(json, "drawn_bytes", thread->drawn_bytes);
    json_member(json, "idle_ms", thread->idle_ms);
    json_open(json, "\"events\":{");
    HAK_BIN_COUNTERS(JSON_THREAD_BIN)
    HAK_THREAD_COUNTERS(JSON_THREAD)
    json_close(json, "}}");
}

void obs_write_stats_json(const hak_sink_t *sink, const obs_snapshot_t *snapshot) {
    json_t json = {.sink = sink, .comma = ","};
    obs_class_stats_t stats;
    obs_report_head(sink);
    json_figures(&json, obs_figures, snapshot, "\n");
    json_open(&json, "\n\"classes\":[");
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        if (obs_class_read(snapshot, sc, &stats)) {
            json_open(&json, "\n{");
            json_member(&json, "bytes", hak_sc_info[sc].bytes);
            json_figures(&json, obs_class_figures, &stats, "");
            json_close(&json, "}");
        }
    }
    json_close(&json, "]");
    json_open(&json, "\n\"threads\":[");
    for (size_t i = 0; i < obs_threads.count; i++) {
        json_thread(&json, &obs_threads.thread[i]);
    }
    json_close(&json, "]}\n");
}
