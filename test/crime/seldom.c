/* SPDX-License-Identifier: MIT
 *
 * A program with few allocations, and an error in most of them: seldom_test.py. By its clock it
 * sleeps most of the time; it grows, so that bins are refilled. Every block that it frees is read
 * once more. */
#include "crimes.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 16, KEPT_ODDS = 4 };

static volatile char sink;

/* Which blocks are kept is no matter of their place in a step, and so of when a bin is refilled. */
static void read_after_free(size_t milliseconds) {
    unsigned random = 1;
    for (size_t step = 0; step < milliseconds; step++) {
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
        clock_advance_ms(1);
    }
}

CRIME(read_after_free_for_a_quarter_second) {
    read_after_free(250);
}

CRIME(read_after_free_for_a_second) {
    read_after_free(1000);
}
