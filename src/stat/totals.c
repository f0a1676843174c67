/* SPDX-License-Identifier: MIT
 *
 * The totals, as malloc_stats and malloc_info tell them. All else is the observer's to tell. */
#include "base/knobs.h"
#include "base/version.h"
#include "os/os.h"
#include "stat/stat.h"

enum { REPORT_PIECE_BYTES = 1024 };

#define REPORT_BYTES(name, text) #name "_bytes",
#define REPORT_COUNT(name, key, metric, text) #name,
/* In the order of the snapshot, which begins with them. */
static const char report_names[][24] = {HAK_STAT_BYTES(REPORT_BYTES) HAK_STAT_COUNTS(REPORT_COUNT)};

static void put_totals(hak_text_t *text, const hak_snapshot_t *snapshot, const char *form) {
    const uint64_t *value = (const uint64_t *)snapshot;
    for (unsigned i = 0; i < sizeof report_names / sizeof *report_names; i++) {
        hak_text_format(text, form, report_names[i], value[i]);
    }
}

static void write_text(void *sink, hak_snapshot_t *snapshot) {
    HAK_TEXT(text, REPORT_PIECE_BYTES);
    text.sink = sink;
    hak_text_format(&text, "hakmem: " HAK_VERSION_TEXT ", process %u\n%s", hak_os_process_id(),
                    hak_load_relaxed(&hak_knobs.force_libc)
                        ? "hakmem: force_libc is on: blocks are the C library's own\n"
                        : "");
    put_totals(&text, snapshot, "hakmem: %s %l\n");
    hak_text_flush(&text);
}

void hak_stat_write_text(const hak_sink_t *sink) {
    hak_stat_use(write_text, (void *)(uintptr_t)sink);
}

/* The C library's elements that programs look for, and ours. */
static void write_xml(void *sink, hak_snapshot_t *snapshot) {
    HAK_TEXT(text, REPORT_PIECE_BYTES);
    text.sink = sink;
    hak_text_format(&text,
                    "<malloc version=\"1\" allocator=\"hakmem\">\n<heap nr=\"0\">\n<sizes>\n");
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_class_stats_t *of = &snapshot->sc[sc];
        if (of->slabs != 0) {
            hak_text_format(&text, "<class bytes=\"%u\" live=\"%l\" free=\"%l\"/>\n",
                            hak_sc_info[sc].bytes, of->live, of->blocks - of->live);
        }
    }
    hak_text_format(&text, "</sizes>\n</heap>\n");
    put_totals(&text, snapshot, "<figure name=\"%s\" value=\"%l\"/>\n");
    hak_text_format(&text,
                    "<system type=\"current\" size=\"%l\"/>\n"
                    "<aspace type=\"total\" size=\"%l\"/>\n</malloc>\n",
                    snapshot->mapped_bytes, snapshot->mapped_bytes);
    hak_text_flush(&text);
}

void hak_stat_write_xml(const hak_sink_t *sink) {
    hak_stat_use(write_xml, (void *)(uintptr_t)sink);
}
