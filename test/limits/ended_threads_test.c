/* SPDX-License-Identifier: MIT
 *
 * What stays of many threads that lived at once and were joined, after malloc_trim?
 * Argument: threads (default 4000).
 */
#include <pthread.h>

#include "api/family.h"

enum { BLOCKS = 64, STACK_BYTES = 64 << 10, MEBIBYTE = 1 << 20 };

static size_t thread_count;
static pthread_barrier_t barrier;

static void *hold_blocks(void *context) {
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; ++i) {
        blocks[i] = family.malloc(16 + i % 24 * 40);
        EXPECT(blocks[i] != NULL);
    }
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < BLOCKS; ++i) {
        family.free(blocks[i]);
    }
    return context;
}

/* The stacks are ours, as the C library keeps some of its own. */
static void threads_that_ended_leave_nothing_behind(void) {
    EXPECT_HAS(trim);
    char *stacks = mmap(NULL, thread_count * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(stacks != MAP_FAILED);
    pthread_t *threads = family.calloc(thread_count, sizeof *threads);
    EXPECT(threads != NULL);
    memset(threads, 0, thread_count * sizeof *threads);
    pthread_barrier_init(&barrier, NULL, (unsigned)thread_count);
    family.trim(0);
    size_t before = expect_rss_bytes();
    for (size_t i = 0; i < thread_count; ++i) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        EXPECT_EQ(pthread_attr_setstack(&attributes, stacks + i * STACK_BYTES, STACK_BYTES), 0);
        if (pthread_create(&threads[i], &attributes, hold_blocks, NULL) != 0) {
            expect_skip("the kernel grants too few threads");
        }
    }
    for (size_t i = 0; i < thread_count; ++i) {
        EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    }
    size_t joined = expect_rss_bytes();
    EXPECT_EQ(madvise(stacks, thread_count * STACK_BYTES, MADV_DONTNEED), 0);
    family.trim(0);
    expect_say("  %zu KiB when all were joined, %zu before\n", joined >> 10, before >> 10);
    expect_rss_at_most(before, thread_count * 1024 + 2 * MEBIBYTE);
    family.free(threads);
}

int main(int argc, char **argv) {
    thread_count = expect_arg(argc, argv, 1, 4000);
    family_load();
    expect_watchdog();
    RUN(threads_that_ended_leave_nothing_behind);
    return expect_status();
}
