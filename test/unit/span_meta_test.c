/* SPDX-License-Identifier: MIT */
#include "unit/span.h"

enum { REGION_BYTES = 1 << 20 };

UNIT_TEST(meta_of_any_size_is_zero_aligned_and_apart) {
    char *before = NULL;
    size_t before_bytes = 0;
    for (size_t bytes = 1; bytes < 3u * REGION_BYTES; bytes = bytes * 2 + 13) {
        char *block = hak_meta_alloc(bytes);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % HAK_LINE_BYTES, 0);
        assert_true(unit_is_filled(block, bytes, 0));
        assert_true(before == NULL || block >= before + before_bytes || block + bytes <= before);
        memset(block, 0xff, bytes);
        before = block;
        before_bytes = bytes;
    }
}

UNIT_TEST(meta_bytes_count_what_was_handed_out) {
    size_t before = hak_meta_bytes();
    assert_non_null(hak_meta_alloc(1));
    assert_non_null(hak_meta_alloc(64));
    assert_non_null(hak_meta_alloc(65));
    assert_int_equal(hak_meta_bytes(), before + 64 + 64 + 128);
}

/* Larger than a region, so it gets one of its own, with an OS page on either side. */
UNIT_TEST(meta_region_lies_between_guards) {
    size_t page = hak_os_page_bytes();
    size_t bytes = 3u * REGION_BYTES;
    char *block = hak_meta_alloc(bytes);
    assert_non_null(block);
    assert_true(hak_os_is_readable(block));
    assert_true(hak_os_is_readable(block + bytes - 8));
    assert_false(hak_os_is_readable(block - 8));
    assert_false(hak_os_is_readable(block - page));
    assert_false(hak_os_is_readable(block + bytes));
}

UNIT_TEST(meta_when_a_large_region_is_refused_takes_a_small_one) {
    for (unsigned i = 0; i < 4; i++) {
        hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1);
        char *block = hak_meta_alloc(REGION_BYTES / 8 * 7);
        assert_non_null(block);
        memset(block, 1, REGION_BYTES / 8 * 7);
    }
    hak_os_fault_clear();
}

UNIT_TEST(meta_without_memory_is_null_and_recovers) {
    static const hak_os_call_t calls[] = {HAK_OS_CALL_MAP, HAK_OS_CALL_COMMIT};
    for (unsigned i = 0; i < UNIT_COUNT(calls); i++) {
        size_t before = hak_meta_bytes();
        hak_os_fault_plan(calls[i], 0, 1u << 30);
        assert_null(hak_meta_alloc(2u * REGION_BYTES));
        assert_null(hak_meta_alloc(2u * REGION_BYTES));
        hak_os_fault_clear();
        assert_int_equal(hak_meta_bytes(), before);
        assert_non_null(hak_meta_alloc(2u * REGION_BYTES));
    }
}

UNIT_TEST(meta_pieces_come_back_zeroed_by_length) {
    void *piece[HAK_META_MOST_LINES + 1];
    for (unsigned lines = 1; lines <= HAK_META_MOST_LINES; lines++) {
        piece[lines] = hak_meta_take(lines);
        assert_non_null(piece[lines]);
        assert_int_equal((uintptr_t)piece[lines] % HAK_LINE_BYTES, 0);
    }
    size_t before = hak_meta_bytes();
    for (unsigned lines = 1; lines <= HAK_META_MOST_LINES; lines++) {
        hak_meta_give(piece[lines], lines);
    }
    for (unsigned lines = 1; lines <= HAK_META_MOST_LINES; lines++) {
        unsigned char *again = hak_meta_take(lines);
        assert_ptr_equal(again, piece[lines]);
        for (unsigned i = 0; i < lines * HAK_LINE_BYTES; i++) {
            assert_int_equal(again[i], 0);
        }
    }
    assert_int_equal(hak_meta_bytes(), before);
}

UNIT_GROUP(unit_span_begin)
