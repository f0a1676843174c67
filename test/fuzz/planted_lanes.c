/* SPDX-License-Identifier: MIT
 *
 * The threads of a random program: one at a time, each in the same place of all runs. */
#include "fuzz/planted.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

typedef struct lane {
    pthread_t thread;
    bool is_started;
    sem_t asked, done;
    void (*run)(void *);
    void *argument;
} lane_t;

static lane_t lanes[PLANTED_LANES];

static void *lane_main(void *argument) {
    lane_t *lane = argument;
    for (;;) {
        while (sem_wait(&lane->asked) != 0) {
        }
        if (lane->run == NULL) {
            return NULL;
        }
        lane->run(lane->argument);
        sem_post(&lane->done);
    }
}

void planted_start_lanes(unsigned count) {
    for (unsigned i = 1; i < count; i++) {
        sem_init(&lanes[i].asked, 0, 0);
        sem_init(&lanes[i].done, 0, 0);
        lanes[i].is_started = pthread_create(&lanes[i].thread, NULL, lane_main, &lanes[i]) == 0;
        planted_expect(lanes[i].is_started, "no thread");
    }
}

/* Lane 0 is the main thread. */
void planted_in_lane(unsigned number, void (*run)(void *), void *argument) {
    lane_t *lane = &lanes[number];
    if (number == 0) {
        run(argument);
        return;
    }
    lane->run = run;
    lane->argument = argument;
    sem_post(&lane->asked);
    while (sem_wait(&lane->done) != 0) {
    }
}

void planted_end_lanes(void) {
    for (unsigned i = 1; i < PLANTED_LANES; i++) {
        if (lanes[i].is_started) {
            lanes[i].run = NULL;
            sem_post(&lanes[i].asked);
            pthread_join(lanes[i].thread, NULL);
            lanes[i].is_started = false;
        }
    }
}

static void lane_free(void *block) {
    free(block);
}

void planted_free_in_lane(unsigned lane, void *block) {
    planted_say("%u: free %p\n", lane, block);
    planted_in_lane(lane, lane_free, block);
}
