/* SPDX-License-Identifier: MIT
 *
 * A program with few allocations, and an error in most of them: seldom_test.py. It sleeps most of
 * the time, and grows, so that bins are refilled. Every block that it frees is read once more. */
#include "crimes.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 16, FREED = 12, STEP_NS = 1000000 };

static volatile char sink;

static time_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

/* 1 process in 16 has a region of guarded blocks from its start; here each has one. */
static void make_region(void) {
    static void *volatile kept[20000];
    int (*set)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "hak_option_set");
    if (set == NULL || set("guard_rate", "1") != 0) {
        return;
    }
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        kept[i] = malloc(16);
    }
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        free(kept[i]);
    }
    (void)set("guard_rate", "131072");
}

static void read_after_free(time_t seconds) {
    static const struct timespec nap = {.tv_nsec = STEP_NS};
    time_t end = now() + seconds;
    for (size_t step = 0; now() < end; step++) {
        char *block[BLOCKS];
        for (unsigned i = 0; i < BLOCKS; i++) {
            block[i] = hide(malloc(16 + step % 16 * 16));
            memset(block[i], 'x', 16);
        }
        for (unsigned i = BLOCKS - FREED; i < BLOCKS; i++) {
            free(block[i]);
            sink = *(volatile char *)block[i];
        }
        nanosleep(&nap, NULL);
    }
}

static void read_after_free_for_50_seconds(void) {
    make_region();
    read_after_free(50);
}

static void read_after_free_for_a_second(void) {
    read_after_free(1);
}

static const crime_t crimes[] = {
    CRIME(read_after_free_for_50_seconds),
    CRIME(read_after_free_for_a_second),
};

CRIMES_MAIN(crimes)
