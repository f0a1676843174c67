/* SPDX-License-Identifier: MIT
 *
 * What goes back to the kernel, and what happens when it does not take it. */
#include "base/counters.h"
#include "unit/span.h"

#include <pthread.h>

enum { MIB = 1 << 20 };

static int begin(void **state) {
    (void)state;
    hak_os_init();
    hak_os_fault_clear();
    unit_span_retain((size_t)1 << 40, 0);
    return 0;
}

static int end(void **state) {
    (void)state;
    hak_os_fault_clear();
    hak_span_purge(0);
    hak_span_stats_t stats = unit_span_check();
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.superslab_count, 0);
    return 0;
}

static hak_span_t dirty_span(unsigned count) {
    hak_span_t span = unit_span(count, HAK_UNIT_BYTES);
    memset(span.base, 0xee, (size_t)count * HAK_UNIT_BYTES);
    return span;
}

static void retain_is_the_larger_of_floor_and_share(void **state) {
    (void)state;
    unit_span_retain(10u * MIB, 25);
    assert_int_equal(hak_span_retain_bytes(0), 10 * MIB);
    assert_int_equal(hak_span_retain_bytes(40u * MIB), 10 * MIB);
    assert_int_equal(hak_span_retain_bytes(100u * MIB), 100u * MIB / 100 * 25);
    hak_knobs.retain_learned_percent = 50;
    assert_int_equal(hak_span_retain_bytes(100u * MIB), 100u * MIB / 100 * 75);
    unit_span_retain(0, 0);
    assert_int_equal(hak_span_retain_bytes((size_t)1 << 50), 0);
}

static void free_beyond_the_bound_purges_below_it(void **state) {
    (void)state;
    hak_span_t spans[48]; /* 48 MiB */
    hak_span_t pins[48];
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        spans[i] = dirty_span(15);
        pins[i] = unit_span(1, HAK_UNIT_BYTES);
    }
    unit_span_retain(8u * MIB, 0);
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        unit_span_free(&spans[i], 15);
        assert_true(unit_span_check().unused_dirty_bytes <= 8u * MIB);
    }
    assert_true(unit_span_check().unused_dirty_bytes > 0);
    for (unsigned i = 0; i < UNIT_COUNT(pins); i++) {
        unit_span_free(&pins[i], 0);
    }
}

static void purge_of_unused_superslabs_unmaps_them(void **state) {
    (void)state;
    hak_span_t a = dirty_span(64);
    hak_span_t b = dirty_span(64);
    hak_span_t c = dirty_span(64);
    unit_span_free(&a, 64);
    unit_span_free(&c, 64);
    uint64_t before = hak_counters.superslab_unmap;
    assert_int_equal(hak_span_purge(0), 2u * HAK_SUPERSLAB_BYTES);
    assert_int_equal(hak_counters.superslab_unmap, before + 2);
    assert_null(hak_pagemap_superslab(a.base));
    assert_false(hak_os_is_readable(a.base));
    assert_false(hak_os_is_readable(c.base));
    assert_ptr_equal(hak_pagemap_superslab(b.base), b.superslab);
    assert_true(unit_is_filled(b.base, HAK_SUPERSLAB_BYTES, 0xee));
    assert_int_equal(unit_span_check().superslab_count, 1);
    assert_int_equal(hak_span_purge(0), 0);
    unit_span_free(&b, 64);
}

static void purge_around_a_used_span_gives_the_rest_back(void **state) {
    (void)state;
    hak_span_t low = dirty_span(20);
    hak_span_t used = dirty_span(10);
    hak_span_t high = dirty_span(34);
    unit_span_free(&low, 20);
    unit_span_free(&high, 34);
    assert_int_equal(hak_span_purge(0), 54u * HAK_UNIT_BYTES);
    assert_int_equal(unit_span_check().unused_dirty_bytes, 0);
    assert_true(unit_is_filled(used.base, 10u * HAK_UNIT_BYTES, 0xee));
    hak_span_t again = unit_span(20, HAK_UNIT_BYTES);
    assert_ptr_equal(again.base, low.base);
    assert_true(again.is_zero);
    assert_true(unit_is_filled(again.base, 20u * HAK_UNIT_BYTES, 0));
    unit_span_free(&again, 0);
    unit_span_free(&used, 10);
}

static void purge_that_keeps_some_stops_there(void **state) {
    (void)state;
    hak_span_t spans[8];
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        spans[i] = dirty_span(64);
    }
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        unit_span_free(&spans[i], 64);
    }
    hak_span_purge(16u * MIB);
    hak_span_stats_t stats = unit_span_check();
    assert_true(stats.unused_dirty_bytes <= 16u * MIB);
    assert_true(stats.unused_dirty_bytes >= 12u * MIB);
    /* the oldest stay (SPAN-5) */
    assert_true(hak_os_is_readable(spans[0].base));
    assert_false(hak_os_is_readable(spans[7].base));
}

