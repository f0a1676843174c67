/* SPDX-License-Identifier: MIT
 *
 * The report for people: tables; every line begins with our name. */
#include "write.h"

#include <string.h>

enum {
    TEXT_NAME_END = 33, /* columns of the list of figures */
    TEXT_VALUE_END = 48,
    TEXT_FIRST_END = 22, /* of tables: the first column, and the others */
    TEXT_CELL = 13,
};

typedef struct text_line {
    hak_text_t text;
    size_t end; /* of the next cell of a table */
    char data[256];
} text_line_t;

static void line_begin(text_line_t *line, const char *first) {
    line->text = (hak_text_t){.data = line->data, .capacity = sizeof line->data - 1};
    hak_text_format(&line->text, "hakmem: %s", first);
    line->end = TEXT_FIRST_END;
}

static void line_send(text_line_t *line, const hak_sink_t *sink) {
    line->data[line->text.length++] = '\n';
    sink->put(sink->context, line->data, line->text.length);
}

static void line_pad(text_line_t *line, size_t end) {
    do {
        hak_text_mem(&line->text, " ", 1);
    } while (line->text.length < end);
}

static void line_word(text_line_t *line, const char *word) {
    line_pad(line, line->end - strlen(word));
    hak_text_str(&line->text, word);
    line->end += TEXT_CELL;
}

static void line_number(text_line_t *line, uint64_t value) {
    HAK_TEXT(number, 23);
    hak_text_uint(&number, value);
    line_word(line, hak_text_string(&number));
}

static void text_figure(const hak_sink_t *sink, const obs_figure_t *figure, uint64_t value) {
    text_line_t line;
    line_begin(&line, figure->name);
    line_pad(&line, TEXT_NAME_END);
    line.end = TEXT_VALUE_END;
    line_number(&line, value);
    hak_text_format(&line.text, "  %s", figure->text);
    line_send(&line, sink);
}

/* Columns of a table: title, value. */
#define TEXT_CLASSES(X)                                                                            \
    X("bytes", hak_sc_info[sc].bytes)                                                              \
    X("slabs", stats->slabs)                                                                       \
    X("blocks", stats->blocks)                                                                     \
    X("live", stats->live)                                                                         \
    X("in bins", stats->cached)                                                                    \
    X("on its way", stats->remote + stats->quarantine)                                             \
    X("free", stats->free)                                                                         \
    X("refills", stats->bin.refill)                                                                \
    X("full bins", stats->bin.overflow)                                                            \
    X("slabs made", stats->owner.slab_create)

#define TEXT_THREADS(X)                                                                            \
    X("id", thread->id)                                                                            \
    X("heap", thread->owner)                                                                       \
    X("in bins", thread->cached_bytes)                                                             \
    X("bins grew by", thread->drawn_bytes)                                                         \
    X("idle, ms", thread->idle_ms)                                                                 \
    X("refills", thread->bin.refill)                                                               \
    X("full bins", thread->bin.overflow)                                                           \
    X("large blocks", thread->own.large_alloc)

#define TEXT_TITLE(title, value) line_word(&line, title);
#define TEXT_VALUE(title, value) line_number(&line, value);
/* A line of a table: titles, or values. */
#define TEXT_LINE(sink, first, columns, cell)                                                      \
    do {                                                                                           \
        text_line_t line;                                                                          \
        line_begin(&line, first);                                                                  \
        columns(cell) line_send(&line, sink);                                                      \
    } while (0)

static void text_classes(const hak_sink_t *sink, const obs_snapshot_t *snapshot) {
    obs_class_stats_t of;
    const obs_class_stats_t *stats = &of;
    TEXT_LINE(sink, "class", TEXT_CLASSES, TEXT_TITLE);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        if (obs_class_read(snapshot, sc, &of)) {
            TEXT_LINE(sink, "class", TEXT_CLASSES, TEXT_VALUE);
        }
    }
}

static void text_threads(const hak_sink_t *sink, const obs_thread_list_t *threads) {
    TEXT_LINE(sink, "thread", TEXT_THREADS, TEXT_TITLE);
    for (size_t i = 0; i < threads->count; i++) {
        const obs_thread_stats_t *thread = &threads->thread[i];
        TEXT_LINE(sink, "thread", TEXT_THREADS, TEXT_VALUE);
    }
}

void obs_write_text(const hak_sink_t *sink, const obs_snapshot_t *snapshot) {
    obs_write_head(sink);
    if (obs_current->knobs.force_libc != 0) {
        hak_sink_format(sink, "hakmem: " OBS_FORCED_NOTE "\n");
    }
    for (const obs_figure_t *figure = obs_figures; figure->name[0] != '\0'; figure++) {
        text_figure(sink, figure, obs_figure_value(figure, snapshot));
    }
    text_classes(sink, snapshot);
    text_threads(sink, &obs_threads);
}
