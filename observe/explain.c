/* SPDX-License-Identifier: MIT
 *
 * Why RSS is as high as it is: causes, the largest in words with advice, and the threads whose
 * caches hold most. docs/schema/explain.schema.json is the schema of the JSON. */
#include "put.h"
#include "rss.h"
#include "write.h"

#define OBS_CAUSE(name, title, advice) {#name, title, advice},
static const struct explain_cause {
    const char *name, *title, *advice;
} causes[OBS_CAUSE_COUNT] = {
#include "causes.def"
};
#undef OBS_CAUSE

enum { EXPLAIN_THREADS = 16, EXPLAIN_TEXT = 1536, EXPLAIN_NOTES = 5 };

typedef struct explain {
    obs_rss_t rss;
    const obs_thread_stats_t *thread[EXPLAIN_THREADS]; /* those with most memory, most first */
    unsigned thread_count;
    obs_cause_t order[OBS_CAUSE_COUNT]; /* largest first */
    uint64_t whole;                     /* RSS, or the sum if it is not known */
} explain_t;

/* Inserts a thread among those with most memory. */
static void explain_thread(explain_t *explain, const obs_thread_stats_t *thread) {
    unsigned at = explain->thread_count;
    for (; at > 0 && explain->thread[at - 1]->cached_bytes < thread->cached_bytes; at--) {
        if (at < EXPLAIN_THREADS) {
            explain->thread[at] = explain->thread[at - 1];
        }
    }
    if (at < EXPLAIN_THREADS) {
        explain->thread[at] = thread;
        explain->thread_count += explain->thread_count < EXPLAIN_THREADS;
    }
}

static const explain_t *explain_make(explain_t *explain, const obs_snapshot_t *snapshot) {
    const obs_thread_list_t *threads = &obs_threads;
    explain->thread_count = 0;
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->thread[i].cached_bytes != 0) {
            explain_thread(explain, &threads->thread[i]);
        }
    }
    obs_rss_measure(&explain->rss, snapshot);
    const uint64_t *bytes = explain->rss.bytes;
    for (unsigned cause = 0; cause < OBS_CAUSE_COUNT; cause++) {
        unsigned at = cause;
        for (; at > 0 && bytes[explain->order[at - 1]] < bytes[cause]; at--) {
            explain->order[at] = explain->order[at - 1];
        }
        explain->order[at] = (obs_cause_t)cause;
    }
    uint64_t rss = explain->rss.rss_bytes;
    explain->whole = rss != 0 ? rss : obs_rss_sum(&explain->rss);
    return explain;
}

/* --- in words --------------------------------------------------------------------------------- */

/* In percent of the whole; one decimal below ten. */
static void put_percent(hak_text_t *text, const explain_t *explain, uint64_t bytes) {
    uint64_t whole = explain->whole != 0 ? explain->whole : 1;
    if (bytes == 0 || bytes * 2000 >= whole * 199) {
        hak_text_format(text, "%l", obs_rounded(bytes * 100, whole));
    } else if (bytes * 2000 < whole) {
        hak_text_str(text, "<0.1");
    } else {
        uint64_t tenths = obs_rounded(bytes * 1000, whole);
        hak_text_format(text, "%l.%l", tenths / 10, tenths % 10);
    }
    hak_text_str(text, " %");
}

static void put_part(const explain_t *explain, hak_text_t *text, obs_cause_t cause) {
    uint64_t bytes = explain->rss.bytes[cause];
    const struct obs_cause_class *most = &explain->rss.most[cause];
    hak_text_format(text, "%s (", OBS_SIZE(bytes));
    put_percent(text, explain, bytes);
    hak_text_format(text, "), is %s", causes[cause].title);
    if (most->bytes > bytes / 2 && most->block_bytes != 0) {
        hak_text_format(text, ", most in blocks of %u bytes", most->block_bytes);
    } else if (most->bytes > bytes / 2) {
        hak_text_str(text, ", most above 64 KiB");
    }
}

static const char anonymous_name[] =
    "stacks of threads, or mappings of the program itself (Python's small objects: "
    "PYTHONMALLOC=malloc)";