static void purged_units_wanted_again_are_regret(void **state) {
    (void)state;
    hak_span_t used = unit_span(1, HAK_UNIT_BYTES);
    hak_span_t span = dirty_span(20);
    unit_span_free(&span, 20);
    hak_span_purge(0);
    uint64_t before = hak_counters.purge_regret_units;
    span = unit_span(12, HAK_UNIT_BYTES);
    assert_int_equal(hak_counters.purge_regret_units, before + 12);
    unit_span_free(&span, 0);
    span = unit_span(12, HAK_UNIT_BYTES); /* the same units, not purged in between */
    assert_int_equal(hak_counters.purge_regret_units, before + 12);
    unit_span_free(&span, 0);
    unit_span_free(&used, 0);
}

static void unmap_refused_superslab_is_restored_and_zero(void **state) {
    (void)state;
    hak_span_t span = dirty_span(64);
    unit_span_free(&span, 64);
    hak_os_fault_plan(HAK_OS_CALL_UNMAP, 0, 1);
    assert_int_equal(hak_span_purge(0), HAK_SUPERSLAB_BYTES);
    hak_span_stats_t stats = unit_span_check();
    assert_int_equal(stats.superslab_count, 1);
    assert_int_equal(stats.unused_dirty_bytes, 0);
    assert_ptr_equal(hak_pagemap_superslab(span.base), span.superslab);
    hak_span_t again = unit_span(64, HAK_UNIT_BYTES);
    assert_ptr_equal(again.base, span.base);
    assert_true(again.is_zero);
    assert_true(unit_is_filled(again.base, HAK_SUPERSLAB_BYTES, 0));
    unit_span_free(&again, 0);
}

static void unmap_and_purge_refused_superslab_stays_dirty_and_usable(void **state) {
    (void)state;
    hak_span_t span = dirty_span(64);
    unit_span_free(&span, 40);
    hak_os_fault_plan(HAK_OS_CALL_UNMAP, 0, 1);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, 1);
    assert_int_equal(hak_span_purge(0), 0);
    assert_int_equal(unit_span_check().unused_dirty_bytes, 40u * HAK_UNIT_BYTES);
    hak_span_t again = unit_span(64, HAK_UNIT_BYTES);
    assert_ptr_equal(again.base, span.base);
    assert_false(again.is_zero);
    assert_int_equal((unsigned char)again.base[0], 0xee);
    unit_span_free(&again, 64);
    assert_int_equal(hak_span_purge(0), HAK_SUPERSLAB_BYTES);
}

static void purge_refused_run_stays_dirty_others_go(void **state) {
    (void)state;
    hak_span_t low = dirty_span(20);
    hak_span_t used = dirty_span(10);
    hak_span_t high = dirty_span(34);
    unit_span_free(&low, 20);
    unit_span_free(&high, 34);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 1, 1);
    assert_int_equal(hak_span_purge(0), 20u * HAK_UNIT_BYTES);
    assert_int_equal(unit_span_check().unused_dirty_bytes, 34u * HAK_UNIT_BYTES);
    assert_int_equal(hak_span_purge(0), 34u * HAK_UNIT_BYTES);
    unit_span_free(&used, 10);
}

/* --- several threads
 * ------------------------------------------------------------------------------ */

enum { THREADS = 4, ROUNDS = 400 };

static void *churn(void *context) {
    uint64_t seed = (uintptr_t)context;
    hak_span_t held[8];
    bool is_held[8] = {false};
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t random = hak_rng_next(&seed);
        hak_span_t *span = &held[random % 8];
        if (is_held[random % 8]) {
            unit_span_free(span, span->count);
        } else if (!hak_span_alloc(1 + (random >> 8) % 20, HAK_UNIT_BYTES, span)) {
            return (void *)1;
        } else {
            memset(span->base, 1, 64);
        }
        is_held[random % 8] = !is_held[random % 8];
        if (random >> 60 == 0) {
            hak_span_purge(0);
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        if (is_held[i]) {
            unit_span_free(&held[i], held[i].count);
        }
    }
    return NULL;
}

static void purge_beside_other_threads_loses_nothing(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    void *result;
    unit_span_retain(2u * MIB, 10);
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    assert_int_equal(unit_span_check().in_use_bytes, 0);
}

#define SPAN_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

static const struct CMUnitTest tests[] = {
    SPAN_TEST(retain_is_the_larger_of_floor_and_share),
    SPAN_TEST(free_beyond_the_bound_purges_below_it),
    SPAN_TEST(purge_of_unused_superslabs_unmaps_them),
    SPAN_TEST(purge_around_a_used_span_gives_the_rest_back),
    SPAN_TEST(purge_that_keeps_some_stops_there),
    SPAN_TEST(purged_units_wanted_again_are_regret),
    SPAN_TEST(unmap_refused_superslab_is_restored_and_zero),
    SPAN_TEST(unmap_and_purge_refused_superslab_stays_dirty_and_usable),
    SPAN_TEST(purge_refused_run_stays_dirty_others_go),
    SPAN_TEST(purge_beside_other_threads_loses_nothing),
};

UNIT_MAIN(tests)
