/* SPDX-License-Identifier: MIT
 *
 * Does memory go back to the kernel when the program asks for it, and by time? Much of it in small
 * blocks, freed by whoever, wholly or but for a few. Without arguments: 256 MiB, of which a few
 * blocks stay. With them: MiB that are all freed, and size of the blocks in bytes (default 0:
 * mixed); then at most a tenth is resident after a little activity, and a fiftieth after
 * malloc_trim.
 */
#include <pthread.h>

#include "api/family.h"

enum { MEBIBYTE = 1 << 20, ALL_BYTES = 256 * MEBIBYTE, SMALLEST = 64, OS_PAGE = 4096 };

/* A little work, in which the allocator looks at the clock, a millisecond apart, until no more than
 * so much is resident; false: not even after half a minute of it. */
static bool activity_until(size_t bytes) {
    enum { LARGE_BYTES = 200000, WAITS = 30000, EACH = 10 };
    for (size_t i = 0; i < WAITS; ++i) {
        void *block = family.malloc(LARGE_BYTES);
        EXPECT(block != NULL);
        family.free(block);
        if (i % EACH == 0 && expect_rss_bytes() <= bytes) {
            return true;
        }
        usleep(1000);
    }
    return false;
}

/* --- a few stay --------------------------------------------------------------------------------
 */

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

static void blocks_touch(void) {
    memset(blocks, 0, sizeof blocks); /* the table itself is not counted */
}

/* One block of 512 pins an OS page of 4 KiB; the rest of its slab is idle pages. */
static void return_holes_between_survivors(void) {
    enum { EVERY = 512, LIVE_BYTES = ALL_BYTES / SMALLEST / EVERY * OS_PAGE };
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

static void return_with_time_what_nobody_uses(void) {
    enum { SIZE = 512, EVERY = 64, LIVE_BYTES = ALL_BYTES / SIZE / EVERY * OS_PAGE };
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

/* --- nothing stays -----------------------------------------------------------------------------
 */

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
static link_t *blocks_draw(void) {
    link_t *all = NULL;
    uint64_t state = 1;
    for (size_t made = 0; made < all_bytes;) {
        size_t size = size_draw(&state);
        unsigned char *block = family.malloc(size);
        EXPECT(block != NULL);
        for (size_t at = OS_PAGE; at < size; at += OS_PAGE) {
            block[at] = 1;
        }
        ((link_t *)block)->next = all;
        all = (link_t *)block;
        made += size;
    }
    return all;
}

static void *list_free(void *context) {
    for (link_t *at = context, *next; at != NULL; at = next) {
        next = at->next;
        family.free(at);
    }
    return NULL;
}

static size_t grown_since(size_t before) {
    size_t now = expect_rss_bytes();
    return now > before ? now - before : 0;
}

static void all_freed_by(bool is_other) {
    size_t before = expect_rss_bytes();
    link_t *all = blocks_draw();
    EXPECT(grown_since(before) >= all_bytes / 8 * 7);
    if (is_other) {
        pthread_t thread;
        EXPECT_EQ(pthread_create(&thread, NULL, list_free, all), 0);
        EXPECT_EQ(pthread_join(thread, NULL), 0);
    } else {
        list_free(all);
    }
    size_t freed = grown_since(before);
    bool is_back = activity_until(before + all_bytes / 10);
    size_t idle = grown_since(before);
    family.trim(0);
    size_t trimmed = grown_since(before);
    expect_say("  %zu KiB when freed, %zu after activity, %zu trimmed\n", freed >> 10, idle >> 10,
               trimmed >> 10);
    EXPECT(!expect_is_hakmem() || is_back);
    EXPECT(!expect_is_hakmem() || trimmed <= all_bytes / 50);
}

static void return_all_freed_by_the_thread_that_made_them(void) {
    all_freed_by(false);
}

static void return_all_freed_by_another_thread(void) {
    all_freed_by(true);
}

int main(int argc, char **argv) {
    all_bytes = expect_arg(argc, argv, 1, 0) * MEBIBYTE;
    block_bytes = expect_arg(argc, argv, 2, 0);
    family_load();
    if (family.trim == NULL) {
        expect_skip("there is no malloc_trim");
    }
    expect_watchdog();
    if (all_bytes == 0) {
        RUN(return_holes_between_survivors);
        RUN(return_with_time_what_nobody_uses);
    } else {
        RUN(return_all_freed_by_the_thread_that_made_them);
        RUN(return_all_freed_by_another_thread);
    }
    return expect_status();
}
