/* SPDX-License-Identifier: MIT
 *
 * More blocks above 1 MiB of several sizes and alignments, grown ones, and freed ones between
 * others than may be mappings of their own: has the program mappings left? Are addresses that
 * nobody uses there for others when they are limited?
 */
#include <sys/resource.h>

#include "api/family.h"
#include "api/figure.h"
#include "limits/mappings.h"

enum {
    KIBIBYTE = 1 << 10,
    MEBIBYTE = 1 << 20,
    SPARSE = 512 * MEBIBYTE,
    STRIDE = 8 * MEBIBYTE,
    PAIRS = 25000,
    GROWN = 20000,
    FAR_APART = 60000,
    LIMITED = 14000,
    MAPPINGS_MOST = 18500,       /* with guards, or freed ones: twice 8 192 and some */
    MAPPINGS_FREED_MOST = 25500, /* thrice */
    BLOCKS = 2 * PAIRS,
    ALIGNED = 80000, /* blocks of 4 KiB at 2 MiB */
    ALIGNED_BYTES = 4 * KIBIBYTE,
    ALIGNED_RSS_MOST = 16 * KIBIBYTE, /* a block: its page, its part of page tables and page map */
    HALF_COUNT = 50000,               /* of which half are freed */
    MAPPINGS_LEFT = 24000,            /* for these */
    MAPPINGS_LIMIT = 1 << 20,
};

static unsigned char *blocks[ALIGNED];

static void block_take(size_t i, size_t alignment, size_t size) {
    blocks[i] = alignment == 0 ? family.malloc(size) : family.memalign(alignment, size);
    EXPECT(blocks[i] != NULL);
    EXPECT_EQ((uintptr_t)blocks[i] % (alignment == 0 ? 16 : alignment), 0);
    blocks[i][0] = (unsigned char)i;
}

static void blocks_give(size_t count) {
    for (size_t i = 0; i < count; ++i) {
        EXPECT(blocks[i] == NULL || blocks[i][0] == (unsigned char)i);
        family.free(blocks[i]);
    }
    family.trim(0);
}

static void mappings_are_at_most(size_t before, size_t most) {
    size_t mappings = figure_map_count() - before;
    expect_say("  %zu mappings\n", mappings);
    EXPECT(mappings <= most);
    program_can_map();
}

static void blocks_of_mixed_sizes_and_alignments_leave_mappings_for_others(void) {
    static const struct {
        size_t alignment, size;
    } kinds[] = {
        {2 * MEBIBYTE, 2 * MEBIBYTE}, {0, 1600 * KIBIBYTE}, {2 * MEBIBYTE, 64}, {4 * MEBIBYTE, 64}};
    for (size_t kind = 0; kind < 4; kind += 2) {
        size_t before = figure_map_count();
        for (size_t i = 0; i < BLOCKS; ++i) {
            block_take(i, kinds[kind + i % 2].alignment, kinds[kind + i % 2].size);
        }
        mappings_are_at_most(before, MAPPINGS_MOST);
        blocks_give(BLOCKS);
        EXPECT(figure_map_count() <= before + 100);
    }
}

/* Once so many are moved that another is copied: what it never touched is not touched then. */
static void sparse_block_grows(void) {
    unsigned char *block = family.calloc(1, SPARSE), *wall = family.malloc(SPARSE);
    EXPECT(block != NULL && wall != NULL);
    size_t before = expect_rss_bytes();
    for (size_t at = 0; at < SPARSE; at += STRIDE) {
        block[at + at / STRIDE] = (unsigned char)(at / STRIDE + 1);
    }
    unsigned char *grown = family.realloc(block, 2 * SPARSE);
    EXPECT(grown != NULL && grown != block);
    for (size_t at = 0; at < 2 * SPARSE; at += STRIDE) {
        EXPECT_EQ(grown[at + at / STRIDE], at < SPARSE ? at / STRIDE + 1 : 0);
    }
    expect_rss_at_most(before, 16 * MEBIBYTE);
    family.free(wall);
    family.free(grown);
}

