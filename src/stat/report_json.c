/* SPDX-License-Identifier: MIT
 *
 * JSON, as in docs/schema/stats.schema.json. Each member begins with the comma after the previous
 * one; `comma` is "" before the first. */
#include "stat/report.h"

typedef struct json {
    const hak_sink_t *sink;
    const char *comma;
    unsigned group; /* group in progress + 1 */
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

static void json_figure(void *context, const hak_figure_t *figure) {
    static const char titles[][16] = {"\n\"bytes\":{", "\n\"counts\":{", "\n\"limits\":{",
                                      "\n\"events\":{"};
    json_t *json = context;
    if (json->group != figure->group + 1) {
        if (json->group != 0) {
            json_close(json, "}");
        }
        json->group = figure->group + 1;
        json_open(json, titles[figure->group]);
    }
    json_member(json, figure->key, figure->value);
}

#define JSON_BLOCKS(name, text) json_member(json, #name, stats->name);
#define JSON_BIN(name, text) json_member(json, #name, stats->bin.name);
#define JSON_CLASS(name, text) json_member(json, #name, stats->owner.name);

static void json_class(json_t *json, const hak_class_stats_t *stats, unsigned sc) {
    json_open(json, "\n{");
    json_member(json, "bytes", hak_sc_info[sc].bytes);
    HAK_STAT_BLOCKS(JSON_BLOCKS)
    json_open(json, "\"events\":{");
    HAK_BIN_COUNTERS(JSON_BIN)
    HAK_CLASS_COUNTERS(JSON_CLASS)
    json_close(json, "}}");
}

#define JSON_THREAD(name, text) json_member(json, #name, thread->own.name);
#define JSON_THREAD_BIN(name, text) json_member(json, #name, thread->bin.name);

static void json_thread(json_t *json, const hak_thread_stats_t *thread) {
    json_open(json, "\n{");
    json_member(json, "id", thread->id);
    json_open(json, thread->is_attached ? "\"attached\":true" : "\"attached\":false");
    json->comma = ",";
    json_member(json, "owner", thread->owner);
    json_member(json, "cached_bytes", thread->cached_bytes);
    json_member(json, "outbox_bytes", thread->outbox_bytes);
    json_member(json, "drawn_bytes", thread->drawn_bytes);
    json_member(json, "idle_ms", thread->idle_ms);
    json_open(json, "\"events\":{");
    HAK_BIN_COUNTERS(JSON_THREAD_BIN)
    HAK_THREAD_COUNTERS(JSON_THREAD)
    json_close(json, "}}");
}

void hak_write_json(const hak_sink_t *sink, const hak_snapshot_t *snapshot,
                    const hak_thread_list_t *threads) {
    json_t json = {.sink = sink, .comma = ","};
    hak_report_head(sink);
    hak_stat_figures(snapshot, json_figure, &json);
    json_close(&json, "}");
    json_open(&json, "\n\"classes\":[");
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        if (hak_stat_has_class(&snapshot->sc[sc])) {
            json_class(&json, &snapshot->sc[sc], sc);
        }
    }
    json_close(&json, "]");
    json_open(&json, "\n\"threads\":[");
    for (size_t i = 0; i < threads->count; i++) {
        json_thread(&json, &threads->thread[i]);
    }
    json_close(&json, "]}\n");
}