static void put_others(const obs_rss_t *rss, hak_text_t *text) {
    static const char *const names[OBS_MAPPING_KINDS] = {
        [OBS_MAPPING_FILE] = "files, such as programs and libraries",
        [OBS_MAPPING_SHARED] = "memory shared between processes",
        [OBS_MAPPING_STACK] = "the stack of the first thread",
        [OBS_MAPPING_BREAK] = "the brk heap",
        [OBS_MAPPING_ANONYMOUS] = anonymous_name,
    };
    unsigned most = 0;
    for (unsigned kind = 1; kind < OBS_MAPPING_KINDS; kind++) {
        most = rss->other[kind] > rss->other[most] ? kind : most;
    }
    if (rss->other[most] != 0) {
        hak_text_format(text, ", most of it %s, %s", names[most], OBS_SIZE(rss->other[most]));
    }
}

/* The bytes that malloc_trim would return. */
static void put_returnable(const obs_rss_t *rss, hak_text_t *text, obs_cause_t cause) {
    uint64_t bytes = rss->bytes[cause], returnable = rss->returnable[cause];
    if (returnable == OBS_UNKNOWN) {
        return;
    }
    if (returnable == bytes) {
        hak_text_str(text, " malloc_trim(0) returns it at once.");
        return;
    }
    hak_text_format(text, " Of these %s", OBS_SIZE(bytes));
    if (returnable != 0) {
        hak_text_format(text,
                        " %s are OS pages without a block in use, which malloc_trim(0) returns at "
                        "once, and a lower retain_idle as time passes; the rest goes only when "
                        "its neighbours are freed.",
                        OBS_SIZE(returnable));
    } else {
        hak_text_str(text, " malloc_trim(0) returns nothing: every OS page has a block in use, and "
                           "goes only when that is freed.");
    }
}

/* The largest cause and what lowers it; if it is not ours, also the next one. Returns that of the
 * advice. */
static obs_cause_t put_first(const explain_t *explain, hak_text_t *text) {
    obs_cause_t first = explain->order[0];
    put_part(explain, text, first);
    if (first == OBS_CAUSE_others) {
        put_others(&explain->rss, text);
        hak_text_format(text, ": %s. Of the rest the largest part, ", causes[first].advice);
        first = explain->order[1];
        put_part(explain, text, first);
    }
    hak_text_format(text, ": %s", causes[first].advice);
    return first;
}

static void put_sentences(const explain_t *explain, hak_text_t *text) {
    hak_text_format(text, "%s %s. The largest part, ",
                    explain->rss.rss_bytes != 0 ? "RSS is" : "Known to be resident are",
                    OBS_SIZE(explain->whole));
    obs_cause_t first = put_first(explain, text);
    hak_text_str(text, ".");
    put_returnable(&explain->rss, text, first);
}

/* Notes on unknown figures; returns how many. */
static unsigned notes(const explain_t *explain, const char *note[EXPLAIN_NOTES]) {
    const obs_rss_t *rss = &explain->rss;
    unsigned count = 0;
    if (obs_current->knobs.force_libc != 0) {
        note[count++] = OBS_FORCED_NOTE;
    }
    if (!rss->is_listed) {
        note[count++] = "no memory for a list of the allocator's ranges: all counts as others'";
    }
    if (!rss->is_looked_at) {
        note[count++] = "the kernel does not tell resident pages: mapped memory counts";
    }
    if (rss->rss_bytes == 0) {
        note[count++] = "the kernel does not tell RSS: memory of others is not known";
    } else if (!rss->is_told) {
        note[count++] = "the kernel does not tell the resident part of each mapping: the rest of "
                        "RSS counts as others'";
    }
    if (rss->doubt != NULL) {
        note[count++] = rss->doubt;
    }
    return count;
}

/* --- the learner ------------------------------------------------------------------------------ */

static const char *const pool_names[] = {"units", "huge blocks"};

/* As "0.4 s", or "13 s". */
static void put_keep(hak_text_t *text, hak_strategy_t strategy) {
    uint64_t ms = HAK_STRATEGY_MS[strategy];
    if (ms < 10000) {
        hak_text_format(text, "%l.%l s", ms / 1000, ms / 100 % 10);
    } else {
        hak_text_format(text, "%l s", (ms + 500) / 1000);
    }
}

