/* SPDX-License-Identifier: MIT
 *
 * Large blocks: spans inside superslabs, up to 1 MiB. */
#include "span/dense.h"
#include "unit/large.h"

/* LARGE-1 */
LARGE_TEST(large_of_every_size_has_its_entries) {
    for (unsigned units = 1; units <= HAK_LARGE_MAX_UNITS; units++) {
        char *block = large((size_t)units * HAK_UNIT_BYTES - 5, HAK_UNIT_BYTES);
        assert_int_equal(entry_of(block), HAK_KIND_LARGE);
        for (unsigned unit = 1; unit < units; unit++) {
            char *inside = block + (size_t)unit * HAK_UNIT_BYTES;
            assert_int_equal(entry_of(inside), HAK_KIND_LARGE_BODY);
            assert_int_equal(hak_large_usable(inside + 16, HAK_KIND_LARGE), 0);
        }
        assert_int_equal(hak_large_usable(block + 16, entry_of(block)), 0);
        assert_false(hak_large_free(block + 16, entry_of(block)));
        large_free(block);
        assert_int_equal(entry_of(block + (size_t)(units - 1) * HAK_UNIT_BYTES), 0);
    }
}

/* The entry is what two threads read that free it at once. */
LARGE_TEST(block_that_two_threads_free_is_freed_once) {
    char *block = large(3 * HAK_UNIT_BYTES, 16), *kept = large(HAK_UNIT_BYTES, 16);
    uint32_t entry = entry_of(block);
    size_t before = unit_span_check().in_use_bytes;
    assert_true(hak_large_free(block, entry));
    size_t after = unit_span_check().in_use_bytes;
    assert_true(after < before || HAK_HARDEN);
    assert_false(hak_large_free(block, entry));
    assert_int_equal(unit_span_check().in_use_bytes, after);
    large_free(kept);
}

LARGE_TEST(large_known_zero_is_lost_by_use_and_regained_by_purge) {
    (void)large(HAK_UNIT_BYTES, 16);
    hak_large_result_t result = hak_large_alloc(HAK_PARTITION_ANY, MIB, 16);
    assert_true(result.is_zero);
    memset(result.block, 1, MIB);
    large_free(result.block);
    result = hak_large_alloc(HAK_PARTITION_ANY, MIB, 16);
    assert_false(result.is_zero);
    large_free(result.block);
    hak_span_purge(0);
    result = hak_large_alloc(HAK_PARTITION_ANY, MIB, 16);
    assert_true(result.is_zero);
    assert_true(unit_is_filled(result.block, MIB, 0));
}

/* Of reused units, what lies behind the bytes asked for. */
LARGE_TEST(dirty_tails_of_blocks_stay_below_a_part_of_a_limit) {
    enum { ASKED = 2 * HAK_UNIT_BYTES + 1, BYTES = 3 * HAK_UNIT_BYTES };
    const size_t limits[] = {0, 14u * HAK_UNIT_BYTES, 16u * HAK_UNIT_BYTES, 14u * HAK_UNIT_BYTES};
    size_t used = hak_align_up(ASKED, hak_os_page_bytes());
    (void)large(HAK_UNIT_BYTES, 16);
    for (unsigned i = 0; i < UNIT_COUNT(limits); i++) {
        char *block = large(BYTES, 16);
        memset(block, 7, BYTES);
        large_free(block);
        hak_store_relaxed(&hak_knobs.limit_bytes, limits[i]);
        hak_large_result_t result = hak_large_alloc(HAK_PARTITION_ANY, ASKED, 16);
        char *again = result.block, tail = i % 2 == 0 ? 7 : 0;
        assert_true((again == block && !result.is_zero) || HAK_HARDEN); /* it holds blocks back */
        if (!HAK_HARDEN) {
            assert_true(unit_is_filled(again, used, 7));
            assert_true(unit_is_filled(again + used, BYTES - used, tail));
        }
        large_free(again);
    }
    hak_store_relaxed(&hak_knobs.limit_bytes, 0);
}

LARGE_TEST(resize_of_large_in_place_grows_and_shrinks) {
    char *block = large(4u * HAK_UNIT_BYTES, 16);
    memset(block, 7, 4u * HAK_UNIT_BYTES);
    assert_ptr_equal(large_resize(block, 4u * HAK_UNIT_BYTES - 1), block);
    assert_ptr_equal(large_resize(block, 9u * HAK_UNIT_BYTES), block);
    assert_int_equal(hak_large_usable(block, entry_of(block)), 9u * HAK_UNIT_BYTES);
    assert_int_equal(entry_of(block + 8u * HAK_UNIT_BYTES), HAK_KIND_LARGE_BODY);
    assert_true(unit_is_filled(block, 4u * HAK_UNIT_BYTES, 7));
    assert_ptr_equal(large_resize(block, 2u * HAK_UNIT_BYTES), block);
    assert_int_equal(entry_of(block + 2u * HAK_UNIT_BYTES), 0);
    assert_int_equal(unit_span_check().in_use_bytes, 2u * HAK_UNIT_BYTES);
    assert_true(unit_is_filled(block, 2u * HAK_UNIT_BYTES, 7));
    assert_null(large_resize(block, HAK_UNIT_BYTES)); /* a size class serves it better */
    assert_null(large_resize(block, 1));
}

