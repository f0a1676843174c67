/* SPDX-License-Identifier: MIT
 *
 * The sampled guard: when a block is watched, where it is put, and how slots go round. */
#include "unit/guard.h"

/* First, while there is no region. */
UNIT_TEST(region_that_the_kernel_refuses_costs_a_sample_only) {
    static const hak_os_call_t calls[] = {HAK_OS_CALL_MAP, HAK_OS_CALL_COMMIT};
    self();
    for (unsigned i = 0; i < UNIT_COUNT(calls); i++) {
        hak_os_fault_plan(calls[i], 0, 2); /* a smaller one as well */
        UNIT_EXPECT(guard_sample(64, HAK_BLOCK_ALIGN) == NULL, "call %u", (unsigned)calls[i]);
        hak_os_fault_clear();
    }
    char *block = guard_sample(64, HAK_BLOCK_ALIGN);
    assert_non_null(block);
    hak_fast_free(block);
}

UNIT_TEST(handler_that_the_kernel_refuses_ends_the_guard) {
    self();
    for (unsigned is_refused = 2; is_refused-- > 0;) {
        hak_os_fault_plan(HAK_OS_CALL_SIGNAL, 0, is_refused);
        hak_guard_start();
        hak_os_fault_clear();
        char *block = guard_sample(64, HAK_BLOCK_ALIGN);
        assert_int_equal(block == NULL, is_refused);
        hak_free(block);
        assert_int_equal(hak_knobs.guard, !is_refused);
        hak_knobs.guard = true;
    }
}

/* GUARD-1 */
UNIT_TEST(block_of_any_size_is_alone_between_guards) {
    size_t page = hak_os_page_bytes();
    size_t sizes[] = {0, 1, 8, 15, 16, 17, 100, 1000, 2049, page - 1, page};
    for (unsigned i = 0; i < 4 * UNIT_COUNT(sizes); i++) {
        size_t bytes = sizes[i % UNIT_COUNT(sizes)];
        char *block = guard_sample(bytes, HAK_BLOCK_ALIGN);
        assert_non_null(block);
        char *left = guard_page(block);
        assert_true(guard_is_watched(block));
        assert_int_equal((uintptr_t)block % HAK_BLOCK_ALIGN, 0);
        assert_true(block + bytes <= left + page);
        assert_true(block == left || left + page - (block + bytes) < HAK_BLOCK_ALIGN || bytes == 0);
        assert_false(hak_os_is_readable(left - 8));
        assert_false(hak_os_is_readable(left + page));
        assert_int_equal(hak_usable_size(block), bytes == 0 ? 1 : bytes);
        memset(block, 0x5a, bytes);
        hak_fast_free(block);
        assert_false(hak_os_is_readable(left));
    }
}

/* A refill that brings all the bin may hold has no place for the block that is not handed out. */
UNIT_TEST(refill_of_a_bounded_bin_that_is_sampled_leaves_no_block_too_many) {
    enum { SC_64 = 3, BOUND = 2, SAMPLES = 20, COUNT = 50 * SAMPLES };
    static void *block[COUNT];
    hak_knobs_t saved = hak_knobs;
    hak_tcache_t *tcache = self();
    hak_knobs.bin_max_blocks = BOUND;
    hak_collect_thread();
    unsigned samples = 0, count = 0;
    for (; count < COUNT && samples < SAMPLES; count++) {
        tcache->guard_left = tcache->guard_left > 2 ? 2 : tcache->guard_left;
        block[count] = hak_malloc(64);
        samples += guard_is_watched(block[count]);
        UNIT_EXPECT(tcache->side[SC_64].total - tcache->bin[SC_64].slots_left <= BOUND, "%u",
                    count);
    }
    while (count > 0) {
        hak_free(block[--count]);
    }
    assert_int_equal(samples, SAMPLES);
    hak_knobs = saved;
    hak_collect_thread();
}

