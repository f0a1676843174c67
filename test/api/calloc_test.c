/* SPDX-License-Identifier: MIT
 *
 * Is calloc's memory zero whatever was in it before, and are overflowing products refused?
 * Argument: the largest block tried, as its logarithm (default 25: 32 MiB).
 */
#include "family.h"

enum { DIRTY_COUNT = 64 };

static size_t largest_log2 = 25;

static bool is_zero(const unsigned char *block, size_t size) {
    for (size_t at = 0; at < size; ++at) {
        if (block[at] != 0) {
            return false;
        }
    }
    return true;
}

/* Leaves freed memory of about this size full of ones. */
static void dirty(size_t size) {
    void *blocks[DIRTY_COUNT];
    size_t count = size > 65536 ? 2 : DIRTY_COUNT;
    for (size_t i = 0; i < count; ++i) {
        blocks[i] = family.malloc(size);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], 0xff, family.usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; ++i) {
        family.free(blocks[i]);
    }
}

static void calloc_of_dirtied_memory_is_zero(void) {
    for (size_t size = 1; size <= (size_t)1 << largest_log2; size = size * 5 / 4 + 1) {
        dirty(size);
        unsigned char *blocks[4];
        for (size_t i = 0; i < 4; ++i) {
            blocks[i] = size % 2 == 0 ? family.calloc(size / 2, 2) : family.calloc(1, size);
            EXPECT(blocks[i] != NULL);
            EXPECT_EQ((uintptr_t)blocks[i] % 16, 0);
            EXPECT(is_zero(blocks[i], size));
            memset(blocks[i], 0xff, size);
        }
        for (size_t i = 0; i < 4; ++i) {
            family.free(blocks[i]);
        }
    }
}

static void calloc_after_large_blocks_were_cut_into_small_ones_is_zero(void) {
    for (size_t size = 3 << 20; size >= 64; size /= 3) {
        dirty(4 << 20);
        unsigned char *block = family.calloc(size, 1);
        EXPECT(block != NULL);
        EXPECT(is_zero(block, size));
        memset(block, 0xff, size);
        family.free(block);
    }
}

static void calloc_of_zero_elements_gives_a_block(void) {
    void *first = family.calloc(0, 8);
    void *second = family.calloc(8, 0);
    void *third = family.calloc(SIZE_MAX, 0);
    EXPECT(first != NULL && second != NULL && third != NULL && first != second);
    family.free(first);
    family.free(second);
    family.free(third);
}

static void calloc_of_an_overflowing_product_is_enomem(void) {
    static const size_t products[][2] = {{SIZE_MAX, 2},         {2, SIZE_MAX},
                                         {SIZE_MAX / 2 + 1, 2}, {(size_t)1 << 32, (size_t)1 << 32},
                                         {SIZE_MAX, SIZE_MAX},  {SIZE_MAX / 16 + 2, 16},
                                         {SIZE_MAX, 1},         {(size_t)PTRDIFF_MAX / 8 + 1, 8},
                                         {(size_t)1 << 40, 512}};
    for (size_t i = 0; i < sizeof products / sizeof products[0]; ++i) {
        errno = 0;
        void *block = family.calloc(products[i][0], products[i][1]);
        EXPECT(block == NULL);
        EXPECT_EQ(errno, ENOMEM);
    }
}

int main(int argc, char **argv) {
    largest_log2 = expect_arg(argc, argv, 1, largest_log2);
    family_load();
    RUN(calloc_of_dirtied_memory_is_zero);
    RUN(calloc_after_large_blocks_were_cut_into_small_ones_is_zero);
    RUN(calloc_of_zero_elements_gives_a_block);
    RUN(calloc_of_an_overflowing_product_is_enomem);
    return expect_status();
}
