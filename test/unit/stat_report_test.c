/* SPDX-License-Identifier: MIT
 *
 * Both reports say the same figures. Parsers read them in test/report/. */
#include "stat/report.h"
#include "unit/capture.h"
#include "unit/report.h"

static char xml[65536];
static size_t xml_length;

static void put_xml(void *context, const char *data, size_t length) {
    assert_ptr_equal(context, &xml_length);
    assert_true(xml_length + length < sizeof xml);
    memcpy(xml + xml_length, data, length);
    xml_length += length;
}

static void some_load(void) {
    for (size_t size = 1; size < 4u << 20; size = size * 3 / 2 + 1) {
        void *block = hak_malloc(size);
        if (size % 2 == 0) {
            hak_free(block);
        }
    }
}

/* Value of "hakmem: <name> <value>"; the test fails if there is no such line, or a second. */
static uint64_t text_figure(const char *text, const char *name) {
    char line[128];
    snprintf(line, sizeof line, "hakmem: %s ", name);
    const char *at = strstr(text, line);
    UNIT_EXPECT(at != NULL, "%s", name);
    assert_null(strstr(at + 1, line));
    return strtoull(at + strlen(line), NULL, 10);
}

static uint64_t xml_figure(const char *name) {
    char line[128];
    snprintf(line, sizeof line, "<figure name=\"%s\" value=\"", name);
    const char *at = strstr(xml, line);
    UNIT_EXPECT(at != NULL, "%s", name);
    assert_null(strstr(at + 1, line));
    return strtoull(at + strlen(line), NULL, 10);
}

static void make_xml(void) {
    const hak_sink_t sink = {.put = put_xml, .context = &xml_length};
    xml_length = 0;
    hak_stat_report(HAK_REPORT_XML, &sink);
    xml[xml_length] = '\0';
}

/* The list of threads is made for who shows it. */
static uint64_t mappings_of(hak_report_t report) {
    const hak_sink_t sink = {.put = put_xml, .context = &xml_length};
    xml_length = 0;
    hak_os_fault_clear();
    hak_stat_report(report, &sink);
    return hak_os_fault_calls(HAK_OS_CALL_MAP);
}

UNIT_TEST(report_without_threads_makes_no_list_of_them) {
    some_load();
    assert_int_equal(mappings_of(HAK_REPORT_METRICS) + 1, mappings_of(HAK_REPORT_TEXT));
    assert_int_equal(mappings_of(HAK_REPORT_XML) + 1, mappings_of(HAK_REPORT_JSON));
}

UNIT_TEST(reports_say_every_figure_of_the_snapshot) {
    hak_snapshot_t s;
    some_load();
    hak_stat_collect(&s);
    unit_capture_begin();
    hak_stat_print(HAK_REPORT_TEXT, 2);
    const char *text = unit_capture_end();
    make_xml();
#define EXPECT_FIGURE(name, value)                                                                 \
    assert_int_equal(text_figure(text, name), value);                                              \
    assert_int_equal(xml_figure(name), value);
#define EXPECT_EVENT(name, text_) EXPECT_FIGURE(#name, s.events.name)
#define EXPECT_PROCESS(name, text_) EXPECT_FIGURE(#name, s.process.name)
    HAK_TCACHE_COUNTERS(EXPECT_EVENT)
    HAK_PROCESS_COUNTERS(EXPECT_PROCESS)
    EXPECT_FIGURE("mapped_bytes", s.mapped_bytes)
    EXPECT_FIGURE("in_use_bytes", s.in_use_bytes)
    EXPECT_FIGURE("slab_free_bytes", s.slab_free_bytes)
    EXPECT_FIGURE("unused_dirty_bytes", s.unused_dirty_bytes)
    EXPECT_FIGURE("large_bytes", s.large_bytes)
    EXPECT_FIGURE("huge_bytes", s.huge_bytes)
    EXPECT_FIGURE("huge_cached_bytes", s.huge_cached_bytes)
    EXPECT_FIGURE("meta_bytes", s.meta_bytes)
    EXPECT_FIGURE("tcache_count", s.tcache_count)
    EXPECT_FIGURE("cache_bytes", s.cache_bytes)
    EXPECT_FIGURE("cache_budget_bytes", s.cache_budget_bytes)
    assert_non_null(strstr(xml, "</malloc>\n"));
}

UNIT_TEST(report_in_text_begins_every_line_with_our_name) {
    unit_capture_begin();
    hak_stat_print(HAK_REPORT_TEXT, 2);
    const char *text = unit_capture_end();
    unsigned lines = unit_line_count(text);
    assert_true(lines > 30);
    while (*text != '\0') {
        assert_memory_equal(text, "hakmem: ", 8);
        text = strchr(text, '\n') + 1;
    }
}

/* The tables have no room for a name that is longer, and the compiler does not tell. */
UNIT_TEST(figures_have_names_that_end) {
    const hak_figure_t *tables[] = {hak_figures, hak_class_figures};
    for (unsigned i = 0; i < UNIT_COUNT(tables); i++) {
        for (const hak_figure_t *f = tables[i]; f->name[0] != 0; f++) {
            assert_non_null(memchr(f->name, 0, sizeof f->name));
            assert_non_null(memchr(f->key, 0, sizeof f->key));
            assert_non_null(memchr(f->metric, 0, sizeof f->metric));
            assert_non_null(memchr(f->text, 0, sizeof f->text));
        }
    }
}
