/* SPDX-License-Identifier: MIT
 *
 * mallctl before main, in a signal handler that interrupts malloc and free, in threads, and in the
 * child of a fork: an error number at worst, and nothing is lost. */
#include "compat/mallctl.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static size_t early_allocated;
static int early_error = -1;

__attribute__((constructor(102))) static void before_main(void) {
    size_t length = sizeof early_allocated;
    dallocx(mallocx(100, MALLOCX_ZERO), 0);
    early_error = mallctl("stats.allocated", &early_allocated, &length, NULL, 0);
}

static void before_main_it_works(void) {
    EXPECT_EQ(early_error, 0);
}

static volatile sig_atomic_t handled;

static void on_signal(int signal) {
    uint64_t epoch = 1;
    size_t value = 0, length = sizeof value;
    (void)signal;
    int error = mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    if ((error != 0 && error != EAGAIN) || mallctl("stats.active", &value, &length, NULL, 0) != 0 ||
        value == 0) {
        _exit(3);
    }
    handled++;
}

enum { SIGNALS = 200 };

/* One after the other, each when the last was handled. */
static void *send_signals(void *receiver) {
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(*(pthread_t *)receiver, SIGUSR1);
        while (handled <= i) {
            sched_yield();
        }
    }
    return NULL;
}

static void in_a_signal_handler_it_answers(void) {
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    pthread_t sender, self = pthread_self();
    static void *block[1000];
    EXPECT_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    next_epoch();
    size_t before = read_size("stats.allocated");
    EXPECT_EQ(pthread_create(&sender, NULL, send_signals, &self), 0);
    for (unsigned round = 0; handled < SIGNALS; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            block[i] = malloc(i * (round % 7) + 1);
        }
        for (unsigned i = 0; i < 1000; i++) {
            free(block[i]);
        }
    }
    EXPECT_EQ(pthread_join(sender, NULL), 0);
    next_epoch();
    EXPECT(read_size("stats.allocated") <= before + 4096); /* of the thread */
}

static void *work(void *context) {
    unsigned seed = (unsigned)(uintptr_t)context;
    void *kept[64] = {0};
    for (unsigned i = 0; i < expect_cases(3000); i++) {
        seed = seed * 1103515245u + 12345;
        unsigned at = seed >> 16 & 63;
        int flags = seed >> 22 & 1 ? MALLOCX_TCACHE_NONE : 0;
        dallocx(kept[at], flags);
        kept[at] = mallocx((seed >> 24) * 37 + 1, flags);
        if (i % 500 == 0) {
            next_epoch();
            for (unsigned bin = 0; bin < 39; bin += 6) {
                (void)read_bin(bin, "curregs");
            }
        }
        size_t out[3], length = sizeof out;
        EXPECT_EQ(mallctl("experimental.utilization.batch_query", out, &length, &kept[at], 8), 0);
        EXPECT(out[0] < out[1]);
    }
    for (unsigned i = 0; i < 64; i++) {
        dallocx(kept[i], 0);
    }
    return NULL;
}

static void threads_may_all_call(void) {
    pthread_t thread[6];
    for (uintptr_t i = 0; i < 6; i++) {
        EXPECT_EQ(pthread_create(&thread[i], NULL, work, (void *)(i + 1)), 0);
    }
    for (unsigned i = 0; i < 6; i++) {
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    }
}

static void a_forked_child_has_its_own_figures(void) {
    void *held = malloc(1000000);
    next_epoch();
    size_t before = read_size("stats.allocated");
    pid_t child = fork();
    if (child == 0) {
        free(held);
        next_epoch();
        _exit(read_size("stats.allocated") + 1000000 <= before ? 0 : 1);
    }
    EXPECT_CHILD(child, 0);
    next_epoch();
    EXPECT_EQ(read_size("stats.allocated"), before);
    free(held);
}

int main(void) {
    RUN(before_main_it_works);
    RUN(in_a_signal_handler_it_answers);
    RUN(threads_may_all_call);
    RUN(a_forked_child_has_its_own_figures);
    return expect_status();
}
