/* SPDX-License-Identifier: MIT
 *
 * realloc of every kind of block: what stays, what moves, what it grows to. Usable size. By the
 * hak_ names. */
#include "double/os_fault.h"
#include "front/fast.h"
#include "front/find_free.h"
#include "hakmem/hakmem.h"
#include "os/optional.h"
#include "unit/fatal.h"

FRONT_TEST(resize_of_small_keeps_the_block_while_it_fits_well) {
    char *block = hak_malloc(1000); /* class 1024 */
    assert_ptr_equal(hak_realloc(block, 1024 - HAK_CANARY_BYTES), block);
    assert_ptr_equal(hak_realloc(block, 513), block);
    strcpy(block, "contents");
    char *less = hak_realloc(block, 512);
    assert_ptr_not_equal(less, block);
    assert_true(hak_find_free_block(block));
    assert_string_equal(less, "contents");
    char *least = hak_realloc(less, 60 - HAK_CANARY_BYTES);
    assert_ptr_equal(hak_realloc(least, 1), least); /* never shrunk below 64 */
    assert_string_equal(least, "contents");
    hak_free(least);
}

FRONT_TEST(resize_by_little_gives_a_quarter_more_from_1_kib_on) {
    for (size_t size = 1; size <= 65536; size = size * 3 / 2 + 1) {
        char *block = hak_malloc(size);
        size_t usable = hak_malloc_usable_size(block), wanted = usable + 1;
        bool may = usable >= 1024 && usable + usable / 4 <= 65536;
        block = hak_realloc(block, wanted);
        assert_int_equal(hak_malloc_usable_size(block),
                         hak_good_size(may ? usable + usable / 4 : wanted));
        block = hak_realloc(block, 2 * wanted);
        assert_int_equal(hak_malloc_usable_size(block), hak_good_size(2 * wanted));
        hak_free(block);
    }
}

FRONT_TEST(resize_of_huge_keeps_seven_eighths) {
    size_t size = (size_t)8 << 20, least = size / 8 * 7;
    char *block = hak_malloc(size);
    assert_ptr_equal(hak_realloc(block, least), block);
    assert_int_equal(hak_malloc_usable_size(block), size);
    assert_ptr_equal(hak_realloc(block, least - HAK_UNIT_BYTES), block);
    assert_int_equal(hak_malloc_usable_size(block), least - HAK_UNIT_BYTES);
    hak_free(block);
}

/* Slabs of one unit and of several, blocks that lie across two units. */
FRONT_TEST(resize_keeps_every_block_of_a_slab) {
    static void *blocks[1024];
    for (size_t size = 16; size <= 65536; size = size * 3 / 2) {
        size_t count = 192 * KIB / size + 1 < 1024 ? 192 * KIB / size + 1 : 1024;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = hak_malloc(size);
            assert_ptr_equal(hak_realloc(blocks[i], size - 3), blocks[i]);
        }
        UNIT_FREE_ALL(blocks, count);
    }
}

/* Its class is 1024. */
static void free_as_100_bytes(void) {
    void *block = hak_malloc(1000);
    hak_free_sized(block, 100);
}

FRONT_TEST(size_is_compared_until_a_block_was_kept) {
    void *block = hak_malloc(3000000);
    hak_free(block);
    UNIT_EXPECT_FATAL(free_as_100_bytes(), "");
    hak_store_relaxed(&hak_resize_has_kept, true);
    free_as_100_bytes();
    hak_store_relaxed(&hak_resize_has_kept, false);
}

/* Blocks of that size until there is no more. */
typedef struct fill {
    void *block[20000];
    unsigned count;
} fill_t;

static void fill_up(fill_t *fill, size_t bytes) {
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    while (fill->count < UNIT_COUNT(fill->block) &&
           (fill->block[fill->count] = hak_malloc(bytes)) != NULL) {
        fill->count++;
    }
}

static void fill_drop(fill_t *fill) {
    hak_os_fault_clear();
    while (fill->count > 0) {
        hak_free(fill->block[--fill->count]);
    }
}

static fill_t fill;

FRONT_TEST(resize_that_shrinks_without_memory_keeps_the_block) {
    hak_malloc_trim(0);
    unsigned char *block = hak_malloc(600 * KIB);
    memset(block, 5, 600 * KIB);
    fill_up(&fill, 60000);
    errno = 0;
    unsigned char *less = hak_realloc(block, 50000);
    assert_ptr_equal(less, block);
    assert_int_equal(errno, 0);
    assert_true(unit_is_filled(block, 50000, 5));
    assert_null(hak_realloc(block, 50u * MIB));
    assert_int_equal(errno, ENOMEM);
    assert_true(unit_is_filled(block, 50000, 5));
    assert_true(hak_resize_has_kept);
    fill_drop(&fill);
    hak_free(block);
}

/* A growing block gets a quarter more if there is memory for that. */
FRONT_TEST(resize_with_memory_for_what_was_asked_alone_leaves_errno) {
    char *block = hak_malloc(2000);
    size_t usable = hak_malloc_usable_size(block);
    char *near = hak_malloc(usable + 1); /* and a slab where there are more */
    fill_up(&fill, 60000);
    fill_up(&fill, usable + usable / 4);
    errno = 0;
    block = hak_realloc(block, usable + 1);
    assert_non_null(block);
    assert_int_equal(hak_malloc_usable_size(block), hak_good_size(usable + 1));
    assert_int_equal(errno, 0);
    fill_drop(&fill);
    hak_free(near);
    hak_free(block);
}

static void expect_fatal(char *inside, size_t size) {
    UNIT_EXPECT_FATAL((void)!hak_realloc(inside, size), "realloc of an address");
}

FRONT_TEST(resize_of_an_address_inside_a_block_is_fatal) {
    for (size_t size = 32; size <= 65536; size = size * 3 / 2) {
        char *block = hak_malloc(size);
        expect_fatal(block + 16, size);
        expect_fatal(block + 1, 4 * size);
        expect_fatal(block + size - 16, size);
        hak_free(block);
    }
}
