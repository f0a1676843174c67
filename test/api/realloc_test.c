/* SPDX-License-Identifier: MIT
 *
 * Do realloc, reallocarray and reallocf keep contents over growing and shrinking through all size
 * ranges, leave the old block alone when they fail, and refuse overflowing products?
 * Argument: the largest block of the chains, as its logarithm (default 26: 64 MiB).
 */
#include "family.h"

static size_t largest_log2 = 26;

static unsigned char pattern(size_t at) {
    return (unsigned char)(at * 131 + (at >> 8) * 7 + 1);
}

static void fill(unsigned char *block, size_t from, size_t to) {
    for (size_t at = from; at < to; ++at) {
        block[at] = pattern(at);
    }
}

/* Small blocks wholly, large ones at a prime stride and at both ends. */
static void check(const unsigned char *block, size_t size) {
    size_t stride = size <= 100000 ? 1 : 509;
    for (size_t at = 0; at < size; at += stride) {
        EXPECT_EQ(block[at], pattern(at));
    }
    for (size_t at = size > 4096 ? size - 4096 : 0; at < size; ++at) {
        EXPECT_EQ(block[at], pattern(at));
    }
}

/* Grows from `from` to the largest size and back, by num/den a step. */
static void chain(size_t num, size_t den) {
    size_t largest = (size_t)1 << largest_log2;
    size_t size = 1;
    unsigned char *block = family.realloc(NULL, size);
    EXPECT(block != NULL);
    fill(block, 0, size);
    while (size < largest) {
        size_t next = size * num / den + 1;
        block = family.realloc(block, next);
        EXPECT(block != NULL);
        EXPECT_EQ((uintptr_t)block % 16, 0);
        EXPECT(family.usable_size(block) >= next);
        check(block, size);
        fill(block, size, next);
        size = next;
    }
    while (size > 1) {
        size = size * den / num;
        size = size == 0 ? 1 : size;
        block = family.realloc(block, size);
        EXPECT(block != NULL);
        check(block, size);
    }
    family.free(block);
}

static void realloc_chain_keeps_contents(void) {
    chain(9, 8);
    chain(2, 1);
    chain(37, 1);
}

static void realloc_of_an_aligned_block_keeps_contents(void) {
    for (size_t alignment = 32; alignment <= (size_t)1 << 20; alignment *= 2) {
        unsigned char *block = family.memalign(alignment, 1000);
        EXPECT(block != NULL);
        fill(block, 0, 1000);
        block = family.realloc(block, 100000);
        EXPECT(block != NULL);
        check(block, 1000);
        block = family.realloc(block, 10);
        EXPECT(block != NULL);
        check(block, 10);
        family.free(block);
    }
}

/* ISO C leaves it open; programs written on Linux rely on glibc's answer. */
static void realloc_to_zero_frees_the_block_and_gives_null(void) {
    size_t before = expect_rss_bytes();
    for (size_t i = 0; i < 50000; ++i) {
        char *block = family.malloc(5000);
        EXPECT(block != NULL);
        memset(block, 1, 5000);
        EXPECT(family.realloc(block, 0) == NULL);
    }
    expect_rss_at_most(before, 64 << 20);
    void *empty = family.realloc(NULL, 0);
    EXPECT(empty != NULL);
    family.free(empty);
}

static void realloc_that_fails_keeps_the_block(void) {
    static const size_t sizes[] = {SIZE_MAX, (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX,
                                   (size_t)1 << 48};
    for (size_t size = 24; size <= (size_t)1 << 23; size *= 7) {
        unsigned char *block = family.malloc(size);
        EXPECT(block != NULL);
        fill(block, 0, size);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
            errno = 0;
            EXPECT(family.realloc(block, sizes[i]) == NULL);
            EXPECT_EQ(errno, ENOMEM);
            check(block, size);
        }
        errno = 0;
        EXPECT(family.reallocarray(block, SIZE_MAX / 4, 8) == NULL);
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        EXPECT(family.reallocarray(block, (size_t)1 << 33, (size_t)1 << 33) == NULL);
        EXPECT_EQ(errno, ENOMEM);
        check(block, size);
        family.free(block);
    }
    errno = 0;
    EXPECT(family.realloc(NULL, SIZE_MAX) == NULL);
    EXPECT_EQ(errno, ENOMEM);
}

static void reallocarray_multiplies(void) {
    unsigned char *block = family.reallocarray(NULL, 10, 30);
    EXPECT(block != NULL);
    EXPECT(family.usable_size(block) >= 300);
    fill(block, 0, 300);
    block = family.reallocarray(block, 1000, 33);
    EXPECT(block != NULL);
    EXPECT(family.usable_size(block) >= 33000);
    check(block, 300);
    family.free(block);
}

static void reallocf_that_fails_frees_the_block(void) {
    EXPECT_HAS(reallocf);
    unsigned char *kept = family.reallocf(NULL, 100);
    EXPECT(kept != NULL);
    fill(kept, 0, 100);
    kept = family.reallocf(kept, 200000);
    EXPECT(kept != NULL);
    check(kept, 100);
    family.free(kept);
    size_t before = expect_rss_bytes();
    for (size_t i = 0; i < 50000; ++i) {
        void *block = family.malloc(5000);
        EXPECT(block != NULL);
        memset(block, 1, 5000);
        errno = 0;
        EXPECT(family.reallocf(block, SIZE_MAX) == NULL);
        EXPECT_EQ(errno, ENOMEM);
    }
    expect_rss_at_most(before, 64 << 20);
}

int main(int argc, char **argv) {
    largest_log2 = expect_arg(argc, argv, 1, largest_log2);
    family_load();
    RUN(realloc_chain_keeps_contents);
    RUN(realloc_of_an_aligned_block_keeps_contents);
    RUN(realloc_to_zero_frees_the_block_and_gives_null);
    RUN(realloc_that_fails_keeps_the_block);
    RUN(reallocarray_multiplies);
    RUN(reallocf_that_fails_frees_the_block);
    return expect_status();
}
