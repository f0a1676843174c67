/* SPDX-License-Identifier: MIT
 *
 * A block that realloc lets grow to 1 GiB: are bytes copied, or does it grow in place and by moved
 * pages? Copies of more than 128 KiB are counted by the allocator. A block that grows alone is not
 * copied from there on, whatever the step; one that has others behind it not above 1 MiB, below
 * which copying to memory at hand costs less than moving pages.
 * After memory was cached a block may be made of several mappings, which cannot be moved: then it
 * is copied, from 8 MiB on once. Under an emulator, which does not move pages out of a mapping,
 * only the bytes are checked. Argument: log2 of the last size (default 30).
 */
#include "api/family.h"
#include "api/figure.h"
#include "api/still_clock.h" /* memory that was given back by time would fault again */

#include <sys/resource.h>

enum { KIBIBYTE = 1 << 10, MEBIBYTE = 1 << 20, STRIDE = 256 * KIBIBYTE, WALLS = 4096 };

static size_t last_bytes;

typedef size_t step_t(size_t size);

static size_t step_double(size_t size) {
    return size * 2;
}

static size_t step_half_more(size_t size) {
    return size + size / 2 + 1;
}

static size_t step_mebibyte(size_t size) {
    return size + MEBIBYTE;
}

/* Every kind of block, small steps first. */
static size_t step_eighth_more(size_t size) {
    return size + size / 8 + 4096;
}

static unsigned char mark(size_t at) {
    return (unsigned char)(at / STRIDE % 251 + 1);
}

/* The last byte of what is new, and one in each STRIDE of it. */
static void fill(unsigned char *block, size_t from, size_t to) {
    for (size_t at = (from + STRIDE - 1) / STRIDE * STRIDE; at < to; at += STRIDE) {
        block[at] = mark(at);
    }
    block[to - 1] = mark(to - 1);
}

static void check(const unsigned char *block, size_t bytes) {
    for (size_t at = 0; at < bytes; at += STRIDE) {
        EXPECT(block[at] == mark(at));
    }
    EXPECT(block[bytes - 1] == mark(bytes - 1));
}

static void *walls[WALLS];
static size_t wall_count;

/* Blocks of every kind that stay behind the growing one. */
static void wall_add(void) {
    static const size_t sizes[] = {64, 5000, 70000, 200 * KIBIBYTE, 900 * KIBIBYTE, 3 * MEBIBYTE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && wall_count < WALLS; ++i) {
        walls[wall_count] = family.malloc(sizes[i]);
        EXPECT(walls[wall_count] != NULL);
        ++wall_count;
    }
}

static void wall_drop(void) {
    while (wall_count > 0) {
        family.free(walls[--wall_count]);
    }
}

static size_t copied_bytes(void) {
    return figure("realloc_copied_bytes");
}

typedef struct copies {
    size_t small, huge; /* of blocks up to 1 MiB, and above */
} copies_t;

/* Nothing of what was freed before is at hand. */
static copies_t grow(size_t size, step_t *step, bool has_walls) {
    size_t start = copied_bytes(), at_mebibyte = start;
    unsigned char *block = family.malloc(size);
    EXPECT(block != NULL);
    fill(block, 0, size);
    while (size < last_bytes) {
        size_t more = step(size) < last_bytes ? step(size) : last_bytes;
        if (has_walls) {
            wall_add();
        }
        unsigned char *grown = family.realloc(block, more);
        EXPECT(grown != NULL);
        block = grown;
        EXPECT(block[size - 1] == mark(size - 1));
        at_mebibyte = size <= MEBIBYTE ? copied_bytes() : at_mebibyte;
        fill(block, size, more);
        size = more;
    }
    check(block, size);
    family.free(block);
    wall_drop();
    copies_t copies = {at_mebibyte - start, copied_bytes() - at_mebibyte};
    expect_say("  %s: %zu KiB copied up to 1 MiB, %zu KiB above\n", has_walls ? "others" : "alone",
               copies.small >> 10, copies.huge >> 10);
    return copies;
}

