/* SPDX-License-Identifier: MIT
 *
 * More blocks of an alignment above 1 MiB than the kernel allows a process mappings: is every one
 * served, at little memory, and has the program mappings left?
 */
#include <pthread.h>
#include <sys/mman.h>

#include "api/family.h"
#include "api/figure.h"

enum {
    KIBIBYTE = 1 << 10,
    COUNT = 80000,
    ALIGNMENT = 2048 * KIBIBYTE,
    SIZE = 4 * KIBIBYTE,
    MAPPINGS_MOST = 20000,
    RSS_MOST = 16 * KIBIBYTE, /* a block: its page, its part of page tables and page map */
};

static unsigned char *blocks[COUNT];

static void *thread_body(void *argument) {
    return argument;
}

static void program_can_map(void) {
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, thread_body, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

static void blocks_of_large_alignment_leave_mappings_for_others(void) {
    size_t mappings = figure_map_count(), rss = expect_rss_bytes();
    for (size_t i = 0; i < COUNT; ++i) {
        blocks[i] = family.memalign(ALIGNMENT, SIZE);
        EXPECT(blocks[i] != NULL);
        EXPECT_EQ((uintptr_t)blocks[i] % ALIGNMENT, 0);
        blocks[i][0] = blocks[i][SIZE - 1] = (unsigned char)i;
    }
    size_t most = figure_map_count();
    expect_say("  %zu mappings\n", most - mappings);
    EXPECT(most - mappings <= MAPPINGS_MOST);
    expect_rss_at_most(rss, (size_t)COUNT * RSS_MOST);
    program_can_map();
    for (size_t i = 0; i < COUNT; ++i) {
        EXPECT_EQ(blocks[i][0], (unsigned char)i);
        EXPECT_EQ(blocks[i][SIZE - 1], (unsigned char)i);
        family.free(blocks[i]);
    }
    family.trim(0);
    EXPECT(figure_map_count() <= mappings + 100);
}

int main(void) {
    family_load();
    if (expect_is_emulated() || !family.trim) {
        expect_skip("mappings are the emulator's, or there is no malloc_trim");
    }
    void *probe = mmap(NULL, (size_t)1 << 38, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) {
        expect_skip("addresses are limited here");
    }
    munmap(probe, (size_t)1 << 38);
    expect_watchdog(100);
    RUN(blocks_of_large_alignment_leave_mappings_for_others);
    return expect_status();
}
