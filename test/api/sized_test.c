/* SPDX-License-Identifier: MIT
 *
 * With sized_check:0 the size of a sized free is ignored, also where it cannot be the block's
 * (crime_test.py has what happens otherwise). */
#include "family.h"

#include <string.h>

static void wrong_sizes_are_ignored(void) {
    static const size_t claimed[] = {0, 1, 100, 5000, (size_t)1 << 20, (size_t)1 << 40};
    EXPECT_HAS(free_sized);
    for (size_t size = 1; size <= (size_t)4 << 20; size *= 3) {
        for (size_t i = 0; i < sizeof claimed / sizeof *claimed; i++) {
            char *block = family.malloc(size);
            memset(block, 1, size);
            family.free_sized(block, claimed[i]);
            block = family.aligned_alloc(64, size);
            memset(block, 1, size);
            family.free_aligned_sized(block, 64, claimed[i]);
        }
    }
}

/* What was freed so is as good as any other. */
static void freed_blocks_serve_again(void) {
    enum { BLOCKS = 500 };
    char *block[BLOCKS];
    EXPECT_HAS(free_sized);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            block[i] = family.malloc(200);
            memset(block[i], i, 200);
        }
        for (int i = 0; i < BLOCKS; i++) {
            EXPECT(block[i][0] == (char)i && memcmp(block[i], block[i] + 1, 199) == 0);
            family.free_sized(block[i], 16);
        }
    }
}

int main(void) {
    family_load();
    RUN(wrong_sizes_are_ignored);
    RUN(freed_blocks_serve_again);
    return expect_status();
}
