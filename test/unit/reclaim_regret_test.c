/* SPDX-License-Identifier: MIT */
#include "reclaim/reclaim.h"

#include "base/atomics.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "double/os_fault.h"
#include "unit/unit.h"

#include <unistd.h>

static int calm(void **state) {
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        hak_regret_learn(1000, 0);
    }
    hak_regret_fade(UINT64_MAX);
    assert_int_equal(hak_knobs.retain_learned_percent, 0);
    assert_int_equal(hak_knobs.retain_wanted_bytes, 0);
    hak_knobs.learn = true;
    return 0;
}

static void regret_raises_what_is_retained_to_its_bound(void **state) {
    (void)state;
    size_t before = 0;
    unsigned windows = 0;
    while (hak_knobs.retain_learned_percent < 100 && windows < 1000) {
        hak_regret_learn(1000, 900);
        size_t now = hak_knobs.retain_learned_percent;
        assert_true(now >= before && now - before <= 10 && now <= 100);
        before = now;
        windows++;
    }
    assert_true(windows < 30); /* quickly */
    for (unsigned i = 0; i < 100; i++) {
        hak_regret_learn(1000, 1000);
        assert_int_equal(hak_knobs.retain_learned_percent, 100);
    }
}

static void no_regret_lowers_it_slowly_to_zero(void **state) {
    (void)state;
    hak_knobs.retain_learned_percent = 100;
    size_t before = 100;
    unsigned windows = 0;
    while (hak_knobs.retain_learned_percent > 0 && windows < 1000) {
        hak_regret_learn(windows % 2 == 0 ? 1000 : 0, 0); /* also when nothing is purged */
        size_t now = hak_knobs.retain_learned_percent;
        assert_true(now <= before && before - now <= 1);
        before = now;
        windows++;
    }
    assert_true(windows >= 100 && windows < 1000);
    hak_regret_learn(1000, 0);
    assert_int_equal(hak_knobs.retain_learned_percent, 0);
}

static void middling_regret_changes_nothing(void **state) {
    (void)state;
    hak_knobs.retain_learned_percent = 40;
    for (unsigned i = 0; i < 20; i++) {
        hak_regret_learn(1000, 150);
    }
    size_t settled = hak_knobs.retain_learned_percent;
    for (unsigned i = 0; i < 100; i++) {
        hak_regret_learn(1000, 150);
        assert_int_equal(hak_knobs.retain_learned_percent, settled);
    }
}

static void one_bad_window_is_averaged_away(void **state) {
    (void)state;
    hak_regret_learn(1000, 1000);
    assert_int_equal(hak_knobs.retain_learned_percent, 0);
}

/* More was wanted than this window purged: units of windows before. */
static void regret_above_all_that_was_purged_counts_as_all(void **state) {
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        hak_regret_learn(1, UINT32_MAX);
        assert_true(hak_knobs.retain_learned_percent <= 100);
    }
    assert_int_equal(hak_knobs.retain_learned_percent, 100);
    calm(state);
}

/* Purged and wanted again two seconds later, again and again: nearly all of it is exempt soon. */
static void memory_wanted_again_soon_is_exempt_from_decay(void **state) {
    (void)state;
    enum { UNITS = 400 };
    uint64_t purged = 0;
    for (unsigned breath = 0; breath < 5; breath++) {
        size_t exempt = hak_knobs.retain_wanted_bytes / HAK_UNIT_BYTES;
        purged = exempt < UNITS ? UNITS - exempt : 0;
        hak_regret_learn(purged, 0);
        hak_regret_fade(10);
        hak_regret_learn(0, purged);
        assert_true(hak_knobs.retain_wanted_bytes > (size_t)UNITS / 2 * HAK_UNIT_BYTES);
        assert_true(hak_knobs.retain_wanted_bytes <= (size_t)UNITS * HAK_UNIT_BYTES);
        hak_regret_fade(10);
    }
    assert_true(purged < UNITS / 2);
    hak_regret_fade(100); /* it ended: ten seconds */
    assert_true(hak_knobs.retain_wanted_bytes < (size_t)UNITS / 4 * HAK_UNIT_BYTES);
    hak_regret_fade(300);
    assert_int_equal(hak_knobs.retain_wanted_bytes, 0);
}

