/* SPDX-License-Identifier: MIT
 *
 * Large and huge blocks that come and go: do metadata, memory, address space and mappings stay
 * where they were, however often? What is held at a time is little, so anything that grows with
 * the rounds is a leak.
 */
#include <sys/resource.h>

#include "api/family.h"
#include "api/figure.h"
#include "api/still_clock.h" /* what is cached is given up by time, too */

enum { MEBIBYTE = 1 << 20 };

typedef struct level {
    size_t meta;
    size_t rss;
    size_t address_space;
    size_t maps;
} level_t;

static level_t level_now(void) {
    return (level_t){figure("meta_bytes"), expect_rss_bytes(), expect_statm_bytes(0),
                     figure_map_count()};
}

/* Metadata may not grow to speak of; the rest by what caches may keep. */
static void level_check(const level_t *before, size_t cached_bytes) {
    figure_at_most("meta_bytes", before->meta, MEBIBYTE);
    expect_rss_at_most(before->rss, cached_bytes + 8 * MEBIBYTE);
    figure_address_space_at_most(before->address_space, 4 * cached_bytes + 64 * MEBIBYTE);
}

static unsigned char *block_touched(size_t size) {
    unsigned char *block = family.malloc(size);
    EXPECT(block != NULL);
    block[0] = 1;
    block[size - 1] = 1;
    return block;
}

static void growth_huge_block_mapped_and_unmapped_metadata_is_flat(void) {
    enum { ROUNDS = 20000 };
    const size_t size = 64 * MEBIBYTE;
    family.free(block_touched(size));
    level_t before = level_now();
    for (size_t round = 0; round < ROUNDS; ++round) {
        family.free(block_touched(size));
    }
    level_check(&before, 0);
}

/* From 2 to 64 MiB, of which the first and the last byte of each step are touched. */
static void vector_double(void) {
    unsigned char *block = NULL;
    for (size_t size = 2 * MEBIBYTE; size <= 64 * MEBIBYTE; size *= 2) {
        block = family.realloc(block, size);
        EXPECT(block != NULL);
        block[0] = 1;
        block[size - 1] = 1;
    }
    family.free(block);
}

/* It is the kernel that moves what does not grow in place, whatever mappings the cache is made of:
 * copies of 16 MiB a round made 10 000 of them take 100 s in place of 2. */
static void growth_vector_doubled_by_realloc_is_not_copied(void) {
    enum { ROUNDS = 1000 };
    size_t before = figure("realloc_copied_bytes");
    for (size_t round = 0; round < ROUNDS; ++round) {
        vector_double();
    }
    figure_at_most("realloc_copied_bytes", before, 64 * MEBIBYTE);
}

static void growth_vector_doubled_by_realloc_metadata_is_flat(void) {
    enum { ROUNDS = 10000 };
    level_t before = level_now();
    for (size_t round = 0; round < ROUNDS; ++round) {
        vector_double();
    }
    level_check(&before, 64 * MEBIBYTE);
}

static void growth_large_blocks_taken_and_trimmed_metadata_is_flat(void) {
    enum { ROUNDS = 300, COUNT = 256, SIZE = 1000000 };
    static void *blocks[COUNT];
    EXPECT_HAS(trim);
    level_t before = {0};
    for (size_t round = 0; round < ROUNDS; ++round) {
        before = round == 1 ? level_now() : before; /* the first takes what is kept for the next */
        for (size_t i = 0; i < COUNT; ++i) {
            blocks[i] = block_touched(SIZE);
        }
        for (size_t i = 0; i < COUNT; ++i) {
            family.free(blocks[i]);
        }
        family.trim(0);
    }
    level_check(&before, 64 * MEBIBYTE);
}

/* malloc, free and growing realloc of 1 to 5.5 MB in 24 places: at most 132 MB at a time. */
static void churn(void) {
    enum { PLACES = 24, OPERATIONS = 15000, UNIT = 1100000, TOUCH_STRIDE = 1 << 18 };
    static unsigned char *blocks[PLACES];
    static size_t sizes[PLACES];
    uint32_t draw = 1;
    for (size_t operation = 0; operation < OPERATIONS; ++operation) {
        draw = draw * 1664525 + 1013904223;
        size_t place = (draw >> 10) % PLACES;
        size_t size = (size_t)((draw >> 16) % 5 + 1) * UNIT;
        if (blocks[place] == NULL || ((draw >> 28) & 1) == 0) {
            family.free(blocks[place]);
            blocks[place] = family.malloc(size);
            sizes[place] = size;
        } else if (size > sizes[place]) {
            blocks[place] = family.realloc(blocks[place], size);
            sizes[place] = size;
        }
        EXPECT(blocks[place] != NULL);
        for (size_t at = 0; at < sizes[place]; at += TOUCH_STRIDE) {
            blocks[place][at] = 1;
        }
    }
    for (size_t place = 0; place < PLACES; ++place) {
        family.free(blocks[place]);
        blocks[place] = NULL;
    }
}

