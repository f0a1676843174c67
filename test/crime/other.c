/* SPDX-License-Identifier: MIT
 *
 * Another thread, which does what it is told and stays, with whatever it has in hand. */
#include "crimes.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static struct {
    void (*run)(void *);
    void *block;
    sem_t is_told, is_done;
} other;

static void *other_thread(void *argument) {
    (void)argument;
    for (;;) {
        sem_wait(&other.is_told);
        other.run(other.block);
        sem_post(&other.is_done);
    }
    return NULL;
}

void start_other(void) {
    pthread_t thread;
    sem_init(&other.is_told, 0, 0);
    sem_init(&other.is_done, 0, 0);
    if (pthread_create(&thread, NULL, other_thread, NULL) != 0) {
        exit(4);
    }
}

void by_other(void (*run)(void *), void *block) {
    other.run = run;
    other.block = block;
    sem_post(&other.is_told);
    sem_wait(&other.is_done);
}
