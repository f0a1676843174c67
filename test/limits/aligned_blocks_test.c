/* SPDX-License-Identifier: MIT
 *
 * More blocks of an alignment above 1 MiB than the kernel allows a process mappings: is every one
 * served, at little memory, and has the program mappings left? When every second one is freed, too,
 * and does all go in the end?
 */
#include "api/family.h"
#include "api/figure.h"
#include "limits/mappings.h"

enum {
    KIBIBYTE = 1 << 10,
    COUNT = 80000,
    ALIGNMENT = 2048 * KIBIBYTE,
    SIZE = 4 * KIBIBYTE,
    MAPPINGS_MOST = 20000,
    HALF_COUNT = 50000,    /* of which half are freed */
    MAPPINGS_LEFT = 24000, /* for these */
    MAPPINGS_LIMIT = 1 << 20,
    RSS_MOST = 16 * KIBIBYTE, /* a block: its page, its part of page tables and page map */
};

static unsigned char *blocks[COUNT];

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

/* Takes all mappings but about `left` away from the process: every second page of a range. Returns
 * the range; NULL: the kernel's limit is not known, or too high. */
static char *mappings_take(size_t left, size_t *bytes) {
    char text[32] = {0};
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    bool is_read = fd >= 0 && read(fd, text, sizeof text - 1) > 0;
    size_t limit = is_read ? strtoull(text, NULL, 10) : 0, page = (size_t)sysconf(_SC_PAGESIZE);
    close(fd);
    if (limit < left + 10000 || limit > MAPPINGS_LIMIT) {
        return NULL;
    }
    *bytes = (limit - left) * page;
    char *base = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(base != MAP_FAILED);
    for (size_t at = page; at < *bytes; at += 2 * page) {
        EXPECT_EQ(mprotect(base + at, page, PROT_NONE), 0);
    }
    return base;
}

static void block_take(size_t i) {
    blocks[i] = family.memalign(ALIGNMENT, SIZE);
    EXPECT(blocks[i] != NULL);
    EXPECT_EQ((uintptr_t)blocks[i] % ALIGNMENT, 0);
    blocks[i][0] = (unsigned char)i;
}

static void block_give(size_t i) {
    EXPECT_EQ(blocks[i][0], (unsigned char)i);
    family.free(blocks[i]);
}

static void for_blocks(size_t first, size_t step, void (*step_body)(size_t)) {
    for (size_t i = first; i < HALF_COUNT; i += step) {
        step_body(i);
    }
}

/* Each block between two in use would be one mapping more if it were unmapped: more than there are.
 */
static void blocks_freed_between_others_serve_again_and_go_in_the_end(void) {
    size_t bytes = 0, mappings = figure_map_count();
    char *taken = mappings_take(MAPPINGS_LEFT, &bytes);
    for_blocks(0, 1, block_take);
    for (unsigned round = 0; round < 3; ++round) {
        for_blocks(round % 2, 2, block_give);
        program_can_map();
        for_blocks(round % 2, 2, block_take);
        program_can_map();
    }
    for_blocks(1, 2, block_give);
    for_blocks(0, 2, block_give);
    family.trim(0);
    munmap(taken, bytes);
    EXPECT(figure_map_count() <= mappings + 100);
}

int main(void) {
    family_load();
    if (expect_is_emulated() || !family.trim) {
        expect_skip("mappings are the emulator's, or there is no malloc_trim");
    }
    skip_without_addresses((size_t)1 << 38);
    expect_watchdog();
    RUN(blocks_of_large_alignment_leave_mappings_for_others);
    RUN(blocks_freed_between_others_serve_again_and_go_in_the_end);
    return expect_status();
}
