/* SPDX-License-Identifier: MIT
 *
 * What is said about misused blocks, and which traps are ours. */
#include "unit/guard.h"

enum { BYTES = 32 };

/* What hak_guard_trap says about an access; NULL: it is not ours. */
static const char *trap(const void *address) {
    hak_os_trap_t trap = {.address = address,
                          .access = "read",
                          .stack = HAK_FRAME(),
                          .frame = HAK_FRAME(),
                          .code = 4096};
    unit_fatal_begin();
    bool is_ours = hak_guard_trap(&trap);
    unit_fatal_end();
    return is_ours ? unit_fatal.line : NULL;
}

static void expect_said(const char *said, const char *first, const char *second) {
    assert_non_null(said);
    UNIT_EXPECT(strncmp(said, first, strlen(first)) == 0, "'%s' in '%s'", first, said);
    UNIT_EXPECT(strstr(said, second) != NULL, "'%s' in '%s'", second, said);
    UNIT_EXPECT(strstr(said, "hakmem:   accessed by thread ") != NULL, "'%s'", said);
    UNIT_EXPECT(strstr(said, "hakmem:   allocated by thread ") != NULL, "'%s'", said);
}

UNIT_TEST(trap_in_a_freed_block_is_use_after_free) {
    char *block = guard_sample_at(BYTES, true);
    hak_fast_free(block);
    const char *said = trap(block + 7);
    expect_said(said, "hakmem: use after free: 0x",
                "(read at 7 bytes into the freed 32-byte block at 0x");
    assert_non_null(strstr(said, "hakmem:   freed by thread "));
    expect_said(trap(block + 100), "hakmem: use after free: 0x",
                "(read at 68 bytes behind the freed 32-byte block at 0x");
}

UNIT_TEST(trap_in_a_guard_is_laid_to_the_nearer_block) {
    size_t page = hak_os_page_bytes();
    char *block = guard_sample_at(BYTES, false);
    expect_said(trap(block + BYTES), "hakmem: overflow of a block: 0x",
                "(read at 0 bytes behind the 32-byte block at 0x");
    hak_fast_free(block);
    block = guard_sample_at(BYTES, true);
    expect_said(trap(block - 5), "hakmem: underflow of a block: 0x",
                "(read at 5 bytes before the 32-byte block at 0x");
    assert_non_null(trap(block - page / 4));
    hak_fast_free(block);
}

UNIT_TEST(trap_elsewhere_is_not_ours) {
    size_t page = hak_os_page_bytes();
    char *block = guard_sample(BYTES, HAK_BLOCK_ALIGN);
    char *region = guard_page(block);
    while (guard_is_watched(region - page)) {
        region -= page;
    }
    assert_null(trap(block)); /* in use: that page is accessible */
    assert_null(trap(NULL));
    assert_null(trap(&block));
    assert_null(trap(region - 1));
    assert_null(trap(region + (2 * hak_guard_region.slot_count + 1) * page));
    hak_fast_free(block);
}

UNIT_TEST(free_of_what_is_no_block_is_told_apart) {
    char *block = guard_sample_at(BYTES, true);
    UNIT_EXPECT_FATAL(hak_fast_free(block + 16), "hakmem: free of an address inside a block: 0x");
    UNIT_EXPECT_FATAL(hak_fast_free(block - 64), "hakmem: free of an address that no allocator");
    UNIT_EXPECT_FATAL((void)hak_usable_size(block + 1), "(1 bytes into the 32-byte block at 0x");
    hak_fast_free(block);
    UNIT_EXPECT_FATAL(hak_fast_free(block), "hakmem: double free: 0x");
    assert_non_null(strstr(unit_fatal.line, "hakmem:   found by thread "));
    assert_non_null(strstr(unit_fatal.line, "hakmem:   freed by thread "));
    UNIT_EXPECT_FATAL(hak_fast_free(block + 16),
                      "hakmem: double free, or free of an address inside");
    UNIT_EXPECT_FATAL((void)hak_resize(block, 100), "hakmem: realloc of an address");
    UNIT_EXPECT_FATAL((void)hak_usable_size(block), "hakmem: malloc_usable_size of an address");
}

UNIT_TEST(stray_write_beside_a_block_is_found_by_free) {
    size_t page = hak_os_page_bytes();
    size_t places[] = {0, 1, 15, 16, 100, 255};
    for (unsigned i = 0; i < UNIT_COUNT(places); i++) {
        char *volatile block = guard_sample_at(BYTES, true);
        block[BYTES + places[i]] ^= 1;
        UNIT_EXPECT_FATAL(hak_fast_free(block), "hakmem: overflow of a block: 0x");
        block = guard_sample_at(BYTES, false);
        block[-1 - (ptrdiff_t)places[i]] = 0;
        UNIT_EXPECT_FATAL(hak_fast_free(block), "hakmem: underflow of a block: 0x");
    }
    char *volatile block = guard_sample_at(21, false); /* the slack that alignment leaves */
    assert_int_equal((uintptr_t)(block + 32) % page, 0);
    block[31] = 0;
    UNIT_EXPECT_FATAL(hak_fast_free(block), "(10 bytes behind the 21-byte block at 0x");
}
