/* SPDX-License-Identifier: MIT
 *
 * Which classes may have slabs in huge pages, by samples of full slabs (span/dense.h). */
#include "unit/one_owner.h"

enum { PAGE = 4096, LEAST_SLABS = 4 };

static unsigned sc;              /* blocks of 16 KiB, slabs of one unit */
static const hak_dense_t *dense; /* of that class */

static int dense_begin(void **state) {
    sc = hak_sc_of(16384 - HAK_CANARY_BYTES);
    dense = &owner.dense[sc - HAK_SLAB_SAMPLED_FROM];
    unit_one_owner_begin(state);
    hak_knobs.learn = HAK_LEARN_ON;
    hak_span_purge(0); /* fresh memory: what is not written to is not resident */
    return 0;
}

static int dense_end(void **state) {
    unit_give_all(&owner, &held);
    hak_slab_release_current(&owner);
    return unit_one_owner_end(state);
}

#define DENSE_TEST(name) UNIT_TEST_WITH(name, dense_begin, dense_end)

/* Fills so many slabs; of each block the first `bytes` are written to. */
static void dense_fill(unsigned of, unsigned slabs, size_t bytes) {
    unsigned from = held.count;
    unit_take(&owner, of, &held, from + slabs * hak_sc_info[of].blocks);
    for (unsigned i = from; i < held.count; i++) {
        memset(held.block[i], 1, bytes);
    }
}

static unsigned samples(void) {
    return hak_os_fault_calls(HAK_OS_CALL_PEEK);
}

DENSE_TEST(blocks_of_two_pages_need_no_sample) {
    assert_int_equal(hak_sc_info[HAK_SLAB_SAMPLED_FROM - 1].bytes, 8192);
    hak_os_fault_plan(HAK_OS_CALL_PEEK, 1u << 30, 1);
    dense_fill(HAK_SLAB_SAMPLED_FROM - 1, LEAST_SLABS + 2, 1);
    assert_int_equal(samples(), 0);
}

DENSE_TEST(larger_blocks_written_throughout_are_dense) {
    dense_fill(sc, LEAST_SLABS, hak_sc_usable(&hak_sc_info[sc]));
    assert_int_equal(dense->left, 0); /* the first few may stay the only ones */
    dense_fill(sc, 1, 1);
    if (hak_os_page_bytes() == PAGE) {
        assert_int_equal(dense->bet, 1);
        assert_int_equal(dense->left, 1);
    }
}

DENSE_TEST(blocks_written_in_part_are_sampled_once_a_range) {
    hak_os_fault_plan(HAK_OS_CALL_PEEK, 1u << 30, 1);
    if (hak_os_page_bytes() == PAGE) {
        dense_fill(sc, LEAST_SLABS + 60, PAGE);
        assert_int_equal(dense->bet, 0);
        assert_in_range(samples(), 1, 64); /* a sample: four words of 16 OS pages */
    }
}

DENSE_TEST(recycled_memory_tells_nothing) {
    hak_span_t whole = unit_span(64, HAK_UNIT_BYTES);
    memset(whole.base, 1, 64u * HAK_UNIT_BYTES);
    unit_span_free(&whole, 64);
    hak_os_fault_plan(HAK_OS_CALL_PEEK, 1u << 30, 1);
    dense_fill(sc, LEAST_SLABS + 4, 1);
    assert_false(owner.current[sc]->is_zero);
    assert_int_equal(samples(), 0);
    assert_int_equal(dense->left, 0);
}

DENSE_TEST(kernel_that_does_not_tell_leaves_small_pages) {
    hak_os_fault_plan(HAK_OS_CALL_PEEK, 0, 1u << 30);
    dense_fill(sc, LEAST_SLABS + 2, hak_sc_usable(&hak_sc_info[sc]));
    assert_int_equal(dense->bet, 0);
}

UNIT_GROUP(unit_slab_begin)