static void put_price(hak_text_t *text, const hak_price_t *price) {
    hak_text_format(text, "%s/s taken again, %s/s as the price of what is held",
                    OBS_SIZE(obs_learner_rate(price->taken)),
                    OBS_SIZE(obs_learner_rate(price->held)));
}

static void put_learner(hak_text_t *text, hak_learner_pool_t pool, const obs_learner_view_t *view) {
    bool is_standard = view->strategy == HAK_STRATEGY_STANDARD;
    hak_text_format(text, "unused %s %s kept ", pool_names[pool], view->acts ? "are" : "would be");
    put_keep(text, view->strategy);
    hak_text_format(
        text, is_standard ? ", the standard for %l s now: " : ", as the learner chose %l s ago: ",
        view->age_ms / 1000);
    put_price(text, &view->price[view->strategy]);
    hak_strategy_t other = is_standard ? view->cheapest : HAK_STRATEGY_STANDARD;
    if (other != view->strategy) {
        hak_text_str(text, "; kept ");
        put_keep(text, other);
        hak_text_str(text, ": ");
        put_price(text, &view->price[other]);
    }
    if (!view->acts) {
        bool is_option = view->mode == HAK_LEARN_COUNTERFACTUAL;
        hak_text_str(text, is_option ? "; by learn:counterfactual the standard decides"
                                     : "; near the limit of a control group the standard decides");
    }
    if (view->is_locked) {
        hak_text_str(text, "; a forecast failed, so the standard decides for a while");
    }
}

static void write_learner(const hak_sink_t *sink, hak_text_t *text) {
    for (hak_learner_pool_t pool = 0; pool < HAK_LEARNERS; pool++) {
        obs_learner_view_t view;
        obs_learner_read(pool, &view);
        if (view.mode != HAK_LEARN_OFF) {
            text->length = 0;
            put_learner(text, pool, &view);
            hak_sink_format(sink, "hakmem: %m\n", text->data, text->length);
        }
    }
}

static void json_price(const hak_sink_t *sink, const hak_price_t *price) {
    hak_sink_format(sink, "\"taken_bytes\":%l,\"held_bytes\":%l}", obs_learner_rate(price->taken),
                    obs_learner_rate(price->held));
}

static const char *const learn_names[] = {"0", "1", "counterfactual"};

static const char *json_bool(bool is_true) {
    return is_true ? "true" : "false";
}

static void json_learner(const hak_sink_t *sink, hak_learner_pool_t pool) {
    obs_learner_view_t view;
    obs_learner_read(pool, &view);
    hak_sink_format(sink,
                    "%s\n{\"pool\":\"%s\",\"learn\":\"%s\",\"acts\":%s,\"keep_ms\":%l,"
                    "\"cheapest_ms\":%l,\"standard_ms\":%l,\"since_ms\":%l,\"locked\":%s,"
                    "\"real\":{",
                    pool == 0 ? "" : ",", pool_names[pool], learn_names[view.mode],
                    json_bool(view.acts), HAK_STRATEGY_MS[view.strategy],
                    HAK_STRATEGY_MS[view.cheapest], HAK_STRATEGY_MS[HAK_STRATEGY_STANDARD],
                    view.age_ms, json_bool(view.is_locked));
    json_price(sink, &view.real);
    hak_sink_format(sink, ",\"strategies\":[");
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        hak_sink_format(sink, "%s\n{\"keep_ms\":%l,", i == 0 ? "" : ",", HAK_STRATEGY_MS[i]);
        json_price(sink, &view.price[i]);
    }
    hak_sink_format(sink, "]}");
}

/* --- the reports ------------------------------------------------------------------------------ */

void obs_write_cause(const hak_sink_t *sink, const obs_snapshot_t *snapshot) {
    explain_t made;
    HAK_TEXT(text, EXPLAIN_TEXT);
    put_first(explain_make(&made, snapshot), &text);
    hak_sink_format(sink, "hakmem: the largest part, %m; more: report:stats, report:explain\n",
                    text.data, text.length);
}

