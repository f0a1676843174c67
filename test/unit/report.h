/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of figures, and of what the observer says of this process. */
#ifndef HAK_TEST_UNIT_REPORT_H
#define HAK_TEST_UNIT_REPORT_H

#include "base/bits.h"
#include "base/knobs.h"
#include "double/os_fault.h"
#include "double/profile_state.h"
#include "figures.h"
#include "front/budget.h"
#include "front/fast.h"
#include "front/tcache.h"
#include "hakmem/hakmem.h"
#include "large/large.h"
#include "observe.h"
#include "os/optional.h"
#include "os/os.h"
#include "slab/sizeclass.h"
#include "stat/stat.h"
#include "unit/unit.h"

/* Setup of a group: the process has started. With huge pages by default figures would be rounded
 * up. */
UNIT_AROUND(report_begin) {
    hak_os_init();
    hak_free(hak_malloc(1));
    hak_malloc_trim(0);
    return hak_os_huge_is_default() && hak_os_page_bytes() == 4096;
}

/* Adds counters of one kind to a sum of that kind. */
#define REPORT_ADD(name, text) to->name += hak_single_writer_load(&from->name);

static inline void report_collect_owner(hak_owner_t *owner, void *snapshot) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_class_counters_t *from = &owner->counters[sc];
        hak_class_counters_t *to = &((obs_snapshot_t *)snapshot)->owner[sc];
        HAK_CLASS_COUNTERS(REPORT_ADD)
    }
}

static inline bool report_collect_tcache(hak_tcache_t *tcache, void *snapshot) {
    const hak_thread_counters_t *from = &tcache->counters;
    obs_tcache_counters_t *to = &((obs_snapshot_t *)snapshot)->events;
    HAK_THREAD_COUNTERS(REPORT_ADD)
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_bin_counters_t *from = &hak_bin_side(tcache, sc)->counters;
        hak_bin_counters_t *to = &((obs_snapshot_t *)snapshot)->bin[sc];
        HAK_BIN_COUNTERS(REPORT_ADD)
    }
    return true;
}

/* The snapshot with what the observer alone fills, read from inside. */
static inline void report_collect(obs_snapshot_t *snapshot) {
    const hak_process_counters_t *from = &hak_counters;
    hak_process_counters_t *to = &snapshot->process;
    memset(snapshot, 0, sizeof *snapshot);
    hak_stat_collect(&snapshot->heap);
    HAK_PROCESS_COUNTERS(REPORT_ADD)
    hak_tcache_visit(report_collect_tcache, snapshot);
    hak_owner_visit(report_collect_owner, snapshot);
    if (hak_owner_sampled != NULL) {
        report_collect_owner(hak_owner_sampled, snapshot);
    }
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
#define REPORT_SUM_BIN(name, text) snapshot->events.name += snapshot->bin[sc].name;
#define REPORT_SUM_CLASS(name, text) snapshot->events.name += snapshot->owner[sc].name;
        HAK_BIN_COUNTERS(REPORT_SUM_BIN)
        HAK_CLASS_COUNTERS(REPORT_SUM_CLASS)
    }
    snapshot->cache_bytes = hak_budget_drawn_bytes();
    snapshot->cache_budget_bytes = hak_budget_bytes();
    snapshot->memory_limit_bytes = hak_knobs.limit_bytes;
    snapshot->memory_is_tight = hak_knobs.is_tight;
    hak_profile_state_t profile;
    hak_profile_look(&profile);
    snapshot->profile_rate_bytes = profile.rate;
}

static struct report_text {
    char data[1 << 20];
    size_t length;
} report_text;

static inline void report_put(void *context, const char *data, size_t length) {
    struct report_text *text = context;
    assert_true(text->length + length < sizeof text->data);
    memcpy(text->data + text->length, data, length);
    text->length += length;
}

/* The observer looks at this process. */
static inline void report_open(obs_reader_t *reader, obs_image_t *image) {
    if (unit_is_emulated()) {
        skip(); /* an emulator's files are not those of the kernel */
    }
    UNIT_EXPECT(obs_open_self(reader, true) && obs_image_open(image, reader), "%s", reader->error);
    reader->now_ns = hak_os_now_ns(); /* of this process, which the double tells */
}

static inline const char *report_take_form(obs_verb_t verb, obs_form_t form) {
    static obs_reader_t reader;
    static obs_image_t image;
    const hak_sink_t sink = {.put = report_put, .context = &report_text};
    report_open(&reader, &image);
    report_text.length = 0;
    obs_report(&image, verb, form, &sink);
    obs_close(&reader);
    report_text.data[report_text.length] = '\0';
    return report_text.data;
}

#define report_take(verb) report_take_form(verb, OBS_TEXT)
#define report_take_json(verb) report_take_form(verb, OBS_JSON)

/* What follows `key` in a text, which must have it, as a number. */
static inline uint64_t report_number(const char *text, const char *key) {
    const char *at = strstr(text, key);
    UNIT_EXPECT(at != NULL, "%s", key);
    return strtoull(at + strlen(key), NULL, 0);
}

/* Brackets match, outside of strings, and it ends with the object. */
static inline void report_expect_json(const char *text) {
    int depth = 0;
    bool is_string = false;
    for (const char *at = text; *at != '\0'; at++) {
        is_string ^= *at == '"';
        depth += is_string ? 0 : (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        UNIT_EXPECT(depth > 0 || strcmp(at, "}\n") == 0 || strcmp(at, "\n") == 0, "%.20s", at);
    }
    assert_false(is_string);
    assert_int_equal(depth, 0);
}

#endif
