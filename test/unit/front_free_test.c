/* SPDX-License-Identifier: MIT
 *
 * Cold exits of free: misuse is fatal, blocks of the C library are passed on. By the hak_ names. */
#include "base/counters.h"
#include "hakmem/hakmem.h"
#include "unit/fatal.h"

static void *free_in_thread(void *block) {
    UNIT_EXPECT_FATAL(hak_free(block), "free of an address inside a block: 0x");
    return NULL;
}

UNIT_TEST(misuse_inside_blocks_is_fatal) {
    char *small = hak_malloc(100);
    char *large = hak_malloc(300 * KIB);
    char *huge = hak_malloc(3u * MIB);
    unit_pthread_create_and_join(free_in_thread, small + 16);
    UNIT_EXPECT_FATAL(hak_free(large + 16), "free of an address inside a block");
    UNIT_EXPECT_FATAL(hak_free(large + 64 * KIB), "free of an address inside a block");
    UNIT_EXPECT_FATAL(hak_free(huge + 16), "free of an address inside a block");
    UNIT_EXPECT_FATAL(hak_realloc(small + 16, 5), "realloc of an address");
    UNIT_EXPECT_FATAL(hak_realloc(large + 64 * KIB, 5), "(inside a block");
    UNIT_EXPECT_FATAL(hak_malloc_usable_size(huge + 16), "malloc_usable_size of an address");
    hak_free(small);
    hak_free(large);
    hak_free(huge);
}

UNIT_TEST(misuse_of_foreign_addresses_is_fatal) {
    static _Alignas(16) char area[256];
    UNIT_EXPECT_FATAL(hak_free(area + 64), "free of an address that no allocator");
    UNIT_EXPECT_FATAL(hak_realloc(area + 64, 5), "realloc of an address that no allocator");
    UNIT_EXPECT_FATAL(hak_malloc_usable_size(area + 64), "malloc_usable_size of an address that");
    UNIT_EXPECT_FATAL(hak_free((void *)16), "free of an address that no allocator");
}

/* What the C library handed out goes back to it. */
UNIT_TEST(block_of_libc_is_passed_on) {
    if (UNIT_IS_TSAN) {
        skip(); /* malloc is the sanitizer's */
    }
    uint64_t before = hak_counters.foreign_free;
    for (size_t size = 1; size < 1u << 20; size *= 3) {
        char *block = malloc(size);
        memset(block, 1, size);
        assert_true(hak_malloc_usable_size(block) >= size);
        block = hak_realloc(block, size + 5);
        assert_true(unit_is_filled(block, size, 1));
        hak_free(block);
    }
    assert_true(hak_counters.foreign_free > before);
}
