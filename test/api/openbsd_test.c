/* SPDX-License-Identifier: MIT
 *
 * Do recallocarray and freezero keep OpenBSD's promises: new memory zero, given-up memory cleared,
 * overflow told apart (new product ENOMEM, old product EINVAL)?
 */
#include "family.h"

enum { ONES = 0xa5 };

static bool all_bytes_are(const unsigned char *block, size_t from, size_t to, int value) {
    for (size_t at = from; at < to; ++at) {
        if (block[at] != value) {
            return false;
        }
    }
    return true;
}

static void recallocarray_of_null_is_calloc(void) {
    EXPECT_HAS(recallocarray);
    for (size_t count = 1; count < 1000000; count *= 7) {
        unsigned char *dirty = family.malloc(count * 3);
        EXPECT(dirty != NULL);
        memset(dirty, ONES, count * 3);
        family.free(dirty);
        unsigned char *block = family.recallocarray(NULL, 12345, count, 3);
        EXPECT(block != NULL);
        EXPECT(all_bytes_are(block, 0, count * 3, 0));
        family.free(block);
    }
}

static void recallocarray_growing_keeps_the_old_and_zeroes_the_new(void) {
    EXPECT_HAS(recallocarray);
    for (size_t old_count = 1; old_count < 200000; old_count = old_count * 5 + 1) {
        for (size_t factor = 2; factor <= 32; factor *= 4) {
            size_t count = old_count * factor;
            unsigned char *block = family.malloc(old_count * 4);
            EXPECT(block != NULL);
            memset(block, ONES, family.usable_size(block)); /* the slack must not show up */
            block = family.recallocarray(block, old_count, count, 4);
            EXPECT(block != NULL);
            EXPECT(all_bytes_are(block, 0, old_count * 4, ONES));
            EXPECT(all_bytes_are(block, old_count * 4, count * 4, 0));
            family.free(block);
        }
    }
}

static void recallocarray_by_one_element_zeroes_it(void) {
    EXPECT_HAS(recallocarray);
    unsigned char *block = family.calloc(1, 8);
    EXPECT(block != NULL);
    for (size_t count = 1; count < 3000; ++count) {
        memset(block, ONES, count * 8);
        block = family.recallocarray(block, count, count + 1, 8);
        EXPECT(block != NULL);
        EXPECT(all_bytes_are(block, 0, count * 8, ONES));
        EXPECT(all_bytes_are(block, count * 8, count * 8 + 8, 0));
    }
    family.free(block);
}

static void recallocarray_shrinking_clears_what_it_gives_up(void) {
    EXPECT_HAS(recallocarray);
    for (size_t old_size = 64; old_size <= 1 << 20; old_size *= 4) {
        for (size_t size = old_size / 16; size < old_size; size += old_size / 5) {
            unsigned char *block = family.malloc(old_size);
            EXPECT(block != NULL);
            memset(block, ONES, old_size);
            unsigned char *shrunk = family.recallocarray(block, old_size, size, 1);
            EXPECT(shrunk != NULL);
            EXPECT(all_bytes_are(shrunk, 0, size, ONES));
            if (shrunk == block && family.usable_size(shrunk) >= old_size) {
                EXPECT(all_bytes_are(shrunk, size, old_size, 0));
            }
            shrunk = family.recallocarray(shrunk, size, old_size, 1);
            EXPECT(shrunk != NULL);
            EXPECT(all_bytes_are(shrunk, size, old_size, 0));
            family.free(shrunk);
        }
    }
}

static void recallocarray_overflow_is_enomem_or_einval_and_keeps_the_block(void) {
    EXPECT_HAS(recallocarray);
    unsigned char *block = family.malloc(64);
    EXPECT(block != NULL);
    memset(block, ONES, 64);
    errno = 0;
    EXPECT(family.recallocarray(block, 8, SIZE_MAX / 4, 8) == NULL);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT(family.recallocarray(block, SIZE_MAX / 4, 16, 8) == NULL);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT(family.recallocarray(block, 64, (size_t)PTRDIFF_MAX + 1, 1) == NULL);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT(all_bytes_are(block, 0, 64, ONES));
    family.free(block);
}

/* What the sampled guard watches is handed out again after all other places. */
static bool is_watching(void) {
    const char *options = getenv("HAKMEM_OPTIONS"), *profile = getenv("HAKMEM_PROFILE");
    return (options != NULL && strstr(options, "guard_rate:1") != NULL) ||
           (profile != NULL && strcmp(profile, "debug") == 0);
}

/* The next block of the same size usually is the same memory: it must not show the old bytes. */
static void freezero_clears_before_it_frees(void) {
    EXPECT_HAS(freezero);
    errno = 4711;
    family.freezero(NULL, 0);
    family.freezero(NULL, 100);
    for (size_t size = 48; size <= 1 << 20; size *= 3) {
        size_t seen_again = 0;
        for (size_t round = 0; round < 50; ++round) {
            unsigned char *block = family.malloc(size);
            EXPECT(block != NULL);
            memset(block, ONES, size);
            uintptr_t address = (uintptr_t)block;
            family.freezero(block, size);
            unsigned char *next = family.malloc(size);
            EXPECT(next != NULL);
            if ((uintptr_t)next == address) {
                ++seen_again;
                for (size_t at = 32; at < size; ++at) { /* the first words are the allocator's */
                    EXPECT(next[at] != ONES);
                }
            }
            family.free(next);
        }
        EXPECT(seen_again > 0 || size > 4096 || !family.is_hakmem || expect_is_hardened() ||
               is_watching());
    }
    EXPECT_EQ(errno, 4711);
}

static void freezero_of_a_part_is_allowed(void) {
    EXPECT_HAS(freezero);
    for (size_t size = 16; size < 100000; size *= 5) {
        family.freezero(family.malloc(size), size / 2);
        family.freezero(family.malloc(size), 0);
    }
}

int main(void) {
    family_load();
    RUN(recallocarray_of_null_is_calloc);
    RUN(recallocarray_growing_keeps_the_old_and_zeroes_the_new);
    RUN(recallocarray_by_one_element_zeroes_it);
    RUN(recallocarray_shrinking_clears_what_it_gives_up);
    RUN(recallocarray_overflow_is_enomem_or_einval_and_keeps_the_block);
    RUN(freezero_clears_before_it_frees);
    RUN(freezero_of_a_part_is_allowed);
    return expect_status();
}
