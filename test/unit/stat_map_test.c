/* SPDX-License-Identifier: MIT
 *
 * The picture of the heap: spans tile each superslab once, and blocks are where they were
 * allocated. */
#include "unit/report.h"

typedef struct map_figures {
    unsigned superslabs, large_units, dirty_units, clean_units;
    uint64_t live[HAK_SC_COUNT];
    uint64_t slabs[HAK_SC_COUNT];
} map_figures_t;

static map_figures_t figures;

static unsigned class_of(uint64_t bytes) {
    unsigned sc = 0;
    while (sc < HAK_SC_COUNT && hak_sc_info[sc].bytes != bytes) {
        sc++;
    }
    UNIT_EXPECT(sc < HAK_SC_COUNT, "%llu bytes", (unsigned long long)bytes);
    return sc;
}

static void read_slab(const char *at, unsigned units) {
    uint64_t live = report_number(at, "\"live\":"), blocks = report_number(at, "\"blocks\":");
    unsigned sc = class_of(report_number(at, "\"bytes\":"));
    assert_true(live <= blocks && blocks <= hak_sc_info[sc].blocks);
    assert_int_equal(report_number(at, "\"capacity\":"), hak_sc_info[sc].blocks);
    assert_int_equal(units, hak_sc_info[sc].units);
    figures.live[sc] += live;
    figures.slabs[sc]++;
}

/* One span; returns how many units it has. */
static unsigned read_span(const char *at, unsigned unit) {
    static const char *const kinds[] = {"slab", "large", "dirty", "clean"};
    unsigned *const sums[] = {NULL, &figures.large_units, &figures.dirty_units,
                              &figures.clean_units};
    unsigned units = (unsigned)report_number(at, "\"units\":");
    unsigned kind = 0;
    assert_int_equal(report_number(at, "{\"unit\":"), unit);
    at = strstr(at, "\"kind\":\"") + 8;
    while (kind < 4 && strncmp(at, kinds[kind], strlen(kinds[kind])) != 0) {
        kind++;
    }
    assert_true(kind < 4 && units >= 1);
    if (kind == 0) {
        read_slab(at, units);
    } else {
        *sums[kind] += units;
    }
    return units;
}

static void map_read(void) {
    const char *text = report_take_json(OBS_MAP);
    figures = (map_figures_t){0};
    report_expect_json(text);
    assert_int_equal(report_number(text, "\"unit_bytes\":"), HAK_UNIT_BYTES);
    assert_int_equal(report_number(text, "\"superslab_units\":"), HAK_SUPERSLAB_UNITS);
    const char *end = strstr(text, "\"huge\":[");
    uint64_t before = 0;
    for (const char *at = text; (at = strstr(at, "{\"base\":\"")) != NULL && at < end;) {
        uint64_t base = report_number(at, "{\"base\":\"");
        assert_true(base % HAK_SUPERSLAB_BYTES == 0 && base > before);
        before = base;
        figures.superslabs++;
        for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS;) {
            at = strstr(at + 1, "{\"unit\":");
            assert_non_null(at);
            unit += read_span(at, unit);
            assert_true(unit <= HAK_SUPERSLAB_UNITS);
        }
        at = strstr(at, "]}");
    }
}

UNIT_AROUND(map_begin) {
    hak_free(hak_malloc(1));
    hak_malloc_trim(0);
    hak_collect_thread();
    hak_malloc_trim(0);
    return 0;
}

#define MAP_TEST(name) UNIT_TEST_WITH(name, map_begin, NULL)

MAP_TEST(map_has_the_live_blocks_of_every_class) {
    enum { PER_CLASS = 41 };
    static void *block[HAK_SC_COUNT][PER_CLASS];
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        for (unsigned i = 0; i < PER_CLASS; i++) {
            block[sc][i] = hak_malloc(hak_sc_usable(&hak_sc_info[sc]));
        }
    }
    hak_collect_thread();
    map_read();
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        unsigned capacity = hak_sc_info[sc].blocks;
        UNIT_EXPECT(figures.live[sc] == PER_CLASS, "class %u", sc);
        UNIT_EXPECT(figures.slabs[sc] == (PER_CLASS + capacity - 1) / capacity, "class %u", sc);
    }
    for (unsigned i = 0; i < HAK_SC_COUNT * PER_CLASS; i++) {
        hak_free(block[i % HAK_SC_COUNT][i / HAK_SC_COUNT]);
    }
    hak_collect_thread();
    map_read();
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        UNIT_EXPECT(figures.slabs[sc] == 0, "class %u", sc);
    }
    assert_true(figures.dirty_units > 0);
}

MAP_TEST(map_has_large_blocks_and_free_units) {
    void *a = hak_malloc(100000), *b = hak_malloc(MIB), *c = hak_malloc(MIB);
    map_read();
    assert_int_equal(figures.superslabs, 1);
    assert_int_equal(figures.large_units, 2 + 16 + 16);
    assert_int_equal(figures.clean_units, HAK_SUPERSLAB_UNITS - 34);
    hak_free(b);
    map_read();
    assert_int_equal(figures.large_units, 2 + 16);
    assert_int_equal(figures.dirty_units, 16);
    hak_free(a);
    hak_free(c);
}

MAP_TEST(map_has_huge_blocks_and_cached_ones) {
    char entry[128];
    char *block = hak_malloc(5 * MIB - HAK_HUGE_GUARD_BYTES);
    static const char *const kinds[] = {"huge", "cached"};
    for (unsigned i = 0; i < 2; i++) {
        snprintf(entry, sizeof entry, "{\"base\":\"%p\",\"bytes\":%d,\"kind\":\"%s\"}", block,
                 5 * MIB, kinds[i]);
        const char *text = report_take_json(OBS_MAP);
        UNIT_EXPECT(strstr(text, entry) != NULL, "%s", entry);
        if (i == 0) {
            hak_free(block);
        }
    }
    hak_malloc_trim(0);
    assert_non_null(strstr(report_take_json(OBS_MAP), "\"huge\":[]"));
}

MAP_TEST(map_is_taken_without_memory_of_ours) {
    uint64_t maps = hak_os_fault_calls(HAK_OS_CALL_MAP);
    size_t meta = hak_meta_bytes();
    report_take_json(OBS_MAP);
    assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_MAP), maps);
    assert_int_equal(hak_meta_bytes(), meta);
}