static void blocks_that_grew_by_moves_leave_mappings_for_others(void) {
    size_t before = figure_map_count();
    for (size_t i = 0; i < GROWN; ++i) {
        block_take(i, 0, 128 * KIBIBYTE);
        blocks[i] = family.realloc(blocks[i], 1100 * KIBIBYTE);
        EXPECT(blocks[i] != NULL);
    }
    mappings_are_at_most(before, MAPPINGS_MOST);
    sparse_block_grows();
    blocks_give(GROWN);
}

static void blocks_freed_far_apart_leave_mappings_for_others(void) {
    size_t before = figure_map_count();
    for (size_t i = 0; i < FAR_APART; ++i) {
        block_take(i, (size_t)128 * MEBIBYTE, 64 * KIBIBYTE);
    }
    for (size_t i = 0; i < FAR_APART; i += 2) {
        family.free(blocks[i]);
        blocks[i] = NULL;
    }
    mappings_are_at_most(before, MAPPINGS_FREED_MOST);
    blocks_give(FAR_APART);
}

/* What the alignment leaves between them is 2 MiB a block: none of it is in the way. */
static void limited_addresses_between_blocks_serve_others(void) {
    struct rlimit old, limit;
    EXPECT_EQ(getrlimit(RLIMIT_AS, &old), 0);
    limit = old;
    limit.rlim_cur = expect_statm_bytes(0) + (size_t)6 * 1024 * MEBIBYTE;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    for (size_t i = 0; i < LIMITED; ++i) {
        block_take(i, 2 * MEBIBYTE, 64 * KIBIBYTE);
    }
    for (size_t i = LIMITED; i < BLOCKS; ++i) {
        block_take(i, 0, KIBIBYTE);
    }
    EXPECT_EQ(setrlimit(RLIMIT_AS, &old), 0);
    blocks_give(BLOCKS);
}

/* Every one is served, at little memory. */
static void blocks_of_large_alignment_leave_mappings_for_others(void) {
    size_t mappings = figure_map_count(), rss = expect_rss_bytes();
    for (size_t i = 0; i < ALIGNED; ++i) {
        block_take(i, 2 * MEBIBYTE, ALIGNED_BYTES);
        blocks[i][ALIGNED_BYTES - 1] = 1;
    }
    mappings_are_at_most(mappings, MAPPINGS_MOST);
    expect_rss_at_most(rss, (size_t)ALIGNED * ALIGNED_RSS_MOST);
    blocks_give(ALIGNED);
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

static void half_take(size_t first, size_t step) {
    for (size_t i = first; i < HALF_COUNT; i += step) {
        block_take(i, 2 * MEBIBYTE, ALIGNED_BYTES);
    }
    program_can_map();
}

static void half_give(size_t first) {
    for (size_t i = first; i < HALF_COUNT; i += 2) {
        EXPECT_EQ(blocks[i][0], (unsigned char)i);
        family.free(blocks[i]);
    }
    program_can_map();
}

/* Each block between two in use would be one mapping more if it were unmapped: more than there are.
 */
static void blocks_freed_between_others_serve_again_and_go_in_the_end(void) {
    size_t bytes = 0, mappings = figure_map_count();
    char *taken = mappings_take(MAPPINGS_LEFT, &bytes);
    half_take(0, 1);
    for (unsigned round = 0; round < 3; ++round) {
        half_give(round % 2);
        half_take(round % 2, 2);
    }
    half_give(1);
    half_give(0);
    family.trim(0);
    munmap(taken, bytes);
    EXPECT(figure_map_count() <= mappings + 100);
}

/* Argument "aligned": only blocks of a large alignment. */
int main(int argc, char **argv) {
    (void)argv;
    family_load();
    if (expect_is_emulated() || !family.trim) {
        expect_skip("mappings are the emulator's, or there is no malloc_trim");
    }
    skip_without_addresses((size_t)1 << 43);
    expect_watchdog();
    if (argc > 1) {
        RUN(blocks_of_large_alignment_leave_mappings_for_others);
        RUN(blocks_freed_between_others_serve_again_and_go_in_the_end);
        return expect_status();
    }
    RUN(blocks_of_mixed_sizes_and_alignments_leave_mappings_for_others);
    RUN(blocks_that_grew_by_moves_leave_mappings_for_others);
    RUN(blocks_freed_far_apart_leave_mappings_for_others);
    RUN(limited_addresses_between_blocks_serve_others);
    return expect_status();
}
