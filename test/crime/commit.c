/* SPDX-License-Identifier: MIT
 *
 * The main of a program of crimes, one per name, and what they share. */
#include "crimes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int commit_named(const crime_t *crimes, size_t count, int argc, char **argv) {
    for (size_t i = 0; i < count; i++) {
        if (argc < 2) {
            puts(crimes[i].name);
        } else if (strcmp(crimes[i].name, argv[1]) == 0) {
            crimes[i].commit();
            puts("unnoticed");
            return 3;
        }
    }
    return argc < 2 ? 0 : 2;
}

void in_thread(void *(*run)(void *), void *block) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, block) != 0) {
        exit(4);
    }
    pthread_join(thread, NULL);
}

static void *free_it(void *block) {
    free(block);
    return NULL;
}

void free_in_thread(void *block) {
    in_thread(free_it, block);
}
