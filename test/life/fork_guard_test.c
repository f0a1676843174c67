/* SPDX-License-Identifier: MIT
 *
 * fork while other threads take and give back slots of the sampled guard (guard_rate:1): in the
 * child each slot is free or holds a block in use, and those that are free are accessible to nobody
 * and can all be used.
 * Arguments: forks (default 300), other threads (default 3).
 */
#include "guard/slot.h"
#include "os/optional.h"
#include "thread/block.h"

enum { THREADS_MAX = 16, KEPT = 400, BYTES = 64, LIKELY = 100000 };

static size_t fork_count, thread_count;
static atomic_bool stop;

/* More than bins hold, so that they are refilled: each refill hands a watched block out. */
static void *allocate_until_stopped(void *argument) {
    void *kept[KEPT];
    (void)argument;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (size_t i = 0; i < KEPT; ++i) {
            kept[i] = family.malloc(BYTES << i % 5);
        }
        for (size_t i = 0; i < KEPT; ++i) {
            family.free(kept[i]);
        }
    }
    return NULL;
}

static bool is_free(size_t index) {
    return hak_guard_region.slot[index].state != HAK_GUARD_LIVE;
}

static void expect_slots_at_rest(void) {
    hak_guard_region_t *region = &hak_guard_region;
    size_t page = hak_os_page_bytes(), free_count = 0;
    bool is_queued[HAK_GUARD_SLOTS_MOST] = {false};
    for (size_t i = 0; i < region->queue_count; ++i) {
        is_queued[region->queue[(region->queue_first + i) % region->slot_count]] = true;
    }
    for (size_t i = 0; i < region->slot_count; ++i) {
        EXPECT_EQ(is_queued[i], is_free(i));
        EXPECT(!is_free(i) || !hak_os_is_readable(region->base + (2 * i + 1) * page));
        free_count += is_free(i);
    }
    EXPECT_EQ(region->queue_count, free_count);
}

static void child_main(void) {
    expect_watchdog();
    expect_slots_at_rest();
    for (size_t i = 0; hak_guard_region.queue_count != 0; ++i) {
        EXPECT(i < LIKELY); /* each refill hands one out */
        EXPECT(family.malloc(BYTES) != NULL);
    }
    _exit(0);
}

static void fork_with_slots_in_other_hands_leaves_them_to_the_child(void) {
    pthread_t threads[THREADS_MAX];
    family.free(family.malloc(BYTES));
    threads_start(threads, thread_count, allocate_until_stopped, 0);
    while (hak_load_acquire(&hak_guard_region.base) == NULL) {
        EXPECT(family.malloc(BYTES) != NULL);
    }
    for (size_t i = 0; i < fork_count; ++i) {
        pid_t child = fork();
        if (child == 0) {
            child_main();
        }
        EXPECT_CHILD(child, 0);
    }
    atomic_store(&stop, true);
    threads_join(threads, thread_count);
}

int main(int argc, char **argv) {
    fork_count = expect_arg(argc, argv, 1, expect_cases(300));
    thread_count = expect_arg(argc, argv, 2, 3);
    if (thread_count > THREADS_MAX) {
        expect_skip("too many threads");
    }
    family_load();
    expect_watchdog();
    RUN(fork_with_slots_in_other_hands_leaves_them_to_the_child);
    return expect_status();
}
