/* SPDX-License-Identifier: MIT
 *
 * Reports: the figures are walked once, in one order, for every format. */
#include "os/os.h"
#include "stat/stat.h"

typedef struct report_figure {
    const char *name;
    uint64_t value;
} report_figure_t;

#define REPORT_COUNTER(name, text) +1
enum {
    REPORT_TOTALS = 16,
    REPORT_FIGURES =
        REPORT_TOTALS HAK_TCACHE_COUNTERS(REPORT_COUNTER) HAK_PROCESS_COUNTERS(REPORT_COUNTER),
};
#undef REPORT_COUNTER

static void report_figures(const hak_snapshot_t *s, report_figure_t *out) {
    const report_figure_t totals[REPORT_TOTALS] = {
        {"mapped_bytes", s->mapped_bytes},
        {"in_use_bytes", s->in_use_bytes},
        {"slab_free_bytes", s->slab_free_bytes},
        {"unused_dirty_bytes", s->unused_dirty_bytes},
        {"large_bytes", s->large_bytes},
        {"large_count", s->large_count},
        {"huge_bytes", s->huge_bytes},
        {"huge_count", s->huge_count},
        {"huge_cached_bytes", s->huge_cached_bytes},
        {"meta_bytes", s->meta_bytes},
        {"superslab_count", s->superslab_count},
        {"tcache_count", s->thread_count},
        {"cache_bytes", s->cache_bytes},
        {"cache_budget_bytes", s->cache_budget_bytes},
        {"memory_limit_bytes", s->limit_bytes},
        {"memory_is_tight", s->is_tight},
    };
    for (unsigned i = 0; i < REPORT_TOTALS; i++) {
        *out++ = totals[i];
    }
#define REPORT_EVENT(name, text) *out++ = (report_figure_t){#name, s->events.name};
    HAK_TCACHE_COUNTERS(REPORT_EVENT)
#undef REPORT_EVENT
#define REPORT_PROCESS(name, text) *out++ = (report_figure_t){#name, s->process.name};
    HAK_PROCESS_COUNTERS(REPORT_PROCESS)
#undef REPORT_PROCESS
}

static void report_line(int fd, const hak_text_t *text) {
    hak_os_write(fd, text->data, text->length);
}

void hak_stat_report_text(int fd, const hak_snapshot_t *snapshot) {
    char buffer[HAK_LINE_TEXT];
    hak_text_t text;
    report_figure_t figures[REPORT_FIGURES];
    report_figures(snapshot, figures);
    for (unsigned i = 0; i < REPORT_FIGURES; i++) {
        hak_text_init(&text, buffer, sizeof buffer);
        hak_text_format(&text, "hakmem: %s %l\n", figures[i].name, figures[i].value);
        report_line(fd, &text);
    }
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_class_stats_t *stats = &snapshot->sc[sc];
        if (stats->slabs != 0) {
            hak_text_init(&text, buffer, sizeof buffer);
            hak_text_format(&text, "hakmem: class %u bytes: %l slabs, %l blocks, %l free\n",
                            hak_sc_info[sc].bytes, stats->slabs, stats->carved, stats->free);
            report_line(fd, &text);
        }
    }
}

void hak_stat_report_xml(void (*put)(void *, const char *, size_t), void *context,
                         const hak_snapshot_t *snapshot) {
    char buffer[HAK_LINE_TEXT];
    hak_text_t text;
    report_figure_t figures[REPORT_FIGURES];
    report_figures(snapshot, figures);
    hak_text_init(&text, buffer, sizeof buffer);
    hak_text_str(&text, "<malloc version=\"1\" allocator=\"hakmem\">\n<heap nr=\"0\">\n<sizes>\n");
    put(context, text.data, text.length);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_class_stats_t *stats = &snapshot->sc[sc];
        if (stats->slabs != 0) {
            hak_text_init(&text, buffer, sizeof buffer);
            hak_text_format(&text, "<class bytes=\"%u\" slabs=\"%l\" blocks=\"%l\" free=\"%l\"/>\n",
                            hak_sc_info[sc].bytes, stats->slabs, stats->carved, stats->free);
            put(context, text.data, text.length);
        }
    }
    hak_text_init(&text, buffer, sizeof buffer);
    hak_text_str(&text, "</sizes>\n</heap>\n");
    put(context, text.data, text.length);
    for (unsigned i = 0; i < REPORT_FIGURES; i++) {
        hak_text_init(&text, buffer, sizeof buffer);
        hak_text_format(&text, "<figure name=\"%s\" value=\"%l\"/>\n", figures[i].name,
                        figures[i].value);
        put(context, text.data, text.length);
    }
    hak_text_init(&text, buffer, sizeof buffer);
    hak_text_format(&text,
                    "<system type=\"current\" size=\"%z\"/>\n"
                    "<aspace type=\"total\" size=\"%z\"/>\n</malloc>\n",
                    snapshot->mapped_bytes, snapshot->mapped_bytes);
    put(context, text.data, text.length);
}
