/* SPDX-License-Identifier: MIT
 *
 * When events run: by ticks, by time, and in whose name. And that a process with next to nothing to
 * do gives back what nobody needs. */
#include "reclaim/learner.h"
#include "span/span.h"
#include "unit/front.h"

static unsigned own_runs;
static unsigned process_runs;

static void count_own(hak_tcache_t *tcache) {
    assert_ptr_equal(tcache, self());
    own_runs++;
}

static void count_process(hak_tcache_t *tcache) {
    assert_ptr_equal(tcache, self());
    process_runs++;
}

UNIT_AROUND(event_begin) {
    hak_free(unit_malloc(1));
    hak_event_register(count_own, HAK_EVENT_OWN);
    hak_event_register(count_process, HAK_EVENT_PROCESS);
    return 0;
}

/* EVENT-1: none is left out without a word. */
UNIT_TEST(event_register_of_more_than_the_table_holds_is_fatal) {
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0; i <= HAK_EVENT_MAX; i++) {
            hak_event_register(count_own, HAK_EVENT_OWN);
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* The clock stands still, and this step of time has had its events. */
UNIT_AROUND(stop_clock) {
    hak_os_fault_stop_clock();
    hak_os_fault_advance_clock(HAK_EVENT_STEP_NS);
    self()->ticks = UINT32_MAX;
    hak_event_tick(self(), false);
    own_runs = 0;
    process_runs = 0;
    return 0;
}

UNIT_AROUND(let_clock_go) {
    hak_os_fault_clear();
    return 0;
}

#define CLOCK_TEST(name) UNIT_TEST_WITH(name, stop_clock, let_clock_go)

static void tick(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        hak_event_tick(self(), false);
    }
}

/* Another thread asks, as memory is near a limit. */
CLOCK_TEST(bins_are_flushed_once_where_a_round_of_flushes_began) {
    const hak_bin_t *bin = &self()->bin[hak_sc_of(1)];
    hak_free(unit_malloc(1));
    assert_non_null(bin->head);
    hak_add_relaxed(&hak_event_flush_round, 1);
    tick(HAK_EVENT_POLL_TICKS);
    assert_null(bin->head);
    hak_free(unit_malloc(1));
    tick(HAK_EVENT_POLL_TICKS);
    assert_non_null(bin->head);
}

CLOCK_TEST(events_without_time_run_every_256_ticks) {
    tick(HAK_EVENT_TICKS - 1);
    assert_int_equal(own_runs + process_runs, 0);
    tick(1);
    assert_int_equal(own_runs, 1);
    assert_int_equal(process_runs, 1);
    tick(3 * HAK_EVENT_TICKS);
    assert_int_equal(own_runs, 4);
    assert_int_equal(process_runs, 4);
}

CLOCK_TEST(events_run_once_a_step_of_time) {
    for (unsigned step = 1; step <= 5; step++) {
        hak_os_fault_advance_clock(HAK_EVENT_STEP_NS - 1);
        tick(HAK_EVENT_POLL_TICKS);
        assert_int_equal(process_runs, step - 1);
        hak_os_fault_advance_clock(1);
        tick(HAK_EVENT_POLL_TICKS - 1);
        assert_int_equal(process_runs, step - 1);
        tick(1);
        assert_int_equal(process_runs, step);
        assert_int_equal(own_runs, step);
        tick(HAK_EVENT_POLL_TICKS);
        assert_int_equal(process_runs, step);
        assert_int_equal(own_runs, step);
        self()->ticks = 0;
    }
}

/* However long it was: once. */
CLOCK_TEST(events_after_a_long_sleep_run_once) {
    hak_os_fault_advance_clock(3600ull * 1000000000);
    tick(4 * HAK_EVENT_POLL_TICKS);
    assert_int_equal(process_runs, 1);
    assert_int_equal(own_runs, 1);
}

static void *tick_in_thread(void *context) {
    (void)context;
    hak_free(unit_malloc(1));
    self()->ticks = 0;
    tick(HAK_EVENT_POLL_TICKS);
    return NULL;
}

/* The first that sees the step does the work of the process, each its own. */
CLOCK_TEST(events_of_the_process_run_in_one_thread) {
    hak_os_fault_advance_clock(HAK_EVENT_STEP_NS);
    tick(HAK_EVENT_POLL_TICKS);
    assert_int_equal(process_runs, 1);
    assert_int_equal(own_runs, 1);
    unit_pthread_create_and_join(tick_in_thread, NULL);
    assert_int_equal(process_runs, 1);
    assert_int_equal(own_runs, 2);
}

/* --- the whole way --------------------------------------------------------------------------- */

static size_t unused_bytes(void) {
    hak_span_stats_t stats;
    hak_span_stats(&stats);
    return stats.unused_dirty_bytes;
}

/* 20 MiB in blocks of 48 KiB, written to and freed: below every bound. */
static void leave_unused(void) {
    enum { BLOCKS = 400, BYTES = 48 << 10 };
    static void *block[BLOCKS];
    UNIT_TAKE_ALL(block, BLOCKS, memset(unit_malloc(BYTES), 1, BYTES - HAK_CANARY_BYTES));
    UNIT_FREE_ALL(block, BLOCKS);
    hak_collect_thread();
}

/* `act` every 10 ms until next to nothing is unused; a second is what it should take. Without the
 * learner: the last test's memory is taken again, so it may be worth keeping. */
static void unused_memory_goes_while(void (*act)(void)) {
    hak_knobs.learn = HAK_LEARN_OFF;
    leave_unused();
    assert_true(unused_bytes() > 10u * MIB);
    uint64_t purged = hak_counters.purge_units;
    unsigned rounds = 0;
    for (; unused_bytes() > 2u * MIB && rounds < 1000; rounds++) {
        act();
        hak_os_fault_advance_clock(10000000);
    }
    assert_in_range(rounds, 1, 200);
    assert_true(hak_counters.purge_units - purged > 8u * MIB / HAK_UNIT_BYTES);
}

static void act_refill(void) {
    static void *last;
    hak_free(last);
    hak_tcache_flush(self());
    last = unit_malloc(64);
}

CLOCK_TEST(refill_every_10_ms_brings_unused_memory_back) {
    unused_memory_goes_while(act_refill);
}

static void act_large(void) {
    hak_free(unit_malloc(100000));
}

CLOCK_TEST(large_block_every_10_ms_brings_unused_memory_back) {
    unused_memory_goes_while(act_large);
}

enum { OWN_BLOCKS = 60000 };
static void *own_block[OWN_BLOCKS];
static unsigned own_next;

static void act_free(void) {
    UNIT_FREE_ALL(own_block + own_next, 50);
    own_next += 50;
}

/* Of a thread that frees its own blocks and does nothing else. */
CLOCK_TEST(frees_every_10_ms_bring_unused_memory_back) {
    UNIT_TAKE_ALL(own_block, OWN_BLOCKS, unit_malloc(256));
    unused_memory_goes_while(act_free);
    UNIT_FREE_ALL(own_block + own_next, OWN_BLOCKS - own_next);
}

UNIT_GROUP(event_begin)
