/* SPDX-License-Identifier: MIT
 *
 * A program, or a library that is preloaded with ours, has a clock_gettime of its own, as those
 * that simulate time do. It allocates, and reads a file by the C library's streams. The allocator
 * never calls it, not under its locks and not outside them. Nor what another object has by the name
 * that a test program gives the allocator's clock, or the program as data. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, ROUNDS = 400, SMALL = 500, HUGE_BYTES = 2 << 20 };

static unsigned long calls;

#ifdef CLOCK_IS_DATA
extern const char hak_test_clock[];
const char hak_test_clock[16] = {0};
#endif

int clock_gettime(clockid_t clock, struct timespec *now) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    free(malloc(HUGE_BYTES));
    FILE *file = fopen("/proc/self/stat", "r");
    if (file != NULL) {
        (void)getc(file);
        fclose(file);
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}

static void *load(void *unused) {
    static __thread char *small[SMALL];
    for (unsigned round = 0; round < ROUNDS; round++) {
        char *huge = malloc(HUGE_BYTES);
        char *grown = huge != NULL ? realloc(huge, HUGE_BYTES * (size_t)(1 + round % 4)) : NULL;
        for (size_t i = 0; i < SMALL; i++) {
            free(small[i]);
            small[i] = malloc(1 + (i * 7919 + round * 31) % 9000);
            if (small[i] == NULL) {
                exit(1);
            }
            small[i][0] = 1;
        }
        free(grown);
    }
    for (size_t i = 0; i < SMALL; i++) {
        free(small[i]);
    }
    return unused;
}

int main(void) {
    pthread_t thread[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        if (pthread_create(&thread[i], NULL, load, NULL) != 0) {
            return 1;
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    printf("%lu calls of the program's clock\n", calls);
    return calls != 0;
}
