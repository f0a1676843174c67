/* SPDX-License-Identifier: MIT
 *
 * fork in a signal handler of a program with one thread, wherever in the allocator the signal came:
 * until POSIX.1-2017 fork was async-signal-safe, and glibc's is while there is one thread.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "api/family.h"

enum { FORKS = 2000, PAUSE_NS = 300000, BLOCKS = 64, LEAST_BYTES = 70000, FORK_EVERY = 20 };

static timer_t timer;
static volatile sig_atomic_t fork_count;
static volatile sig_atomic_t failure_count;

/* The next signal comes a while after this one was dealt with. */
static void timer_start(void) {
    struct itimerspec setting = {.it_value = {0, PAUSE_NS}};
    timer_settime(timer, 0, &setting, NULL);
}

static void fork_in_handler(int signal_number) {
    (void)signal_number;
    int saved = errno;
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        failure_count = failure_count + 1;
    }
    fork_count = fork_count + 1;
    timer_start();
    errno = saved;
}

/* The signal may come while the program itself forks. */
static void fork_here(void) {
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    EXPECT_CHILD(child, 0);
}

static void signal_handler_that_forks_comes_back(void) {
    static void *blocks[BLOCKS];
    uint64_t state = 1;
    timer_start();
    while (fork_count < FORKS) {
        uint64_t draw = expect_random(&state);
        size_t i = draw % BLOCKS;
        family.free(blocks[i]);
        size_t small = 16 + (draw >> 32) % 500;
        size_t large = LEAST_BYTES + (draw >> 32) % 400000;
        blocks[i] = family.malloc((draw >> 20 & 1) != 0 ? small : large);
        EXPECT(blocks[i] != NULL);
        if (draw % FORK_EVERY == 0) {
            fork_here();
        }
    }
    EXPECT_EQ(failure_count, 0);
}

int main(void) {
    family_load();
    struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
        expect_skip("no timers here");
    }
    expect_watchdog();
    RUN(signal_handler_that_forks_comes_back);
    return expect_status();
}
