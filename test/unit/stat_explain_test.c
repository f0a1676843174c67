/* SPDX-License-Identifier: MIT
 *
 * Causes of resident memory, each against what the test itself did, and what is said when the
 * kernel tells less. The causes as a program sees them: limits/explain_test.py. */
#include "base/knobs.h"
#include "base/version.h"
#include "front/event.h"
#include "rss.h"
#include "unit/report.h"

static obs_rss_t rss;

static bool lacks_rss, lacks_resident; /* as of a kernel that tells less */

static uint64_t look(obs_cause_t cause) {
    static obs_snapshot_t snapshot;
    static obs_reader_t reader;
    static obs_image_t image;
    report_open(&reader, &image);
    reader.knows_rss = reader.knows_rss && !lacks_rss;
    reader.knows_resident = reader.knows_resident && !lacks_resident;
    obs_collect(&snapshot);
    obs_drop_threads();
    obs_rss_measure(&rss, &snapshot);
    obs_close(&reader);
    return rss.bytes[cause];
}

UNIT_AROUND(end) {
    hak_os_fault_clear();
    hak_os_fault_files(NULL);
    return 0;
}

#define EXPLAIN_TEST(name) UNIT_TEST_WITH(name, report_begin, end)

EXPLAIN_TEST(causes_sum_to_rss) {
    void *block[400];
    for (size_t i = 0; i < UNIT_COUNT(block); i++) {
        size_t bytes = i * i + 1;
        block[i] = memset(hak_malloc(bytes), 1, bytes);
    }
    look(OBS_CAUSE_live);
    uint64_t sum = obs_rss_sum(&rss);
    assert_true(rss.is_told && rss.is_listed && rss.is_looked_at);
    UNIT_EXPECT(sum > rss.rss_bytes / 50 * 49 && sum < rss.rss_bytes / 50 * 51, "%llu of %llu",
                (unsigned long long)sum, (unsigned long long)rss.rss_bytes);
    UNIT_FREE_ALL(block, UNIT_COUNT(block));
}

/* What was only read is backed by the kernel's zeros, which are no part of RSS. */
EXPLAIN_TEST(huge_block_counts_as_far_as_it_was_written_to) {
    uint64_t before = look(OBS_CAUSE_live);
    char *block = hak_malloc(8 * MIB);
    assert_int_equal(look(OBS_CAUSE_live), before);
    memset(block, 1, 3 * MIB);
    assert_int_equal(look(OBS_CAUSE_live), before + 3 * MIB);
    unsigned sum = 0;
    for (size_t at = 3 * MIB; at < 7u * MIB; at += 4096) {
        sum += ((volatile char *)block)[at];
    }
    assert_int_equal(sum, 0);
    assert_int_equal(look(OBS_CAUSE_live), before + 3 * MIB);
    uint64_t retained = rss.bytes[OBS_CAUSE_retained_dirty];
    hak_free(block);
    assert_true(look(OBS_CAUSE_retained_dirty) >= retained + 3 * MIB);
    assert_int_equal(rss.bytes[OBS_CAUSE_live], before);
    hak_malloc_trim(0);
    assert_int_equal(look(OBS_CAUSE_retained_dirty), retained);
}

EXPLAIN_TEST(blocks_beside_one_in_use_count_as_free) {
    enum { COUNT = 2048, BYTES = 1000 };
    static char *block[COUNT];
    uint64_t live = look(OBS_CAUSE_live) + rss.bytes[OBS_CAUSE_slack];
    uint64_t free = rss.bytes[OBS_CAUSE_slab_free];
    UNIT_TAKE_ALL(block, COUNT, memset(hak_malloc(BYTES), 1, BYTES));
    hak_collect_thread();
    assert_int_equal(look(OBS_CAUSE_live) + rss.bytes[OBS_CAUSE_slack], live + COUNT * 1024);
    assert_in_range(rss.bytes[OBS_CAUSE_slack] / COUNT, 1024 - BYTES - 1, 1024 - BYTES);
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 4 != 0) {
            hak_free(block[i]);
        }
    }
    hak_collect_thread();
    assert_int_equal(look(OBS_CAUSE_live) + rss.bytes[OBS_CAUSE_slack], live + COUNT / 4 * 1024);
    assert_true(rss.bytes[OBS_CAUSE_slab_free] >= free + COUNT / 4 * 3 * 1024);
    assert_int_equal(rss.most[OBS_CAUSE_slab_free].block_bytes, 1024);
    for (size_t i = 0; i < COUNT; i += 4) {
        hak_free(block[i]);
    }
}

