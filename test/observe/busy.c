/* SPDX-License-Identifier: MIT
 *
 * Threads that take, write and free blocks of all kinds, and send signals to themselves, until the
 * process is killed, while busy_test.py observes them. No signal may be lost. Writes "ready" once
 * all have begun. */
#include <pthread.h>
#include <signal.h>

#include "api/expect.h"

enum { THREADS = 4, BLOCKS = 2048, LARGE = 100000, HUGE = 3 << 20 };

static pthread_barrier_t barrier;

static _Thread_local volatile sig_atomic_t handled;

static void handle(int number) {
    (void)number;
    handled++;
}

static size_t draw_bytes(uint32_t random) {
    return random % 16384 == 0 ? HUGE : random % 512 == 0 ? LARGE : 16 + random % 3000;
}

static void *thread(void *number) {
    static _Thread_local void *block[BLOCKS];
    uint32_t random = (uint32_t)(size_t)number;
    for (size_t i = 0;; i++) {
        random = random * 1664525 + 1013904223;
        size_t at = random >> 8 & (BLOCKS - 1), bytes = draw_bytes(random >> 4);
        free(block[at]);
        block[at] = malloc(bytes);
        EXPECT(block[at] != NULL);
        memset(block[at], 1, bytes < 4096 ? bytes : 4096);
        sig_atomic_t before = handled;
        if (raise(SIGUSR1) != 0 || handled != before + 1) {
            abort();
        }
        if (i == BLOCKS) {
            pthread_barrier_wait(&barrier);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t id;
    EXPECT(signal(SIGUSR1, handle) != SIG_ERR);
    EXPECT(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&id, NULL, thread, (void *)i) == 0);
    }
    pthread_barrier_wait(&barrier);
    EXPECT(write(1, "ready\n", 6) == 6);
    pause();
    return 0;
}
