/* SPDX-License-Identifier: MIT
 *
 * Slow-path events are counted where they happen: by class, by stage of the provider, and for huge
 * blocks. */
#include "unit/report.h"

enum { SIZE_64 = 64 - HAK_CANARY_BYTES };

static obs_snapshot_t before, after;

/* Nothing is mapped, so that the first span needs a superslab. */
UNIT_AROUND(events_begin) {
    hak_free(hak_malloc(1));
    hak_malloc_trim(0);
    report_collect(&before);
    return 0;
}

#define EVENTS_TEST(name) UNIT_TEST_WITH(name, events_begin, NULL)

/* Since the test began. */
#define EVENTS(group, name) (report_collect(&after), after.group.name - before.group.name)

EVENTS_TEST(refills_are_counted_in_their_class) {
    void *block = hak_malloc(SIZE_64 - 7);
    assert_int_equal(EVENTS(bin[SC_64], refill), 1);
    assert_int_equal(EVENTS(bin[SC_64], asked_bytes), SIZE_64 - 7);
    assert_int_equal(EVENTS(owner[SC_64], slab_create), 1);
    assert_int_equal(EVENTS(bin[SC_1024], refill), 0);
    assert_int_equal(EVENTS(events, refill), 1);
    assert_int_equal(EVENTS(events, slab_create), 1);
    hak_free(block);
    hak_collect_thread();
    block = hak_malloc(SIZE_64);
    assert_int_equal(EVENTS(owner[SC_64], slab_create), 2); /* the first one retired */
    hak_free(block);
}

EVENTS_TEST(full_bins_are_counted_in_their_class) {
    enum { COUNT = 3000 };
    static void *block[COUNT];
    UNIT_TAKE_ALL(block, COUNT, hak_malloc(1024 - HAK_CANARY_BYTES));
    UNIT_FREE_ALL(block, COUNT);
    assert_true(EVENTS(bin[SC_1024], overflow) > 0);
    assert_int_equal(EVENTS(bin[SC_64], overflow), 0);
    assert_int_equal(EVENTS(events, overflow), EVENTS(bin[SC_1024], overflow));
    hak_collect_thread();
}

static void *make_block(void *context) {
    *(void **)context = hak_malloc(SIZE_64);
    return NULL;
}

EVENTS_TEST(messages_are_counted_where_they_leave) {
    void *block;
    unit_pthread_create_and_join(make_block, &block);
    hak_free(block);
    hak_collect_thread(); /* sends it, and receives for all */
    assert_int_equal(EVENTS(bin[SC_64], remote_out), 1);
    assert_int_equal(EVENTS(events, remote_out), 1);
    assert_int_equal(after.remote_bytes + after.live_bytes, before.live_bytes);
}

EVENTS_TEST(huge_blocks_are_counted_by_what_served_them) {
    void *block = hak_malloc(4 << 20);
    assert_int_equal(EVENTS(process, huge_map), 1);
    hak_free(block);
    block = hak_malloc(4 << 20);
    assert_int_equal(EVENTS(process, huge_hit), 1);
    assert_int_equal(EVENTS(process, huge_map), 1);
    hak_free(block);
}