/* How often the line names it. */
static unsigned mentions(const char *line, const char *word) {
    unsigned count = 0;
    const char *end = strchr(line, '\n');
    for (const char *at = line; (at = strstr(at, word)) != NULL && at < end; at++) {
        count++;
    }
    return count;
}

/* Most of one kind of memory, and one mention of a trim, which returns it, or nothing. */
static void expect_advice(const char *cause, const char *trim, bool is_idle_named) {
    const char *line = strchr(report_take(OBS_EXPLAIN), '\n') + 1;
    UNIT_EXPECT(mentions(line, cause) == 1 && mentions(line, "malloc_trim") == 1, "%s", line);
    UNIT_EXPECT(mentions(line, trim) == 1, "%s", line);
    UNIT_EXPECT(mentions(line, "retain_idle") == is_idle_named, "%s", line);
}

enum { TRIM_COUNT = 16384, TRIM_BYTES = 1000 };
static char *trim_block[TRIM_COUNT];

/* Blocks of a quarter of an OS page: of so many neighbours one stays, or all are as before. */
static void free_but_one_of(unsigned every, bool is_rest) {
    for (size_t i = 0; i < TRIM_COUNT; i++) {
        if (((uintptr_t)trim_block[i] / 1024 % every == 0) == is_rest) {
            hak_free(trim_block[i]);
        }
    }
    hak_collect_thread();
}

/* One of each two OS pages has a block in use, or each of them. */
EXPLAIN_TEST(what_a_trim_returns_is_told_before) {
    for (unsigned every = 4; every <= 8; every += 4) {
        UNIT_TAKE_ALL(trim_block, TRIM_COUNT, memset(hak_malloc(TRIM_BYTES), 1, TRIM_BYTES));
        hak_malloc_trim(0);
        look(OBS_CAUSE_slab_free);
        assert_int_equal(rss.returnable[OBS_CAUSE_slab_free], 0);
        free_but_one_of(every, false);
        uint64_t before = look(OBS_CAUSE_slab_free);
        uint64_t returnable = rss.returnable[OBS_CAUSE_slab_free];
        assert_in_range(returnable, every == 4 ? 0 : TRIM_COUNT / 8 * 4096 - (1 << 16),
                        every == 4 ? 0 : TRIM_COUNT / 8 * 4096 + (1 << 16));
        expect_advice("free blocks beside blocks in use",
                      every == 4 ? "malloc_trim(0) returns nothing" : "malloc_trim(0) returns ",
                      every == 8);
        hak_owner_t *owner = hak_tcache_self(hak_pagemap_base())->home;
        assert_true(hak_lock_try(&owner->lock)); /* nobody waits for who is busy */
        assert_int_equal(look(OBS_CAUSE_slab_free), before);
        assert_int_equal(rss.returnable[OBS_CAUSE_slab_free], returnable);
        hak_lock_unlock(&owner->lock);
        const char *text = report_take_json(OBS_EXPLAIN);
        text = strstr(text, "{\"name\":\"slab_free\"");
        assert_int_equal(report_number(text, "\"returnable_bytes\":"), returnable);
        hak_malloc_trim(0);
        assert_int_equal(look(OBS_CAUSE_slab_free), before - returnable);
        assert_int_equal(rss.returnable[OBS_CAUSE_slab_free], 0);
        free_but_one_of(every, true);
    }
    hak_malloc_trim(0);
    hak_free(memset(hak_malloc(64 * MIB), 1, 64 * MIB));
    expect_advice("unused memory that is kept", "malloc_trim(0) returns it at once", false);
    hak_malloc_trim(0);
}

static void *free_blocks(void *blocks) {
    for (void **block = blocks; *block != NULL; block++) {
        hak_free(*block);
    }
    return NULL;
}