void obs_write_explain(const hak_sink_t *sink, const obs_snapshot_t *snapshot) {
    explain_t made;
    const explain_t *explain = explain_make(&made, snapshot);
    HAK_TEXT(text, EXPLAIN_TEXT);
    const char *note[EXPLAIN_NOTES];
    put_sentences(explain, &text);
    obs_write_head(sink);
    hak_sink_format(sink, "hakmem: %m\n", text.data, text.length);
    for (unsigned i = 0; i < OBS_CAUSE_COUNT; i++) {
        obs_cause_t cause = explain->order[i];
        uint64_t bytes = explain->rss.bytes[cause];
        text.length = 0;
        hak_text_format(&text, "%s: %s, ", causes[cause].name, OBS_SIZE(bytes));
        put_percent(&text, explain, bytes);
        hak_text_format(&text, ": %s", causes[cause].title);
        uint64_t returnable = explain->rss.returnable[cause];
        if (returnable != OBS_UNKNOWN && returnable != 0) {
            hak_text_format(&text, "; malloc_trim(0) returns %s", OBS_SIZE(returnable));
        }
        hak_sink_format(sink, "hakmem: %m\n", text.data, text.length);
    }
    write_learner(sink, &text);
    for (unsigned i = 0; i < explain->thread_count; i++) {
        const obs_thread_stats_t *thread = explain->thread[i];
        hak_sink_format(sink, "hakmem: thread %u caches %l KiB, idle for %l ms\n", thread->id,
                        thread->cached_bytes >> 10, thread->idle_ms);
    }
    for (unsigned i = 0, count = notes(explain, note); i < count; i++) {
        hak_sink_format(sink, "hakmem: %s\n", note[i]);
    }
}

static void json_causes(const hak_sink_t *sink, const explain_t *explain) {
    hak_sink_format(sink, ",\n\"causes\":[");
    for (unsigned i = 0; i < OBS_CAUSE_COUNT; i++) {
        obs_cause_t cause = explain->order[i];
        uint64_t returnable = explain->rss.returnable[cause];
        hak_sink_format(sink, "%s\n{\"name\":\"%s\",\"bytes\":%l,", i == 0 ? "" : ",",
                        causes[cause].name, explain->rss.bytes[cause]);
        if (returnable != OBS_UNKNOWN) {
            hak_sink_format(sink, "\"returnable_bytes\":%l,", returnable);
        }
        hak_sink_format(sink, "\"title\":\"%s\",\"advice\":\"%s\"}", causes[cause].title,
                        causes[cause].advice);
    }
    hak_sink_format(sink, "]");
}

void obs_write_explain_json(const hak_sink_t *sink, const obs_snapshot_t *snapshot) {
    explain_t made;
    const explain_t *explain = explain_make(&made, snapshot);
    HAK_TEXT(text, EXPLAIN_TEXT);
    const char *note[EXPLAIN_NOTES];
    put_sentences(explain, &text);
    obs_report_head(sink);
    hak_sink_format(sink, ",\n\"rss_bytes\":%l,\"sum_bytes\":%l,\"first\":\"%s\",\n\"text\":\"%m\"",
                    explain->rss.rss_bytes, obs_rss_sum(&explain->rss),
                    causes[explain->order[0]].name, text.data, text.length);
    json_causes(sink, explain);
    hak_sink_format(sink, ",\n\"threads\":[");
    for (unsigned i = 0; i < explain->thread_count; i++) {
        const obs_thread_stats_t *thread = explain->thread[i];
        hak_sink_format(sink, "%s\n{\"id\":%u,\"cached_bytes\":%l,\"idle_ms\":%l}",
                        i == 0 ? "" : ",", thread->id, thread->cached_bytes, thread->idle_ms);
    }
    hak_sink_format(sink, "],\n\"learner\":[");
    for (hak_learner_pool_t pool = 0; pool < HAK_LEARNERS; pool++) {
        json_learner(sink, pool);
    }
    hak_sink_format(sink, "],\n\"notes\":[");
    for (unsigned i = 0, count = notes(explain, note); i < count; i++) {
        hak_sink_format(sink, "%s\"%s\"", i == 0 ? "" : ",", note[i]);
    }
    hak_sink_format(sink, "]}\n");
}