static void growth_huge_blocks_resized_at_random_maps_and_address_space_are_flat(void) {
    level_t before = level_now();
    churn();
    figure_at_most("meta_bytes", before.meta, MEBIBYTE);
    figure_address_space_at_most(before.address_space, 768u * MEBIBYTE);
    size_t maps = figure_map_count();
    if (maps > before.maps + 200) {
        expect_say("maps grew from %zu to %zu\n", before.maps, maps);
        EXPECT(maps <= before.maps + 200);
    }
}

static void growth_huge_blocks_resized_under_a_limit_is_no_failure(void) {
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        struct rlimit limit = {1u << 30, 1u << 30};
        EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
        churn();
        _exit(0);
    }
    EXPECT_CHILD(child, 0);
}

/* The program gives half of a block another attribute, so that the kernel cannot move it whole. */
static void growth_block_of_two_mappings_resized_address_space_is_flat(void) {
    enum { ROUNDS = 100 };
    const size_t small = 4 * MEBIBYTE, big = 16 * MEBIBYTE;
    level_t before = level_now();
    for (size_t round = 0; round < ROUNDS; ++round) {
        unsigned char *block = family.malloc(small);
        EXPECT(block != NULL);
        memset(block, (int)round, small);
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        unsigned char *inside = block + (page - (uintptr_t)block % page) % page;
        EXPECT_EQ(madvise(inside, small / 2, MADV_DONTDUMP), 0);
        block = family.realloc(block, big);
        EXPECT(block != NULL);
        for (size_t at = 0; at < small; at += page) {
            EXPECT_EQ(block[at], (unsigned char)round);
        }
        inside = block + (page - (uintptr_t)block % page) % page;
        EXPECT_EQ(madvise(inside, big - page, MADV_DODUMP), 0);
        family.free(block);
    }
    level_check(&before, 64 * MEBIBYTE);
}

/* Two blocks of which the cache of huge blocks (32 MiB) holds not quite both: one of them must be
 * mapped anew in each round, the other not. */
static void growth_cache_filled_beyond_its_bound_gives_up_the_excess(void) {
    enum { ROUNDS = 1000 };
    const size_t size = 17 * MEBIBYTE;
    size_t before = figure("huge_map");
    for (size_t round = 0; round < ROUNDS; ++round) {
        unsigned char *a = block_touched(size);
        unsigned char *b = block_touched(size);
        family.free(a);
        family.free(b);
    }
    figure_at_most("huge_map", before, ROUNDS + ROUNDS / 10);
}

/* The same, and what is left is enough for many smaller blocks. */
static void growth_cache_filled_beyond_its_bound_serves_smaller_blocks(void) {
    enum { ROUNDS = 300, COUNT = 10 };
    unsigned char *blocks[COUNT];
    size_t before = figure("huge_map");
    for (size_t round = 0; round < ROUNDS; ++round) {
        unsigned char *a = block_touched(17 * MEBIBYTE);
        unsigned char *b = block_touched(17 * MEBIBYTE);
        family.free(a);
        family.free(b);
        for (size_t i = 0; i < COUNT; ++i) {
            blocks[i] = block_touched(2 * MEBIBYTE);
        }
        for (size_t i = 0; i < COUNT; ++i) {
            family.free(blocks[i]);
        }
    }
    figure_at_most("huge_map", before, 3 * ROUNDS);
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(growth_huge_block_mapped_and_unmapped_metadata_is_flat);
    RUN(growth_vector_doubled_by_realloc_is_not_copied);
    RUN(growth_vector_doubled_by_realloc_metadata_is_flat);
    RUN(growth_large_blocks_taken_and_trimmed_metadata_is_flat);
    RUN(growth_block_of_two_mappings_resized_address_space_is_flat);
    RUN(growth_cache_filled_beyond_its_bound_gives_up_the_excess);
    RUN(growth_cache_filled_beyond_its_bound_serves_smaller_blocks);
    RUN(growth_huge_blocks_resized_under_a_limit_is_no_failure);
    RUN(growth_huge_blocks_resized_at_random_maps_and_address_space_are_flat);
    return expect_status();
}