/* The thread ends, so everything it freed has been flushed. */
EXPLAIN_TEST(blocks_that_nobody_received_count_as_on_their_way) {
    enum { COUNT = 400, BYTES = 504 };
    static void *block[COUNT + 1];
    UNIT_TAKE_ALL(block, COUNT, memset(hak_malloc(BYTES), 1, BYTES));
    hak_owner_t *owner = hak_tcache_self(hak_pagemap_base())->home;
    hak_os_fault_stop_clock(); /* and no event of a step receives any */
    hak_event_pass_time();
    uint64_t before = look(OBS_CAUSE_remote);
    unit_pthread_create_and_join(free_blocks, block);
    assert_int_equal(look(OBS_CAUSE_remote), before + COUNT * 512);
    assert_true(hak_lock_try(&owner->lock)); /* nobody waits for who is busy, or makes him wait */
    assert_int_equal(look(OBS_CAUSE_remote), before + COUNT * 512);
    hak_lock_unlock(&owner->lock);
    hak_collect_thread();
    assert_int_equal(look(OBS_CAUSE_remote), 0);
}

EXPLAIN_TEST(blocks_in_bins_count_for_their_thread) {
    enum { COUNT = 8, BYTES = 100 };
    void *block[COUNT + 1] = {0};
    hak_collect_thread();
    assert_int_equal(look(OBS_CAUSE_bins), 0);
    UNIT_TAKE_ALL(block, COUNT, memset(hak_malloc(BYTES), 1, BYTES));
    free_blocks(block);
    uint64_t bins = look(OBS_CAUSE_bins);
    assert_true(HAK_HARDEN || bins >= COUNT * 112);
    const char *threads = strstr(report_take_json(OBS_EXPLAIN), "\"threads\":[");
    assert_int_equal(report_number(threads, "{\"id\":"), hak_os_thread_id());
    assert_true(report_number(threads, "\"cached_bytes\":") >= COUNT * 112);
    hak_collect_thread();
    assert_int_equal(look(OBS_CAUSE_bins), 0);
}

/* --- when the kernel tells less --------------------------------------------------------------- */

EXPLAIN_TEST(without_mappings_the_rest_is_others) {
    lacks_rss = true;
    look(OBS_CAUSE_others);
    lacks_rss = false;
    assert_true(!rss.is_told && rss.rss_bytes != 0 && rss.bytes[OBS_CAUSE_others] != 0);
    assert_int_equal(obs_rss_sum(&rss), rss.rss_bytes);
}

EXPLAIN_TEST(without_residency_what_is_mapped_counts) {
    void *block = hak_malloc(8 * MIB);
    lacks_resident = true;
    assert_true(look(OBS_CAUSE_live) >= 8 * MIB);
    lacks_resident = false;
    assert_false(rss.is_looked_at);
    hak_free(block);
}

EXPLAIN_TEST(text_names_the_first_cause_and_what_lowers_it) {
    char *block = memset(hak_malloc(64 * MIB), 1, 64 * MIB);
    const char *text = report_take(OBS_EXPLAIN);
    UNIT_EXPECT(strncmp(text, "hakmem: " HAK_VERSION_TEXT ", process ", 16) == 0, "%.50s", text);
    assert_memory_equal(strchr(text, '\n') + 1, "hakmem: RSS is ", 15);
    assert_non_null(
        strstr(text, "is blocks the program holds, most above 64 KiB: the program has"));
    assert_non_null(strstr(text, "hakmem profile PID names their origin.\n"));
    assert_non_null(strstr(text, "\nhakmem: live: 6"));
    for (const char *at = text; *at != '\0'; at = strchr(at, '\n') + 1) {
        assert_memory_equal(at, "hakmem: ", 8);
    }
    report_expect_json(report_take_json(OBS_EXPLAIN));
    assert_true(report_number(report_text.data, "\"sum_bytes\":") >= 64 * MIB);
    hak_free(block);
    hak_malloc_trim(0);
    text = report_take(OBS_EXPLAIN); /* next to nothing is ours */
    assert_non_null(strstr(text, "memory that is not this allocator's, most of it "));
    assert_non_null(strstr(text, ": no option of the allocator changes it. Of the rest"));
}

/* No block is watched by chance: it lies elsewhere. */
UNIT_AROUND(no_guard) {
    hak_free(hak_malloc(1));
    hak_store_relaxed(&hak_knobs.guard_rate, 1u << 30);
    hak_tcache_self(hak_pagemap_base())->guard_left = 1 << 30;
    return 0;
}

UNIT_GROUP(no_guard)
