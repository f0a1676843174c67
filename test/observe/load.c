/* SPDX-License-Identifier: MIT
 *
 * A heap with some of everything. Writes what the library says of it, each document followed by a
 * line "---", then waits until standard input ends: explain_test.py looks at it from outside
 * meanwhile. With the word "abort" it ends by abort() then, for a core file.
 *
 *   load [abort] */
#include <hakmem/hakmem.h>
#include <hakmem/observe.h>
#include <pthread.h>

#include "api/expect.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SMALL = 20000, THREADS = 3, THREAD_BLOCKS = 2000 };

static void *small[SMALL];
static void *of_thread[THREADS][THREAD_BLOCKS];
static void *large[40];
static void *huge[8];
static pthread_barrier_t barrier;

static void *take(size_t bytes) {
    void *block = malloc(bytes);
    EXPECT(block != NULL);
    return memset(block, 1, bytes);
}

/* Of many classes, with gaps of all lengths. */
static void fill_small(void) {
    for (size_t i = 0; i < SMALL; i++) {
        small[i] = take(16 + i % 50 * 40 + (i % 97 == 0) * 9000);
    }
    for (size_t i = 0; i < SMALL; i++) {
        if (i % 7 < 3 || (i > 6000 && i < 11000 && i % 600 != 0)) {
            free(small[i]);
        }
    }
}

/* Huge blocks that go were written to throughout: the library reads samples of those that go, and
 * pages that were only read look resident, and are no part of RSS. */
static void fill_large(void) {
    for (size_t i = 0; i < 40; i++) {
        large[i] = take(70 * KIB + i * 20 * KIB);
    }
    for (size_t i = 0; i < 40; i += 3) {
        free(large[i]);
    }
    for (size_t i = 0; i < 8; i++) {
        huge[i] = malloc((2 + i) * MIB);
        EXPECT(huge[i] != NULL);
        memset(huge[i], 1, i % 3 == 1 ? (2 + i) * MIB : (1 + i / 2) * MIB);
    }
    free(huge[1]);
    free(huge[4]);
}

/* Takes blocks of its own, and frees those of the thread before it: messages, bins. */
static void *thread(void *number) {
    size_t self = (size_t)number;
    for (size_t i = 0; i < THREAD_BLOCKS; i++) {
        of_thread[self][i] = take(24 + i % 8 * 100);
    }
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < THREAD_BLOCKS; i += 2) {
        free(of_thread[(self + 1) % THREADS][i]);
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* the end of the process comes first */
    return NULL;
}

static void tell(void) {
    hak_explain_json(1);
    EXPECT(write(1, "---\n", 4) == 4);
    hak_stats_json(1);
    EXPECT(write(1, "---\n", 4) == 4);
    hak_heap_map(1);
    EXPECT(write(1, "---\n", 4) == 4);
}

int main(int argc, char **argv) {
    pthread_t id;
    char c;
    EXPECT(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&id, NULL, thread, (void *)i) == 0);
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    fill_small();
    fill_large();
    tell(); /* the first report maps code that the second finds */
    tell();
    EXPECT(write(1, "done\n", 5) == 5);
    EXPECT(read(0, &c, 1) == 0);
    if (argc > 1 && strcmp(argv[1], "abort") == 0) {
        abort();
    }
    _exit(0);
}
