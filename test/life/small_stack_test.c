/* SPDX-License-Identifier: MIT
 *
 * Threads with a small stack (16 KiB): does every path of the allocator, from first use to exit,
 * fit into it? With the argument "least", the least stack that the C library allows (musl: 2 KiB),
 * in which allocation and free are to fit while the heap profiler samples most blocks.
 */
#include <hakmem/observe.h>
#include <limits.h>
#include <malloc.h>

#include "thread/block.h"

enum { THREAD_COUNT = 50, LIVE_COUNT = 300, SMALL_STACK_BYTES = 16384 };

/* Reports are the deepest. */
static void report(void) {
    EXPECT(mallinfo2().arena != 0);
    if (expect_is_hakmem()) {
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        hak_stats_json(fd);
        hak_explain(fd);
        close(fd);
    }
}

/* Every entry point over all size ranges; `live` is static so that our own frame stays small. */
static void work(block_t **live, uint64_t seed) {
    uint64_t state = seed + 1;
    blocks_make(live, LIVE_COUNT, &state);
    for (size_t size = 1; size <= 8 << 20; size *= 3) {
        unsigned char *block = family.calloc(1, size);
        EXPECT(block != NULL);
        block = family.realloc(block, size * 2);
        EXPECT(block != NULL);
        family.free(block);
        block = family.aligned_alloc(4096, size);
        EXPECT(block != NULL);
        family.free(block);
    }
    family.trim(0);
    report();
    blocks_unmake(live, LIVE_COUNT, &state);
}

static block_t *live_of_threads[THREAD_COUNT][LIVE_COUNT];

static void *work_in_thread(void *argument) {
    size_t index = (uintptr_t)argument;
    work(live_of_threads[index], index);
    return NULL;
}

static void small_stacks_are_enough_for_the_whole_family(void) {
    pthread_attr_t attributes;
    pthread_t threads[THREAD_COUNT];
    pthread_attr_init(&attributes);
    long smallest = sysconf(_SC_THREAD_STACK_MIN);
    size_t bytes = smallest > SMALL_STACK_BYTES ? (size_t)smallest : SMALL_STACK_BYTES;
    EXPECT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    for (size_t round = 0; round < 3; ++round) {
        for (size_t i = 0; i < THREAD_COUNT; ++i) {
            EXPECT_EQ(
                pthread_create(&threads[i], &attributes, work_in_thread, (void *)(uintptr_t)i), 0);
        }
        threads_join(threads, THREAD_COUNT);
    }
    pthread_attr_destroy(&attributes);
}

static void *allocate(void *unused) {
    for (size_t i = 0; i < 3000; i++) {
        family.free(family.malloc(i % 400 + 1));
    }
    family.free(family.malloc(100000));
    return unused;
}

static void sampling_fits_the_least_stack(void) {
    long least = sysconf(_SC_THREAD_STACK_MIN);
    size_t bytes = least > PTHREAD_STACK_MIN ? (size_t)least : (size_t)PTHREAD_STACK_MIN;
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    EXPECT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    EXPECT_EQ(pthread_create(&thread, &attributes, allocate, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

int main(int argc, char **argv) {
    (void)argv;
    family_load();
    expect_watchdog();
    if (argc > 1) {
        RUN(sampling_fits_the_least_stack);
    } else {
        RUN(small_stacks_are_enough_for_the_whole_family);
    }
    return expect_status();
}