static void memory_wanted_again_late_is_not_exempt(void **state) {
    (void)state;
    hak_regret_learn(1000, 0);
    hak_regret_fade(600);
    hak_regret_learn(0, 1000);
    assert_int_equal(hak_knobs.retain_wanted_bytes, 0);
}

static void tick_without_the_option_learns_nothing_and_forgets(void **state) {
    (void)state;
    hak_regret_learn(1000, 0);
    hak_regret_learn(0, 1000);
    assert_true(hak_knobs.retain_wanted_bytes != 0);
    hak_knobs.retain_learned_percent = 50;
    hak_knobs.learn = false;
    hak_os_fault_stop_clock();
    for (unsigned i = 0; i < 2000 && hak_knobs.retain_learned_percent != 0; i++) {
        size_t before = hak_knobs.retain_learned_percent;
        hak_count_by(purge_units, 1000);
        hak_count_by(purge_regret_units, 1000);
        hak_os_fault_advance_clock(200000000);
        hak_regret_tick();
        assert_in_range(before - hak_knobs.retain_learned_percent, 0, 1);
    }
    hak_os_fault_advance_clock(1000 * 1000000000ull);
    hak_regret_tick();
    hak_os_fault_clear();
    assert_int_equal(hak_knobs.retain_learned_percent, 0);
    assert_int_equal(hak_knobs.retain_wanted_bytes, 0);
}

static void tick_learns_once_a_window(void **state) {
    (void)state;
    hak_regret_tick(); /* whatever happened before */
    hak_knobs.retain_learned_percent = 50;
    for (unsigned i = 0; i < 1000; i++) {
        hak_regret_tick();
    }
    assert_true(hak_knobs.retain_learned_percent >= 49);
    for (unsigned i = 0; i < 3; i++) {
        usleep(120000);
        hak_regret_tick();
    }
    assert_true(hak_knobs.retain_learned_percent <= 48);
    assert_true(hak_knobs.retain_learned_percent >= 45);
}

/* As when a thread reads the counters, and another thread's whole step passes before it goes on. */
static void counters_read_late_teach_nothing(void **state) {
    (void)state;
    hak_regret_tick();
    hak_counters.purge_units -= 20;
    hak_counters.purge_regret_units -= 20;
    usleep(120000);
    hak_regret_tick();
    hak_counters.purge_units += 20;
    hak_counters.purge_regret_units += 20;
    assert_true(hak_knobs.retain_wanted_bytes < (size_t)1 << 30);
    hak_regret_fade(1000);
    assert_int_equal(hak_knobs.retain_wanted_bytes, 0);
}

#define REGRET_TEST(test) cmocka_unit_test_setup(test, calm)

static const struct CMUnitTest tests[] = {
    REGRET_TEST(regret_raises_what_is_retained_to_its_bound),
    REGRET_TEST(no_regret_lowers_it_slowly_to_zero),
    REGRET_TEST(middling_regret_changes_nothing),
    REGRET_TEST(one_bad_window_is_averaged_away),
    REGRET_TEST(regret_above_all_that_was_purged_counts_as_all),
    REGRET_TEST(memory_wanted_again_soon_is_exempt_from_decay),
    REGRET_TEST(memory_wanted_again_late_is_not_exempt),
    REGRET_TEST(tick_without_the_option_learns_nothing_and_forgets),
    REGRET_TEST(tick_learns_once_a_window),
    REGRET_TEST(counters_read_late_teach_nothing),
};

UNIT_MAIN(tests)
