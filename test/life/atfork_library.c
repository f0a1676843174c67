/* SPDX-License-Identifier: MIT
 *
 * A library that, as many do, holds a mutex of its own across fork, and says so before anything
 * was allocated: its handlers may be registered before the allocator's. Used by atfork_test.c.
 */
#include <pthread.h>

extern pthread_mutex_t atfork_mutex;
pthread_mutex_t atfork_mutex = PTHREAD_MUTEX_INITIALIZER;

static void prepare(void) {
    pthread_mutex_lock(&atfork_mutex);
}

static void after(void) {
    pthread_mutex_unlock(&atfork_mutex);
}

__attribute__((constructor)) static void start(void) {
    pthread_atfork(prepare, after, after);
}
