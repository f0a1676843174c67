/* SPDX-License-Identifier: MIT
 *
 * The bytes behind a large block: writes there are fatal when it is freed or resized, and nothing
 * becomes resident for them. */
#include "os/optional.h"
#include "unit/fatal.h"
#include "unit/large.h"

static const size_t sizes[] = {65537, 100000, 300001, MIB - 1, 2 * MIB + 1, 5 * MIB - 3000};

/* Of memory that was used before, or that is fresh. */
static char *make(size_t bytes, bool is_used) {
    if (is_used) {
        char *before = large(bytes + 2 * HAK_UNIT_BYTES, 16);
        memset(before, 0x41, bytes + HAK_UNIT_BYTES);
        large_free(before);
    }
    char *block = hak_large_alloc(bytes, 16).block;
    assert_non_null(block);
    memset(block, 0x42, bytes);
    return block;
}

/* The bytes that are looked at. */
static size_t canary_of(size_t bytes) {
    return hak_least(hak_align_up(bytes, hak_os_page_bytes()) - bytes, 128);
}

static void expect_fatal(char *block, size_t bytes, size_t at, char value) {
    char *end = block + bytes + at, old = *end;
    *end = value;
    UNIT_EXPECT_FATAL(large_free(block), hak_fatal_text(HAK_FATAL_OVERFLOW));
    UNIT_EXPECT_FATAL(large_resize(block, bytes + 4097), hak_fatal_text(HAK_FATAL_OVERFLOW));
    *end = old;
}

static void expect_canary(char *block, size_t bytes) {
    assert_int_equal(hak_large_usable(block, entry_of(block)), bytes);
    for (size_t at = 0; at < canary_of(bytes); at++) {
        expect_fatal(block, bytes, at, 0x41);
        if (block[bytes + at] != 0 && canary_of(bytes) > 1) { /* the end of a text */
            expect_fatal(block, bytes, at, 0);
        }
    }
}

static void write_behind_a_block_is_fatal(void **state) {
    (void)state;
    for (unsigned i = 0; i < 2 * UNIT_COUNT(sizes); i++) {
        char *block = make(sizes[i / 2], i % 2 != 0);
        expect_canary(block, sizes[i / 2]);
        large_free(block);
    }
}

static void write_behind_a_resized_block_is_fatal(void **state) {
    (void)state;
    static const size_t steps[] = {100001,       110000,       131073,      300000,
                                   299990,       500001,       100001,      MIB - 5,
                                   3 * MIB - 70, 3 * MIB - 90, 9 * MIB - 1, 2 * MIB + 3};
    char *block = make(steps[0], true);
    char *wall = large(4 * HAK_UNIT_BYTES, 16); /* it has to move its pages at some time */
    for (unsigned i = 1; i < UNIT_COUNT(steps); i++) {
        memset(block, 0x42, steps[i - 1]);
        char *again = hak_large_resize(block, entry_of(block), steps[i]);
        if (again == NULL) { /* only a copy can do it */
            again = make(steps[i], false);
            large_free(block);
        }
        block = again;
        expect_canary(block, steps[i]);
    }
    large_free(block);
    large_free(wall);
}

static void nothing_is_touched_behind_a_fresh_block(void **state) {
    (void)state;
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        hak_large_result_t result = hak_large_alloc(sizes[i], 16);
        assert_true(result.is_zero);
        size_t end = hak_align_down(sizes[i], hak_os_page_bytes());
        assert_int_equal(hak_os_resident((char *)result.block + end, hak_os_page_bytes()), 0);
        large_free(result.block);
        hak_large_trim(0);
        hak_span_purge(0);
    }
}

/* As programs do with their whole pages, and calloc with those of large blocks. */
static void purged_end_is_right(void **state) {
    (void)state;
    char *block = make(300001, true);
    assert_true(
        hak_os_purge(block + hak_align_down(300001, hak_os_page_bytes()), hak_os_page_bytes()));
    large_free(block);
    block = make(3 * MIB + 7, true);
    hak_large_zero(block, 3 * MIB + 7);
    expect_canary(block, 3 * MIB + 7);
    large_free(block);
}

static void block_of_whole_pages_has_no_canary(void **state) {
    (void)state;
    char *block = make(3 * HAK_UNIT_BYTES - 65536 / 2, true), *wall = make(70000, true);
    memset(block, 1, 3 * HAK_UNIT_BYTES);
    large_free(block);
    large_free(wall);
}

static const struct CMUnitTest tests[] = {
    LARGE_TEST(write_behind_a_block_is_fatal),
    LARGE_TEST(write_behind_a_resized_block_is_fatal),
    LARGE_TEST(nothing_is_touched_behind_a_fresh_block),
    LARGE_TEST(purged_end_is_right),
    LARGE_TEST(block_of_whole_pages_has_no_canary),
};

UNIT_MAIN(tests)