UNIT_TEST(block_of_any_alignment_has_it) {
    size_t page = hak_os_page_bytes();
    for (size_t align = HAK_BLOCK_ALIGN; align <= page; align *= 2) {
        for (unsigned i = 0; i < 8; i++) {
            char *block = guard_sample(align / 2 + 3, align);
            assert_non_null(block);
            UNIT_EXPECT((uintptr_t)block % align == 0, "%zu", align);
            memset(block, 1, align / 2 + 3);
            hak_fast_free(block);
        }
    }
    assert_null(guard_sample(1, 2 * page));
    assert_null(guard_sample(page + 1, HAK_BLOCK_ALIGN));
}

/* GUARD-3 */
UNIT_TEST(slots_are_used_in_the_order_they_were_freed_in) {
    char *all[HAK_GUARD_SLOTS_MOST];
    hak_fast_free(guard_sample(100, HAK_BLOCK_ALIGN)); /* there is a region */
    for (unsigned i = 0; i < hak_guard_region.slot_count; i++) {
        all[i] = guard_sample(100, HAK_BLOCK_ALIGN);
        UNIT_EXPECT(all[i] != NULL, "slot %u", i);
        memset(all[i], (int)i, 100);
    }
    assert_null(guard_sample(100, HAK_BLOCK_ALIGN)); /* no free slot, no sample */
    for (unsigned i = 0; i < hak_guard_region.slot_count; i++) {
        assert_true(unit_is_filled(all[i], 100, (unsigned char)i));
    }
    static const unsigned order[] = {90, 3, 126, 0, 41};
    for (unsigned i = 0; i < UNIT_COUNT(order); i++) {
        hak_fast_free(all[order[i]]);
    }
    for (unsigned i = 0; i < UNIT_COUNT(order); i++) {
        char *again = guard_sample(100, HAK_BLOCK_ALIGN);
        assert_ptr_equal(guard_page(again), guard_page(all[order[i]]));
        all[order[i]] = again;
    }
    UNIT_FREE_ALL(all, hak_guard_region.slot_count);
}

/* GUARD-4: where every block is watched they keep it: test/limits/watched_test.c. */
UNIT_TEST(sampled_slot_gives_its_page_back_when_freed) {
    char *block = guard_sample(100, HAK_BLOCK_ALIGN);
    memset(block, 1, 100);
    hak_os_fault_clear();
    hak_fast_free(block);
    assert_int_equal(hak_os_fault_calls(HAK_OS_CALL_PURGE), hak_guard_region.keeps_pages ? 0 : 1);
}

UNIT_TEST(slot_that_the_kernel_refuses_is_not_lost) {
    for (unsigned i = 0; i < 2 * hak_guard_region.slot_count; i++) {
        hak_os_fault_plan(HAK_OS_CALL_COMMIT, 0, 1);
        assert_null(guard_sample(32, HAK_BLOCK_ALIGN));
        hak_os_fault_clear();
        char *block = guard_sample(32, HAK_BLOCK_ALIGN);
        UNIT_EXPECT(block != NULL, "round %u", i);
        hak_os_fault_plan(HAK_OS_CALL_CONCEAL, 0, i % 2);
        hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, i % 3 == 0);
        hak_fast_free(block);
        hak_os_fault_clear();
    }
    slots_are_used_in_the_order_they_were_freed_in(state);
}

UNIT_TEST(refills_hand_out_one_in_so_many) {
    enum { BLOCKS = 200000, RATE = 200 };
    static void *block[BLOCKS];
    uint64_t before = hak_load_relaxed(&hak_counters.guard_sample);
    hak_store_relaxed(&hak_knobs.guard_rate, RATE);
    self()->guard_left = 1;
    for (unsigned i = 0; i < BLOCKS; i++) {
        block[i] = hak_fast_malloc(48);
        assert_non_null(block[i]);
        if (guard_is_watched(block[i])) {
            hak_fast_free(block[i]);
            block[i] = NULL;
        }
    }
    uint64_t count = hak_load_relaxed(&hak_counters.guard_sample) - before;
    UNIT_FREE_ALL(block, BLOCKS);
    audit();
    UNIT_EXPECT(count > BLOCKS / RATE / 2 && count < BLOCKS / RATE * 2, "%lu",
                (unsigned long)count);
}

