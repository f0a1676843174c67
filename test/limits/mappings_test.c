/* SPDX-License-Identifier: MIT
 *
 * A program that makes nearly as many mappings as the kernel allows (max_map_count): is every
 * request a block, or NULL with ENOMEM, with no mapping left or a few? The kernel refuses then to
 * map, to unmap the middle of a mapping, to advise and to move. What is freed must go back
 * nevertheless, and when there is room again everything must be served.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "api/family.h"
#include "api/figure.h"

enum { KIBIBYTE = 1 << 10, MEBIBYTE = 1 << 20, MOST_MAPPINGS = 400000 };

/* --- mappings --------------------------------------------------------------------------------*/

static char *range; /* every second OS page of it can be made a mapping of its own */
static size_t page_bytes, pages, used_pages;

static size_t map_count_limit(void) {
    char text[32] = {0};
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) {
        expect_skip("max_map_count cannot be read");
    }
    close(fd);
    return strtoull(text, NULL, 10);
}

static bool mapping_add(void) {
    if (used_pages + 2 > pages ||
        mprotect(range + (used_pages + 1) * page_bytes, page_bytes, PROT_READ) != 0) {
        return false;
    }
    used_pages += 2;
    return true;
}

/* Two mappings less each. */
static void mappings_drop(size_t count) {
    for (; count > 0 && used_pages > 0; --count) {
        used_pages -= 2;
        EXPECT_EQ(mprotect(range + (used_pages + 1) * page_bytes, page_bytes, PROT_NONE), 0);
    }
}

static void mappings_fill(void) {
    while (mapping_add()) {
    }
    EXPECT(errno == ENOMEM);
    errno = 0;
}

/* --- loads -----------------------------------------------------------------------------------*/

enum { PLACES = 600 };

static unsigned char *blocks[PLACES];
static size_t sizes[PLACES];
static size_t refusals;

static bool served(const void *block) {
    if (block == NULL) {
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        ++refusals;
    }
    return block != NULL;
}

static void take(size_t place, size_t size, size_t align) {
    unsigned char *block = align != 0 ? family.memalign(align, size) : family.malloc(size);
    blocks[place] = block;
    sizes[place] = size;
    if (served(block)) {
        block[0] = block[size - 1] = (unsigned char)place;
    }
}

static void resize(size_t place, size_t size) {
    unsigned char *block = family.realloc(blocks[place], size);
    if (!served(block)) {
        EXPECT(blocks[place] == NULL || size > sizes[place]); /* shrinking cannot fail */
        return;
    }
    EXPECT(blocks[place] == NULL || block[0] == (unsigned char)place);
    block[0] = block[size - 1] = (unsigned char)place;
    blocks[place] = block;
    sizes[place] = size;
}

static void give(size_t place) {
    const unsigned char *block = blocks[place];
    if (block != NULL) {
        EXPECT_EQ(block[0], (unsigned char)place);
        EXPECT_EQ(block[sizes[place] - 1], (unsigned char)place);
    }
    family.free(blocks[place]);
    blocks[place] = NULL;
}

/* Every kind of block, grown and cut, with holes, trimmed in between. */
static void work(void) {
    static const size_t kinds[] = {
        16,       300,          5000,         40000,        100 * KIBIBYTE, 700 * KIBIBYTE,
        MEBIBYTE, 2 * MEBIBYTE, 9 * MEBIBYTE, 30 * MEBIBYTE};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (size_t i = 0; i < PLACES; ++i) {
        size_t kind = i % 60 == 59 ? 8 + i / 60 % 2 : i % 8;
        take(i, kinds[kind] + i * 16, i % 7 == 3 ? (size_t)4096 << i % 10 : 0);
    }
    for (size_t i = 0; i < PLACES; i += 2) {
        give(i);
    }
    family.trim(0);
    for (size_t i = 0; i < PLACES; i += 3) {
        resize(i, kinds[i % KINDS] * 2);
    }
    for (size_t i = 1; i < PLACES; i += 3) {
        resize(i, sizes[i] / 3 + 1);
    }
    for (size_t i = 0; i < PLACES; ++i) {
        give(i);
    }
    family.trim(0);
}

static void mappings_all_used_up_requests_are_served_or_enomem(void) {
    work(); /* what is kept after it, is kept now */
    size_t before = expect_rss_bytes();
    mappings_fill();
    refusals = 0;
    work();
    mappings_fill(); /* what was unmapped became free for others */
    work();
    expect_say("  %zu refusals with no mapping left\n", refusals);
    expect_rss_at_most(before, 8 * MEBIBYTE);
    for (size_t room = 1; room <= 24; ++room) {
        mappings_drop(1);
        refusals = 0;
        work();
        expect_rss_at_most(before, 8 * MEBIBYTE);
    }
    expect_say("  %zu with some 48\n", refusals);
}

