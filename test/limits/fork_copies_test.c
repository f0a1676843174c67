/* SPDX-License-Identifier: MIT
 *
 * How many OS pages does the child of a fork copy because of the allocator, of a heap whose every
 * slab has blocks that another thread freed? No more of a large heap than of a small one.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "api/family.h"

enum { BLOCK_BYTES = 48, EVERY = 16, MEBIBYTE = 1 << 20 };
enum { SMALL_BLOCKS = 32 * MEBIBYTE / BLOCK_BYTES, ALL_BLOCKS = 256 * MEBIBYTE / BLOCK_BYTES };
enum { MOST_BYTES = 128 << 10 }; /* a page of each superslab would be 224 KiB, and two more were */

static void *blocks[ALL_BLOCKS];
static size_t freed, made;

static void *free_some(void *context) {
    (void)context;
    for (; freed < made; freed += EVERY) {
        family.free(blocks[freed]);
    }
    return NULL;
}

static void grow_to(size_t count) {
    pthread_t thread;
    for (; made < count; ++made) {
        blocks[made] = family.malloc(BLOCK_BYTES);
        EXPECT(blocks[made] != NULL);
        *(size_t *)blocks[made] = made;
    }
    EXPECT_EQ(pthread_create(&thread, NULL, free_some, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

/* Bytes that only this process has, and wrote to. */
static size_t own_bytes(void) {
    char text[4096];
    int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    const char *line = strstr(text, "Private_Dirty:");
    return line == NULL ? 0 : strtoul(line + strlen("Private_Dirty:"), NULL, 10) << 10;
}

/* Of the child, before it does anything. */
static size_t child_bytes(void) {
    size_t bytes = 0;
    int ends[2], status;
    EXPECT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        bytes = own_bytes();
        _exit(write(ends[1], &bytes, sizeof bytes) != sizeof bytes);
    }
    EXPECT(child > 0);
    EXPECT_EQ(read(ends[0], &bytes, sizeof bytes), sizeof bytes);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    close(ends[0]);
    close(ends[1]);
    return bytes;
}

static void child_of_a_large_heap_copies_no_more_than_that_of_a_small_one(void) {
    if (!expect_is_hakmem() || own_bytes() == 0) {
        return; /* the table, too, is in heaps of others */
    }
    grow_to(SMALL_BLOCKS);
    size_t small = child_bytes();
    grow_to(ALL_BLOCKS);
    size_t large = child_bytes();
    expect_say("  %zu KiB at %d MiB, %zu at %d\n", small >> 10,
               SMALL_BLOCKS / (MEBIBYTE / BLOCK_BYTES), large >> 10,
               ALL_BLOCKS / (MEBIBYTE / BLOCK_BYTES));
    EXPECT(large <= small + MOST_BYTES);
    for (size_t i = 0; i < made; ++i) {
        if (i % EVERY != 0) {
            EXPECT_EQ(*(size_t *)blocks[i], i);
        }
    }
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(child_of_a_large_heap_copies_no_more_than_that_of_a_small_one);
    return expect_status();
}
