/* SPDX-License-Identifier: MIT
 *
 * The learner in a process whose threads come and vanish, and which forks in the middle of windows:
 * real events, a clock that runs a hundred times as fast. Do the children begin anew and learn by
 * themselves, and does the parent follow its load, whichever threads reported it? unit tests of
 * reclaim/ have one thread and no real events.
 * Arguments: forks (default 16), threads (default 4).
 */
#include "double/learner_view.h"
#include "double/os_fault.h"
#include "thread/block.h"

enum { BLOCKS = 60, BLOCK_BYTES = 700000, THREADS_MAX = 16, STEP_MS = 10 };
enum { HIGH_STEPS = 30, LOW_STEPS = 80, SWINGS_MOST = 60 };

static size_t fork_count, thread_count;

static learner_view_t view(void) {
    return learner_view(HAK_LEARNER_UNITS);
}

/* Slow paths tick: events look at the clock. */
static void steps_pass(size_t steps) {
    for (size_t i = 0; i < steps; i++) {
        hak_os_fault_advance_clock(STEP_MS * 1000000);
        for (size_t tick = 0; tick < 20; tick++) {
            family.free(family.malloc(70000));
        }
    }
}

/* 40 MiB for 0.3 s, then none for 0.8: the learner keeps them for longer. */
static void swing(size_t low_steps) {
    static void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = family.malloc(BLOCK_BYTES);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], 1, BLOCK_BYTES);
    }
    steps_pass(HIGH_STEPS);
    for (size_t i = 0; i < BLOCKS; i++) {
        family.free(blocks[i]);
    }
    steps_pass(low_steps);
}

static void learn(void) {
    size_t swings = 0;
    while (HAK_STRATEGY_MS[view().strategy] <= 400 && swings++ < SWINGS_MOST) {
        swing(LOW_STEPS);
    }
    EXPECT(HAK_STRATEGY_MS[view().strategy] > 400);
}

/* Ends with blocks in its cache, in the middle of a window. */
static void *work_and_vanish(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    for (size_t round = 0; round < 50; round++) {
        void *block = family.malloc(70000 + expect_random(&state) % 900000);
        family.free(family.malloc(expect_random(&state) % 5000));
        family.free(block);
    }
    return NULL;
}

static void child_main(void) {
    expect_watchdog();
    learner_view_t found = view();
    EXPECT(found.strategy == HAK_STRATEGY_STANDARD && found.age_ms == 0);
    EXPECT_EQ(found.price[HAK_STRATEGIES - 1].held, 0);
    learn();
    _exit(0);
}

static void forks_between_vanishing_threads_leave_both_sides_learning(void) {
    pthread_t threads[THREADS_MAX];
    learn();
    for (size_t i = 0; i < fork_count; i++) {
        threads_start(threads, thread_count, work_and_vanish, i);
        steps_pass(i % HIGH_STEPS);
        pid_t child = fork();
        if (child == 0) {
            child_main();
        }
        EXPECT(child > 0);
        EXPECT(HAK_STRATEGY_MS[view().strategy] > 400); /* the parent's stays */
        threads_join(threads, thread_count);
        swing(LOW_STEPS);
        EXPECT_CHILD(child, 0);
    }
}

int main(int argc, char **argv) {
    fork_count = expect_arg(argc, argv, 1, expect_cases(16));
    thread_count = expect_arg(argc, argv, 2, 4);
    if (thread_count > THREADS_MAX) {
        expect_skip("too many threads");
    }
    family_load();
    expect_watchdog();
    hak_os_fault_stop_clock();
    RUN(forks_between_vanishing_threads_leave_both_sides_learning);
    return expect_status();
}