static void mappings_dropped_everything_is_served_again(void) {
    mappings_drop(SIZE_MAX);
    refusals = 0;
    work();
    EXPECT_EQ(refusals, 0);
}

/* One that is part of no other. */
static void *mapping_alone(void) {
    return mmap(NULL, page_bytes, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void mapping_kept_for_reuse_goes_for_a_larger_one(void) {
    enum { KEPT = 3 * MEBIBYTE, LARGER = 9 * MEBIBYTE, ALONE_MOST = 16 };
    void *alone[ALONE_MOST];
    size_t count = 0;
    family.trim(0);
    EXPECT(mapping_alone() != MAP_FAILED); /* the kept one lies between two */
    take(0, KEPT, 0);
    EXPECT(mapping_alone() != MAP_FAILED);
    give(0);
    mappings_fill();
    while (count < ALONE_MOST && (alone[count] = mapping_alone()) != MAP_FAILED) {
        count++; /* the kernel maps one or two more than it splits */
    }
    EXPECT(count < ALONE_MOST);
    refusals = 0;
    take(1, LARGER, 0);
    EXPECT_EQ(refusals, 0);
    give(1);
    while (count > 0) {
        EXPECT_EQ(munmap(alone[--count], page_bytes), 0);
    }
    mappings_drop(SIZE_MAX);
}

/* The kernel moves nothing when only a few mappings are left, and maps still. */
static void moves_refused_for_lack_of_mappings_lose_no_addresses(void) {
    enum { ROUNDS = 100, SIZE = 9 * MEBIBYTE, LOST_MOST = 64 * MEBIBYTE };
    family.trim(0);
    size_t copied = figure("realloc_copied_bytes"); /* which takes mappings */
    mappings_fill();
    mappings_drop(1);
    size_t before = expect_statm_bytes(0);
    for (size_t i = 0; i < ROUNDS; ++i) {
        take(0, SIZE, 0); /* the next one lies below it */
        take(1, SIZE, 0);
        resize(1, 2 * SIZE);
        give(1);
        give(0);
        family.trim(0);
    }
    figure_address_space_at_most(before, LOST_MOST);
    mappings_drop(SIZE_MAX);
    EXPECT(figure("realloc_copied_bytes") >= copied + (size_t)ROUNDS / 2 * SIZE);
}

/* Room for the mapping, and none for its bytes: neither in place, nor elsewhere, nor for a copy. */
static void moves_refused_by_rlimit_data_lose_no_addresses(void) {
    enum { ROUNDS = 100, SIZE = 9 * MEBIBYTE, LARGER = 64 * MEBIBYTE, ROOM = 8 * MEBIBYTE };
    struct rlimit all, less;
    family.trim(0);
    take(0, SIZE, 0);
    memset(blocks[0], 0, SIZE); /* give() looks at the first byte and the last */
    EXPECT_EQ(getrlimit(RLIMIT_DATA, &all), 0);
    less = all;
    less.rlim_cur = expect_statm_bytes(5) + ROOM;
    EXPECT_EQ(setrlimit(RLIMIT_DATA, &less), 0);
    size_t before = expect_statm_bytes(0);
    refusals = 0;
    for (size_t i = 0; i < ROUNDS; ++i) {
        resize(0, LARGER);
    }
    EXPECT_EQ(refusals, ROUNDS);
    figure_address_space_at_most(before, LARGER);
    EXPECT_EQ(setrlimit(RLIMIT_DATA, &all), 0);
    for (size_t i = 0; i < SIZE; i += KIBIBYTE) {
        EXPECT_EQ(blocks[0][i], 0);
    }
    resize(0, LARGER);
    EXPECT_EQ(refusals, ROUNDS);
    give(0);
}

int main(void) {
    family_load();
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    size_t limit = map_count_limit();
    if (limit > MOST_MAPPINGS) {
        expect_skip("max_map_count is too high to be reached");
    }
    if (expect_is_emulated() || !family.trim) {
        expect_skip("mappings are the emulator's, or there is no malloc_trim");
    }
    pages = limit + 2;
    range = mmap(NULL, pages * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED) {
        return 1;
    }
    expect_watchdog();
    RUN(mappings_all_used_up_requests_are_served_or_enomem);
    RUN(mappings_dropped_everything_is_served_again);
    RUN(mapping_kept_for_reuse_goes_for_a_larger_one);
    RUN(moves_refused_for_lack_of_mappings_lose_no_addresses);
    RUN(moves_refused_by_rlimit_data_lose_no_addresses);
    return expect_status();
}
