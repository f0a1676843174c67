/* SPDX-License-Identifier: MIT
 *
 * A thread met a fatal error and sits in its handler of SIGABRT for ever, as those of crash
 * reporters do; another thread forks the reporter. fork must come back, and the child must be able
 * to allocate, as must the thread in its handler.
 */
#include <signal.h>

#include "thread/block.h"

enum { BLOCKS = 8, REPORT_COUNT = 500 };

static atomic_bool has_crashed;

static void report(void) {
    uint64_t state = 3;
    block_t *blocks[REPORT_COUNT];
    blocks_make(blocks, REPORT_COUNT, &state);
    blocks_unmake(blocks, REPORT_COUNT, &state);
}

static void handle_abort(int signal_number) {
    (void)signal_number;
    report();
    atomic_store(&has_crashed, true);
    for (;;) {
        pause();
    }
}

/* The double free is found when the thread ends and its blocks are sorted. */
static void *free_twice(void *argument) {
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; ++i) {
        blocks[i] = family.malloc(40);
    }
    for (size_t i = 0; i < BLOCKS; ++i) {
        family.free(blocks[i]);
    }
    family.free(blocks[1]);
    return argument;
}

static void fork_beside_a_crashed_thread_comes_back(void) {
    struct sigaction action = {.sa_handler = handle_abort};
    sigaction(SIGABRT, &action, NULL);
    thread_start(free_twice, NULL);
    while (!atomic_load(&has_crashed)) {
        usleep(1000);
    }
    for (size_t i = 0; i < 3; ++i) {
        pid_t child = fork();
        if (child == 0) {
            report();
            _exit(0);
        }
        EXPECT_CHILD(child, 0);
        report();
    }
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(fork_beside_a_crashed_thread_comes_back);
    int status = expect_status();
    fflush(stdout);
    _exit(status);
}
