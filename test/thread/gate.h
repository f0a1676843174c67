/* SPDX-License-Identifier: MIT
 *
 * A gate threads sleep at: each says that it has come and waits until the gate opens, which in
 * these tests is when the last thing was measured. */
#ifndef HAK_TEST_THREAD_GATE_H
#define HAK_TEST_THREAD_GATE_H

#include <pthread.h>

#include "api/family.h"

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t waiting;
    bool is_open;
} gate_t;

#define GATE_CLOSED                                                                                \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER }

static inline void gate_sleep(gate_t *gate) {
    pthread_mutex_lock(&gate->lock);
    ++gate->waiting;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->is_open) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

/* Returns when `count` threads sleep at the gate. */
static inline void gate_await(gate_t *gate, size_t count) {
    pthread_mutex_lock(&gate->lock);
    while (gate->waiting < count) {
        pthread_cond_wait(&gate->changed, &gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
}

static inline void gate_open(gate_t *gate) {
    pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

/* What goes on elsewhere while threads sleep: so many times, a millisecond apart, a little of
 * everything, nothing kept. Memory that the allocator gives back only when somebody calls it, it
 * can give now; one large block each time reaches its slow paths. */
static inline void gate_activity(size_t milliseconds) {
    enum { BLOCKS = 200, LARGE_BYTES = 200000 };
    for (size_t passed = 0; passed < milliseconds; ++passed) {
        void *blocks[BLOCKS];
        for (size_t i = 0; i < BLOCKS; ++i) {
            blocks[i] = family.malloc(16 + i * 37 % 1000);
            EXPECT(blocks[i] != NULL);
        }
        for (size_t i = 0; i < BLOCKS; ++i) {
            family.free(blocks[i]);
        }
        void *large = family.malloc(LARGE_BYTES);
        EXPECT(large != NULL);
        family.free(large);
        usleep(1000);
    }
}

#endif
