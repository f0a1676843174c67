/* SPDX-License-Identifier: MIT
 *
 * The main of a program of crimes, one per name, and what they share. */
#include "crimes.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t clock_now_ns = INT64_C(1000000000000);

void clock_advance_ms(unsigned ms) {
    clock_now_ns += ms * INT64_C(1000000);
}

int hak_test_clock(clockid_t clock, struct timespec *now);

/* The allocator's clock. */
int hak_test_clock(clockid_t clock, struct timespec *now) {
    (void)clock;
    now->tv_sec = clock_now_ns / 1000000000;
    now->tv_nsec = clock_now_ns % 1000000000;
    return 0;
}

/* The same of the allocator in the archive. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    return hak_test_clock(clock, now);
}

/* Blocks of all kinds were handed out, written to and freed; some of each stay in use. But for
 * the class of 1 KiB: crimes with blocks that were never handed out need it so. */
static void use_heap(void) {
    enum { COUNT = 600, WRITTEN = 4096 };
    static const size_t spread[] = {100, 2000, 20000, 300000, 3000000};
    static char *used[COUNT];
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            size_t bytes = 1 + i * 7919 % spread[i % (sizeof spread / sizeof *spread)];
            if (used[i] == NULL && (bytes <= 896 || bytes > 1024)) {
                used[i] = hide(malloc(bytes));
                memset(used[i], 0x5a, bytes < WRITTEN ? bytes : WRITTEN);
                used[i][bytes - 1] = 0x5a;
            }
        }
        for (size_t i = 0; i < COUNT; i++) {
            if (i * 31 % 7 != round) {
                free(used[i]);
                used[i] = NULL;
            }
        }
    }
}

/* Commits the crime that the argument names, with a second one on a heap that was used before; 3:
 * nobody noticed. Without arguments the names are listed. */
int main(int argc, char **argv) {
    extern const crime_t __start_crimes[], __stop_crimes[];
    for (const crime_t *crime = __start_crimes; crime < __stop_crimes; crime++) {
        if (argc < 2) {
            puts(crime->name);
        } else if (strcmp(crime->name, argv[1]) == 0) {
            if (argc > 2) {
                use_heap();
            }
            crime->commit();
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
