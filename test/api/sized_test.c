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
            EXPECT(block != NULL);
            memset(block, 1, size);
            family.free_sized(block, claimed[i]);
            block = family.aligned_alloc(64, size);
            memset(block, 1, size);
            family.free_aligned_sized(block, 64, claimed[i]);
        }
    }
}

int main(void) {
    family_load();
    RUN(wrong_sizes_are_ignored);
    return expect_status();
}
