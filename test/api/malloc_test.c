/* SPDX-License-Identifier: MIT
 *
 * Does malloc give every size it must, aligned, writable to its usable end; does it refuse what
 * cannot be served; do malloc and free keep their hands off errno? Argument: the largest power of
 * two tried, as its logarithm (default 26: 64 MiB).
 */
#include "family.h"

enum { ALIGNMENT_BYTES = 16 };

static size_t largest_log2 = 26;

static void check_block(unsigned char *block, size_t size) {
    EXPECT(block != NULL);
    EXPECT_EQ((uintptr_t)block % ALIGNMENT_BYTES, 0);
    EXPECT(family.usable_size(block) >= size);
}

static void malloc_every_size_is_aligned_and_writable_to_its_usable_end(void) {
    for (size_t size = 0; size <= 80000; size += size < 4200 ? 1 : 61) {
        unsigned char *block = family.malloc(size);
        check_block(block, size);
        size_t usable = family.usable_size(block);
        memset(block, (int)(size & 0xff), usable);
        EXPECT_EQ(family.usable_size(block), usable);
        family.free(block);
    }
}

static void malloc_sizes_around_powers_of_two_are_served(void) {
    for (size_t log2 = 4; log2 <= largest_log2; ++log2) {
        for (int off = -1; off <= 1; ++off) {
            size_t size = ((size_t)1 << log2) + (size_t)off;
            unsigned char *block = family.malloc(size);
            check_block(block, size);
            size_t usable = family.usable_size(block);
            block[0] = 1;
            for (size_t at = 4096; at < usable; at += 65536) {
                block[at] = 2;
            }
            block[usable - 1] = 3;
            family.free(block);
        }
    }
}

static void malloc_zero_gives_distinct_blocks(void) {
    void *first = family.malloc(0);
    void *second = family.malloc(0);
    EXPECT(first != NULL && second != NULL && first != second);
    family.free(first);
    family.free(second);
}

static void malloc_beyond_the_address_space_is_enomem(void) {
    static const size_t sizes[] = {SIZE_MAX,
                                   SIZE_MAX - 1,
                                   SIZE_MAX - 15,
                                   SIZE_MAX - 4095,
                                   SIZE_MAX - 65535,
                                   SIZE_MAX - (4 << 20),
                                   SIZE_MAX / 2 + 2,
                                   (size_t)PTRDIFF_MAX + 1,
                                   (size_t)PTRDIFF_MAX,
                                   (size_t)PTRDIFF_MAX - 65536,
                                   (size_t)1 << 60,
                                   (size_t)1 << 48};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        errno = 0;
        void *block = family.malloc(sizes[i]);
        EXPECT(block == NULL);
        EXPECT_EQ(errno, ENOMEM);
        void *small = family.malloc(32);
        EXPECT(small != NULL);
        family.free(small);
    }
}

static void malloc_success_and_free_leave_errno_alone(void) {
    for (size_t size = 1; size <= (size_t)1 << 25; size = size * 2 + 1) {
        errno = 4711;
        char *block = family.malloc(size);
        EXPECT_EQ(errno, 4711);
        EXPECT(block != NULL);
        block[0] = block[size - 1] = 1;
        EXPECT(family.usable_size(block) >= size);
        family.free(block);
        EXPECT_EQ(errno, 4711);
    }
}

static void free_of_null_does_nothing(void) {
    errno = 4711;
    family.free(NULL);
    EXPECT_EQ(errno, 4711);
    if (family.cfree) {
        family.cfree(NULL);
        family.cfree(family.malloc(100));
    }
    EXPECT_EQ(errno, 4711);
}

static void usable_size_of_null_is_zero(void) {
    EXPECT_EQ(family.usable_size(NULL), 0);
}

static void free_sized_frees_every_size(void) {
    EXPECT_HAS(free_sized);
    errno = 4711;
    family.free_sized(NULL, 0);
    family.free_sized(NULL, 100);
    for (size_t size = 0; size <= (size_t)1 << 23; size = size * 9 / 8 + 1) {
        char *block = family.malloc(size);
        EXPECT(block != NULL);
        memset(block, 1, size < 4096 ? size : 4096);
        family.free_sized(block, size);
        block = family.calloc(1, size);
        EXPECT(block != NULL);
        family.free_sized(block, size);
        block = family.realloc(family.malloc(size / 2), size + 1);
        EXPECT(block != NULL);
        family.free_sized(block, size + 1);
    }
    EXPECT_EQ(errno, 4711);
}

int main(int argc, char **argv) {
    largest_log2 = expect_arg(argc, argv, 1, largest_log2);
    family_load();
    RUN(malloc_every_size_is_aligned_and_writable_to_its_usable_end);
    RUN(malloc_sizes_around_powers_of_two_are_served);
    RUN(malloc_zero_gives_distinct_blocks);
    RUN(malloc_beyond_the_address_space_is_enomem);
    RUN(malloc_success_and_free_leave_errno_alone);
    RUN(free_of_null_does_nothing);
    RUN(usable_size_of_null_is_zero);
    RUN(free_sized_frees_every_size);
    return expect_status();
}
