/* SPDX-License-Identifier: MIT
 *
 * Threads with the least stack the C library allows (musl: 2 KiB), while the heap profiler samples
 * most of their blocks: allocation and free fit into it. */
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/expect.h"

enum { ROUNDS = 3000, LARGEST = 400, LARGE_BYTES = 100000 };

static void *allocate(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        void *volatile block = malloc((size_t)(i % LARGEST + 1));
        free(block);
    }
    void *volatile large = malloc(LARGE_BYTES);
    free(large);
    return unused;
}

static void sampling_fits_the_least_stack(void) {
    long least = sysconf(_SC_THREAD_STACK_MIN);
    size_t bytes = least > PTHREAD_STACK_MIN ? (size_t)least : (size_t)PTHREAD_STACK_MIN;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    EXPECT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    EXPECT_EQ(pthread_create(&thread, &attributes, allocate, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

int main(void) {
    expect_watchdog();
    RUN(sampling_fits_the_least_stack);
    return expect_status();
}
