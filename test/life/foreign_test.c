/* SPDX-License-Identifier: MIT
 *
 * Blocks of the C library's own malloc go to the C library. Addresses of no allocator are crimes
 * (test/crime).
 */
#include <dlfcn.h>

#include "api/family.h"

static void *(*libc_malloc)(size_t);
static void *(*libc_memalign)(size_t, size_t);

static void foreign_block_of_libc_can_be_freed(void) {
    for (size_t size = 1; size <= 8 << 20; size = size * 3 + 1) {
        unsigned char *block = libc_malloc(size);
        EXPECT(block != NULL);
        memset(block, 1, size);
        family.free(block);
        block = libc_memalign(4096, size);
        EXPECT(block != NULL);
        family.free(block);
    }
}

static void foreign_block_of_libc_can_be_resized(void) {
    for (size_t size = 24; size <= 8 << 20; size *= 7) {
        unsigned char *block = libc_malloc(size);
        EXPECT(block != NULL);
        memset(block, 0x66, size);
        block = family.realloc(block, size * 3);
        EXPECT(block != NULL);
        for (size_t at = 0; at < size; ++at) {
            EXPECT_EQ(block[at], 0x66);
        }
        block = family.realloc(block, size / 2);
        EXPECT(block != NULL);
        EXPECT_EQ(block[size / 2 - 1], 0x66);
        family.free(block);
    }
}

static void foreign_block_of_libc_has_a_usable_size(void) {
    unsigned char *block = libc_malloc(1000);
    EXPECT(block != NULL);
    EXPECT(family.usable_size(block) >= 1000);
    EXPECT(family.usable_size(block) < 2000);
    family.free(block);
}

int main(void) {
    family_load();
    *(void **)&libc_malloc = dlsym(RTLD_DEFAULT, "__libc_malloc");
    *(void **)&libc_memalign = dlsym(RTLD_DEFAULT, "__libc_memalign");
    if (!libc_malloc || !libc_memalign) {
        expect_skip("this libc has no __libc_malloc: its blocks are not tried");
    }
    RUN(foreign_block_of_libc_can_be_freed);
    RUN(foreign_block_of_libc_can_be_resized);
    RUN(foreign_block_of_libc_has_a_usable_size);
    return expect_status();
}
