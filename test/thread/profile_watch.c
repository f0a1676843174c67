/* SPDX-License-Identifier: MIT
 *
 * Linked into the random stress: a thread that reads what the heap profile says of itself, changes
 * its rate and forgets it, while signals interrupt all threads. Nothing may wait for anything for
 * ever (PROFILE-1), and a child of a fork has a profile of its own. (Documents of a running process
 * are the observer's: test/observe/busy_test.py.)
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#include "base/atomics.h"
#include "double/profile_state.h"
#include "front/hooks.h"

static uint32_t ticks; /* [atomic] */

static void read_state(void) {
    hak_profile_state_t state;
    hak_profile_look(&state);
}

static void *watch(void *unused) {
    static const size_t rates[] = {4096, 4096, 0, 512 << 10, 4096, 64 << 10};
    for (unsigned round = 0;; round++) {
        struct timespec nap = {.tv_nsec = 20000000};
        (void)hak_profile_set_rate(rates[round % (sizeof rates / sizeof rates[0])]);
        if (round % 7 == 0) {
            hak_profile_reset();
        }
        nanosleep(&nap, NULL);
        read_state();
    }
    return unused;
}

static void tick(int signal) {
    (void)signal;
    hak_add_relaxed(&ticks, 1);
}

static void in_child(void) {
    read_state();
}

__attribute__((constructor)) static void watch_begin(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}};
    pthread_t thread;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    hak_life_process_start();
    pthread_atfork(NULL, NULL, in_child);
    if (pthread_create(&thread, NULL, watch, NULL) != 0) {
        __builtin_trap();
    }
    pthread_detach(thread);
}