static const struct {
    size_t first_bytes;
    step_t *step;
} ways[] = {
    {1000, step_double},
    {1000, step_half_more},
    {MEBIBYTE, step_mebibyte},
    {200 * KIBIBYTE, step_eighth_more},
};

enum { WAYS = sizeof ways / sizeof *ways };

static void realloc_of_a_block_alone_to_1_gib_copies_nothing(void) {
    for (size_t i = 0; i < WAYS; ++i) {
        family.trim(0);
        copies_t copies = grow(ways[i].first_bytes, ways[i].step, false);
        EXPECT(copies.small + copies.huge == 0 || expect_is_emulated());
    }
}

static void realloc_among_others_to_1_gib_copies_nothing_above_1_mib(void) {
    for (size_t i = 0; i < WAYS; ++i) {
        family.trim(0);
        copies_t copies = grow(ways[i].first_bytes, ways[i].step, true);
        EXPECT(copies.small <= 8 * MEBIBYTE);
        EXPECT(copies.huge == 0 || expect_is_emulated());
    }
}

/* Blocks above 1 MiB that grew, shrank and went to the cache, where neighbours join. */
static void churn(void) {
    enum { PLACES = 12, ROUNDS = 3000 };
    static unsigned char *blocks[PLACES];
    uint32_t draw = 1;
    for (size_t round = 0; round < ROUNDS; ++round) {
        draw = draw * 1664525 + 1013904223;
        size_t place = (draw >> 10) % PLACES;
        size_t size = ((size_t)(draw >> 16) % 7 + 1) * 1300000;
        if ((draw >> 28) % 3 == 0) {
            family.free(blocks[place]);
            blocks[place] = NULL;
        }
        blocks[place] = family.realloc(blocks[place], size);
        EXPECT(blocks[place] != NULL);
        blocks[place][0] = blocks[place][size - 1] = 1;
    }
    for (size_t place = 0; place < PLACES; ++place) {
        family.free(blocks[place]);
        blocks[place] = NULL;
    }
}

/* A few copies of less than 8 MiB, and one. */
static void realloc_after_churn_copies_little(void) {
    enum { COPIED_MOST = 40 * MEBIBYTE };
    size_t copied = copied_bytes();
    churn();
    expect_say("  churn: %zu KiB copied\n", (copied_bytes() - copied) >> 10);
    for (size_t i = 0; i < WAYS; ++i) {
        copies_t copies = grow(4 * MEBIBYTE, ways[i].step, i % 2 != 0);
        EXPECT(copies.huge <= COPIED_MOST || expect_is_emulated());
        churn();
    }
}

/* All of what is new is written to each time, at random sizes of 2 to 6 MiB. */
static void realloc_up_and_down_faults_memory_in_once(void) {
    enum { ROUNDS = 1000, LEAST = 2 * MEBIBYTE, MOST = 6 * MEBIBYTE, OS_PAGE = 4096 };
    struct rusage before, after;
    uint64_t random = 1;
    size_t size = LEAST;
    unsigned char *block = family.malloc(size);
    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < ROUNDS; ++i) {
        size_t next = LEAST + expect_random(&random) % (MOST - LEAST);
        block = family.realloc(block, next);
        EXPECT(block != NULL);
        for (size_t at = size; at < next; at += OS_PAGE) {
            block[at] = 1;
        }
        size = next;
    }
    getrusage(RUSAGE_SELF, &after);
    family.free(block);
    expect_say("  %ld page faults\n", after.ru_minflt - before.ru_minflt);
    EXPECT(after.ru_minflt - before.ru_minflt <= 2 * MOST / OS_PAGE || expect_is_emulated());
}

int main(int argc, char **argv) {
    last_bytes = (size_t)1 << expect_arg(argc, argv, 1, 30);
    family_load();
    expect_watchdog();
    RUN(realloc_of_a_block_alone_to_1_gib_copies_nothing);
    RUN(realloc_among_others_to_1_gib_copies_nothing_above_1_mib);
    RUN(realloc_after_churn_copies_little);
    family.trim(0);
    RUN(realloc_up_and_down_faults_memory_in_once);
    return expect_status();
}
