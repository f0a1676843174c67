/* SPDX-License-Identifier: MIT
 *
 * Totals and reports say the figures of the snapshot. Parsers read them in test/report/. */
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

/* The number behind `head`; the test fails if there is no such place, or a second. */
static uint64_t figure_behind(const char *text, const char *head) {
    const char *at = strstr(text, head);
    UNIT_EXPECT(at != NULL, "%s", head);
    assert_null(strstr(at + 1, head));
    return strtoull(at + strlen(head), NULL, 10);
}

static uint64_t text_figure(const char *text, const char *name) {
    char head[128];
    snprintf(head, sizeof head, "hakmem: %s ", name);
    return figure_behind(text, head);
}

static uint64_t xml_figure(const char *name) {
    char head[128];
    snprintf(head, sizeof head, "<figure name=\"%s\" value=\"", name);
    return figure_behind(xml, head);
}

static void make_xml(void) {
    const hak_sink_t sink = {.put = put_xml, .context = &xml_length};
    xml_length = 0;
    hak_stat_write_xml(&sink);
    xml[xml_length] = '\0';
}

static void write_text(void) {
    const hak_sink_t sink = {.put = report_put, .context = &report_text};
    report_text.length = 0;
    hak_stat_write_text(&sink);
    report_text.data[report_text.length] = '\0';
}

#define EXPECT_BYTES(name, text_) EXPECT_TOTAL(#name "_bytes", s.name##_bytes)
#define EXPECT_COUNT(name, key, metric, text_) EXPECT_TOTAL(#name, s.name)

UNIT_TEST(totals_are_those_of_the_snapshot) {
    hak_snapshot_t s;
    some_load();
    hak_stat_collect(&s);
    write_text();
    make_xml();
#define EXPECT_TOTAL(name, value)                                                                  \
    assert_int_equal(text_figure(report_text.data, name), value);                                  \
    assert_int_equal(xml_figure(name), value);
    HAK_STAT_BYTES(EXPECT_BYTES)
    HAK_STAT_COUNTS(EXPECT_COUNT)
    assert_non_null(strstr(xml, "</malloc>\n"));
#undef EXPECT_TOTAL
}

UNIT_TEST(observer_says_every_figure_of_the_snapshot) {
    obs_snapshot_t s;
    some_load();
    report_collect(&s);
    const char *text = report_take(OBS_STATS);
#define EXPECT_TOTAL(name, value) assert_int_equal(text_figure(text, name), value);
#define EXPECT_EVENT(name, text_) EXPECT_TOTAL(#name, s.events.name)
#define EXPECT_PROCESS(name, text_) EXPECT_TOTAL(#name, s.process.name)
    HAK_STAT_BYTES(EXPECT_BYTES)
    HAK_STAT_COUNTS(EXPECT_COUNT)
    OBS_TCACHE_COUNTERS(EXPECT_EVENT)
    HAK_PROCESS_COUNTERS(EXPECT_PROCESS)
    EXPECT_TOTAL("cache_bytes", s.cache_bytes)
    EXPECT_TOTAL("cache_budget_bytes", s.cache_budget_bytes)
}

UNIT_TEST(report_in_text_begins_every_line_with_our_name) {
    write_text();
    const char *text = report_text.data;
    assert_true(unit_line_count(text) > 25);
    while (*text != '\0') {
        assert_memory_equal(text, "hakmem: ", 8);
        text = strchr(text, '\n') + 1;
    }
}

/* The tables have no room for a name that is longer, and the compiler does not tell. */
UNIT_TEST(figures_have_names_that_end) {
    const obs_figure_t *tables[] = {obs_figures, obs_class_figures};
    for (unsigned i = 0; i < UNIT_COUNT(tables); i++) {
        for (const obs_figure_t *f = tables[i]; f->name[0] != 0; f++) {
            assert_non_null(memchr(f->name, 0, sizeof f->name));
            assert_non_null(memchr(f->key, 0, sizeof f->key));
            assert_non_null(memchr(f->metric, 0, sizeof f->metric));
            assert_non_null(memchr(f->text, 0, sizeof f->text));
        }
    }
}