UNIT_TEST(lower_rate_reaches_a_thread_that_counts_down) {
    hak_fast_free(guard_sample(48, HAK_BLOCK_ALIGN)); /* the generator is begun */
    hak_store_relaxed(&hak_knobs.guard_rate, 100);
    self()->guard_left = 199;
    hak_guard_follow(self());
    assert_int_equal(self()->guard_left, 199); /* it may be so long */
    self()->guard_left = 1 << 30;
    void *kept = NULL;
    for (unsigned i = 0; i < 100000 && self()->guard_left > 199; i++) { /* by events */
        void *block = hak_fast_malloc(65000);
        hak_fast_free(kept);
        kept = block;
        self()->ticks += HAK_EVENT_POLL_TICKS - 1 - self()->ticks % HAK_EVENT_POLL_TICKS;
        hak_event_tick(self(), false);
    }
    hak_fast_free(kept);
    assert_in_range(self()->guard_left, 1, 199);
}

UNIT_TEST(option_off_stops_the_countdown) {
    hak_store_relaxed(&hak_knobs.guard, false);
    hak_guard_start();
    assert_null(guard_sample(100, HAK_BLOCK_ALIGN));
    assert_true(self()->guard_left > INT64_MAX / 2);
    hak_store_relaxed(&hak_knobs.guard, true);
    hak_guard_start();
    hak_fast_free(guard_sample(100, HAK_BLOCK_ALIGN));
}

/* Another thread has it in hand, as a child of a fork finds it. */
static hak_guard_slot_t *slot_in_hand(void) {
    hak_guard_region_t *region = &hak_guard_region;
    hak_guard_slot_t *slot = &region->slot[region->queue[region->queue_first]];
    region->queue_first = (region->queue_first + 1) % hak_guard_region.slot_count;
    region->queue_count--;
    return slot;
}

/* GUARD-2 */
UNIT_TEST(fork_loses_no_slot_of_threads_that_are_gone) {
    size_t page = hak_os_page_bytes();
    char *live = guard_sample(100, HAK_BLOCK_ALIGN), *freed = guard_sample(64, HAK_BLOCK_ALIGN);
    hak_guard_slot_of(freed)->state = HAK_GUARD_FREED; /* and no further */
    slot_in_hand();
    hak_guard_slot_t *filled = slot_in_hand();
    char *block = hak_guard_region.base + (2 * (filled - hak_guard_region.slot) + 1) * page;
    assert_true(hak_os_commit(block, page));
    filled->state = HAK_GUARD_UNUSED;
    filled->block = block;

    hak_guard_after_fork(true);
    assert_int_equal(hak_guard_region.queue_count, hak_guard_region.slot_count - 1);
    assert_null(filled->block);
    assert_false(hak_os_is_readable(block));
    assert_false(hak_os_is_readable(freed));
    UNIT_EXPECT_FATAL(hak_fast_free(freed), "double free");
    assert_null(strstr(unit_fatal.line, "freed by"));
    assert_int_equal(hak_usable_size(live), 100);
    hak_fast_free(live);
    slots_are_used_in_the_order_they_were_freed_in(state);
}

UNIT_TEST(fork_that_is_not_clean_stops_sampling_alone) {
    char *block = guard_sample(100, HAK_BLOCK_ALIGN);
    hak_guard_after_fork(true);
    hak_fast_free(guard_sample(100, HAK_BLOCK_ALIGN));
    hak_guard_after_fork(false);
    assert_null(guard_sample(100, HAK_BLOCK_ALIGN));
    assert_int_equal(hak_usable_size(block), 100);
    hak_fast_free(block);
    UNIT_EXPECT_FATAL(hak_fast_free(block), "double free");
}
