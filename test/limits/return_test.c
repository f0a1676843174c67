/* SPDX-License-Identifier: MIT
 *
 * Does memory go back to the kernel when the program asks for it, and by time? Much of it in small
 * blocks, freed by whoever, wholly or but for a few.
 */
#include <pthread.h>

#include "api/family.h"

enum { MEBIBYTE = 1 << 20, ALL_BYTES = 256 * MEBIBYTE, SMALLEST = 64 };

static void *blocks[ALL_BYTES / SMALLEST];

static size_t blocks_make(size_t size) {
    size_t count = ALL_BYTES / size;
    for (size_t i = 0; i < count; ++i) {
        blocks[i] = family.malloc(size);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], (int)(i % 251), size);
    }
    return count;
}

/* Those for which i % every is 0 stay. */
static void blocks_free(size_t count, size_t every) {
    for (size_t i = 0; i < count; ++i) {
        if (i % every != 0) {
            family.free(blocks[i]);
        }
    }
}

static void blocks_check_and_free(size_t count, size_t every, size_t size) {
    for (size_t i = 0; i < count; i += every) {
        const unsigned char *block = blocks[i];
        for (size_t at = 0; at < size; ++at) {
            EXPECT(block[at] == i % 251);
        }
        family.free(blocks[i]);
    }
}

typedef struct task {
    size_t count, every;
} task_t;

static void *blocks_free_all(void *context) {
    const task_t *task = context;
    blocks_free(task->count, task->every);
    family.free(blocks[0]);
    return NULL;
}

static void blocks_touch(void) {
    memset(blocks, 0, sizeof blocks); /* the table itself is not counted */
}

static void return_all_freed_by_the_thread_that_made_them(void) {
    EXPECT_HAS(trim);
    blocks_touch();
    size_t before = expect_rss_bytes();
    size_t count = blocks_make(512);
    blocks_free(count, SIZE_MAX);
    family.free(blocks[0]);
    family.trim(0);
    expect_rss_at_most(before, ALL_BYTES / 50);
}

static void return_all_freed_by_another_thread(void) {
    EXPECT_HAS(trim);
    blocks_touch();
    size_t before = expect_rss_bytes();
    task_t task = {blocks_make(200), SIZE_MAX};
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, blocks_free_all, &task) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    family.trim(0);
    expect_rss_at_most(before, ALL_BYTES / 50);
}

/* One block of 512 pins an OS page of 4 KiB; the rest of its slab is idle pages. */
static void return_holes_between_survivors(void) {
    enum { EVERY = 512, LIVE_BYTES = ALL_BYTES / SMALLEST / EVERY * 4096 };
    EXPECT_HAS(trim);
    if (!expect_is_hakmem()) {
        return; /* others keep them */
    }
    blocks_touch();
    size_t before = expect_rss_bytes();
    size_t count = blocks_make(SMALLEST);
    blocks_free(count, EVERY);
    EXPECT(family.trim(0) == 1);
    expect_rss_at_most(before, (size_t)LIVE_BYTES + ALL_BYTES / 50);
    blocks_check_and_free(count, EVERY, SMALLEST);
    family.trim(0);
    expect_rss_at_most(before, ALL_BYTES / 50);
}

/* A little work, in which the allocator looks at the clock, until so much is resident. */
static bool activity_until(size_t bytes) {
    enum { LARGE_BYTES = 200000, WAITS = 20000 };
    for (size_t i = 0; i < WAITS; ++i) {
        void *block = family.malloc(LARGE_BYTES);
        EXPECT(block != NULL);
        family.free(block);
        if (i % 100 == 0 && expect_rss_bytes() <= bytes) {
            return true;
        }
        usleep(1000);
    }
    return false;
}

static void return_with_time_what_nobody_uses(void) {
    enum { SIZE = 512, EVERY = 64, LIVE_BYTES = ALL_BYTES / SIZE / EVERY * 4096 };
    if (!expect_is_hakmem()) {
        return; /* others keep it, or take longer */
    }
    blocks_touch();
    size_t before = expect_rss_bytes();
    size_t count = blocks_make(SIZE);
    blocks_free(count, EVERY);
    EXPECT(activity_until(before + LIVE_BYTES + ALL_BYTES / 50)); /* idle pages between survivors */
    blocks_check_and_free(count, EVERY, SIZE);
    EXPECT(activity_until(before + ALL_BYTES / 10)); /* and the rest */
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(return_all_freed_by_the_thread_that_made_them);
    RUN(return_all_freed_by_another_thread);
    RUN(return_holes_between_survivors);
    RUN(return_with_time_what_nobody_uses);
    return expect_status();
}
