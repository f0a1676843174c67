/* SPDX-License-Identifier: MIT
 *
 * 1 GiB in small blocks that are all freed, by the thread that made them or by another: is at most
 * a tenth of it resident after a little activity, and a fiftieth after malloc_trim? The figures are
 * said: a tenth is to be reached within a second, and what is there after a second.
 * Arguments: MiB (default 1024), size of the blocks in bytes (default 0: mixed).
 */
#include <pthread.h>
#include <time.h>

#include "api/family.h"

enum { MEBIBYTE = 1 << 20, SECOND_MS = 1000, LATE_MS = 30 * SECOND_MS };

/* The blocks are a list through their own first words: a table of them would be counted, too. */
typedef struct link {
    struct link *next;
} link_t;

static size_t all_bytes, block_bytes;

static size_t size_draw(uint64_t *state) {
    static const size_t sizes[] = {16, 24, 64, 100, 200, 512, 1000, 4000, 10000, 40000};
    return block_bytes != 0 ? block_bytes
                            : sizes[expect_random(state) % (sizeof sizes / sizeof *sizes)];
}

/* One write for each OS page is enough to make it resident. */
static link_t *blocks_make(void) {
    link_t *all = NULL;
    uint64_t state = 1;
    for (size_t made = 0; made < all_bytes;) {
        size_t size = size_draw(&state);
        unsigned char *block = family.malloc(size);
        EXPECT(block != NULL);
        for (size_t at = 4096; at < size; at += 4096) {
            block[at] = 1;
        }
        ((link_t *)block)->next = all;
        all = (link_t *)block;
        made += size;
    }
    return all;
}

static void *blocks_free(void *context) {
    for (link_t *at = context, *next; at != NULL; at = next) {
        next = at->next;
        family.free(at);
    }
    return NULL;
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A little work, in which the allocator looks at the clock; until so much is resident, or so many
 * milliseconds have passed. Returns the milliseconds. */
static long activity_until(size_t bytes, long most_ms) {
    enum { LARGE_BYTES = 200000 };
    long start = now_ms(), now = start;
    for (size_t i = 0; now - start < most_ms; ++i, now = now_ms()) {
        void *block = family.malloc(LARGE_BYTES);
        EXPECT(block != NULL);
        family.free(block);
        if (i % 10 == 0 && expect_rss_bytes() <= bytes) {
            break;
        }
        usleep(1000);
    }
    return now - start;
}

static size_t grown_since(size_t before) {
    size_t now = expect_rss_bytes();
    return now > before ? now - before : 0;
}

static void all_freed_by(bool is_other) {
    size_t before = expect_rss_bytes();
    link_t *all = blocks_make();
    EXPECT(grown_since(before) >= all_bytes / 8 * 7);
    if (is_other) {
        pthread_t thread;
        EXPECT_EQ(pthread_create(&thread, NULL, blocks_free, all), 0);
        EXPECT_EQ(pthread_join(thread, NULL), 0);
    } else {
        blocks_free(all);
    }
    size_t freed = grown_since(before);
    long took = activity_until(before + all_bytes / 10, LATE_MS);
    activity_until(0, took < SECOND_MS ? SECOND_MS - took : 0);
    size_t idle = grown_since(before);
    family.trim(0);
    size_t trimmed = grown_since(before);
    expect_say("  %zu KiB when freed, a tenth after %ld ms; %zu KiB after a second, %zu trimmed\n",
               freed >> 10, took, idle >> 10, trimmed >> 10);
    EXPECT(!expect_is_hakmem() || took < LATE_MS);
    EXPECT(!expect_is_hakmem() || idle <= all_bytes / 10);
    EXPECT(!expect_is_hakmem() || trimmed <= all_bytes / 50);
}

static void return_all_freed_by_the_thread_that_made_them(void) {
    all_freed_by(false);
}

static void return_all_freed_by_another_thread(void) {
    all_freed_by(true);
}

int main(int argc, char **argv) {
    all_bytes = expect_arg(argc, argv, 1, 1024) * MEBIBYTE;
    block_bytes = expect_arg(argc, argv, 2, 0);
    family_load();
    if (family.trim == NULL) {
        expect_skip("there is no malloc_trim");
    }
    expect_watchdog();
    RUN(return_all_freed_by_the_thread_that_made_them);
    RUN(return_all_freed_by_another_thread);
    return expect_status();
}
