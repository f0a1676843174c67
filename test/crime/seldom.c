/* SPDX-License-Identifier: MIT
 *
 * A program with few allocations, and an error in most of them: seldom_test.py. It sleeps most of
 * the time, and grows, so that bins are refilled. Every block that it frees is read once more. */
#include "crimes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 16, KEPT_ODDS = 4, STEP_NS = 1000000 };

static volatile char sink;

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Which blocks are kept is no matter of their place in a step, and so of when a bin is refilled. */
static void read_after_free(int64_t duration_ns) {
    static const struct timespec nap = {.tv_nsec = STEP_NS};
    int64_t end = now_ns() + duration_ns;
    unsigned random = 1;
    for (size_t step = 0; now_ns() < end; step++) {
        char *block[BLOCKS];
        for (unsigned i = 0; i < BLOCKS; i++) {
            block[i] = hide(malloc(16 + step % 16 * 16));
            memset(block[i], 'x', 16);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            random = random * 1103515245 + 12345;
            if ((random >> 16) % KEPT_ODDS != 0) {
                free(block[i]);
                sink = *(volatile char *)block[i];
            }
        }
        nanosleep(&nap, NULL);
    }
}

static void read_after_free_for_a_quarter_second(void) {
    read_after_free(250000000);
}

static void read_after_free_for_a_second(void) {
    read_after_free(1000000000);
}

static const crime_t crimes[] = {
    CRIME(read_after_free_for_a_quarter_second),
    CRIME(read_after_free_for_a_second),
};

CRIMES_MAIN(crimes)