LARGE_TEST(resize_of_large_against_a_neighbour_is_refused) {
    char *block = large(4u * HAK_UNIT_BYTES, 16);
    char *wall = large(HAK_UNIT_BYTES, 16);
    assert_ptr_equal(wall, block + 4u * HAK_UNIT_BYTES);
    assert_null(large_resize(block, 5u * HAK_UNIT_BYTES));
    assert_int_equal(hak_large_usable(block, entry_of(block)), 4u * HAK_UNIT_BYTES);
    large_free(wall);
    assert_ptr_equal(large_resize(block, 5u * HAK_UNIT_BYTES), block);
}

/* Pages leave the superslab; what they leave is usable again. */
LARGE_TEST(resize_of_large_beyond_its_superslab_moves_pages) {
    uint64_t copied = hak_counters.realloc_copied_bytes;
    char *block = large(MIB, 16);
    (void)large(HAK_UNIT_BYTES, 16);
    memset(block, 7, MIB);
    char *huge = large_resize(block, 5u * MIB);
    if (huge == NULL) {
        print_message("this kernel cannot move pages out of a mapping\n");
        huge = block;
    } else {
        assert_int_equal(entry_of(huge) & HAK_KIND_MASK, HAK_KIND_HUGE);
        assert_int_equal(hak_large_usable(huge, entry_of(huge)), 5u * MIB - GUARD);
        assert_true(unit_is_filled(huge + MIB, 4u * MIB - GUARD, 0));
        assert_int_equal(entry_of(block), 0);
        assert_int_equal(unit_span_check().in_use_bytes, HAK_UNIT_BYTES);
    }
    assert_int_equal(hak_counters.realloc_copied_bytes, copied);
    assert_true(unit_is_filled(huge, MIB, 7));
}

LARGE_TEST(resize_of_large_failing_anywhere_leaves_it_whole) {
    static const hak_os_call_t calls[] = {HAK_OS_CALL_MAP, HAK_OS_CALL_REMAP};
    for (unsigned i = 0; i < UNIT_COUNT(calls); i++) {
        for (uint64_t position = 0; position < 2; position++) {
            char *block = large(MIB, 16);
            char *wall = large(HAK_UNIT_BYTES, 16);
            memset(block, 7, MIB);
            hak_os_fault_plan(calls[i], position, 1u << 30);
            char *huge = large_resize(block, 5u * MIB);
            hak_os_fault_clear();
            huge = huge == NULL ? block : huge;
            assert_true(unit_is_filled(huge, MIB, 7));
            memset(huge, 8, MIB);
            unit_span_check();
            large_free(huge);
            large_free(wall);
        }
    }
}

extern hak_dense_t hak_large_dense[4]; /* of blocks up to 256, 512, 768 KiB and 1 MiB */

/* After a fresh block of which each page but every `spared`-th was written to; 0: each. */
static hak_dense_t sampled_after(size_t bytes, size_t spared) {
    hak_knobs.learn = HAK_LEARN_ON;
    memset(hak_large_dense, 0, sizeof hak_large_dense);
    hak_span_purge(0);
    char *block = hak_large_alloc(HAK_PARTITION_ANY, bytes, 16)
                      .block; /* not read: a page of zeros is resident, too */
    for (size_t i = 0; i < bytes / 4096; i++) {
        if (spared == 0 || i % spared != 0) {
            block[i * 4096] = 1;
        }
    }
    large_free(block);
    hak_dense_t found = {0};
    for (unsigned i = 0; i < UNIT_COUNT(hak_large_dense); i++) {
        bool is_its_band = (bytes - 1) / (MIB / 4) == i;
        assert_int_equal(hak_large_dense[i].left != 0, is_its_band);
        found = is_its_band ? hak_large_dense[i] : found;
    }
    return found;
}

LARGE_TEST(freed_blocks_tell_whether_their_band_is_dense) {
    for (size_t units = 1; units <= HAK_LARGE_MAX_UNITS && hak_os_page_bytes() == 4096; units++) {
        assert_int_equal(sampled_after(units * HAK_UNIT_BYTES, 0).bet, 1);
        assert_int_equal(sampled_after(units * HAK_UNIT_BYTES, 2).bet, 0);
    }
}

LARGE_TEST(recycled_and_resized_blocks_tell_nothing) {
    hak_span_purge(0);
    char *block = large(MIB, 16);
    memset(block, 1, MIB);
    large_free(block);
    memset(hak_large_dense, 0, sizeof hak_large_dense);
    large_free(large(MIB, 16));
    hak_span_purge(0);
    block = large(MIB, 16);
    assert_ptr_equal(large_resize(block, MIB / 2), block);
    large_free(block);
    for (unsigned i = 0; i < UNIT_COUNT(hak_large_dense); i++) {
        assert_int_equal(hak_large_dense[i].left, 0);
    }
}

LARGE_TEST(large_without_memory_is_null) {
    hak_span_purge(0);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    assert_null(hak_large_alloc(HAK_PARTITION_ANY, MIB, 16).block);
    assert_null(hak_large_alloc(HAK_PARTITION_ANY, 2u * MIB, 16).block);
    assert_null(hak_large_alloc(HAK_PARTITION_ANY, PTRDIFF_MAX, 16).block);
    hak_os_fault_clear();
    assert_null(hak_large_alloc(HAK_PARTITION_ANY, PTRDIFF_MAX, 16).block);
    assert_null(hak_large_alloc(HAK_PARTITION_ANY, SIZE_MAX, 16).block);
    assert_null(hak_large_alloc(HAK_PARTITION_ANY, SIZE_MAX - HAK_UNIT_BYTES, 16).block);
}
