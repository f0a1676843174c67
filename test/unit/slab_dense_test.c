/* SPDX-License-Identifier: MIT
 *
 * Which classes may have slabs in huge pages, by samples of full slabs (span/dense.h). */
#include "unit/one_owner.h"

#include <string.h>

enum { PAGE = 4096, LEAST_SLABS = 4 };

static unsigned sc;              /* blocks of 16 KiB, slabs of one unit */
static const hak_dense_t *dense; /* of that class */

static int begin(void **state) {
    sc = hak_sc_of(16384 - HAK_CANARY_BYTES);
    dense = &owner.dense[sc - HAK_SLAB_SAMPLED_FROM];
    unit_one_owner_begin(state);
    hak_knobs.learn = HAK_LEARN_ON;
    hak_span_purge(0); /* fresh memory: what is not written to is not resident */
    return 0;
}

static int end(void **state) {
    unit_give_all(&owner, &held);
    hak_slab_release_current(&owner);
    return unit_one_owner_end(state);
}

/* Fills so many slabs; of each block the first `bytes` are written to. */
static void fill(unsigned of, unsigned slabs, size_t bytes) {
    unsigned from = held.count;
    unit_take(&owner, of, &held, from + slabs * hak_sc_info[of].blocks);
    for (unsigned i = from; i < held.count; i++) {
        memset(held.block[i], 1, bytes);
    }
}

static unsigned samples(void) {
    return hak_os_fault_calls(HAK_OS_CALL_RESIDENT);
}

static void blocks_of_two_pages_need_no_sample(void **state) {
    (void)state;
    assert_int_equal(hak_sc_info[HAK_SLAB_SAMPLED_FROM - 1].bytes, 8192);
    hak_os_fault_plan(HAK_OS_CALL_RESIDENT, 1u << 30, 1);
    fill(HAK_SLAB_SAMPLED_FROM - 1, LEAST_SLABS + 2, 1);
    assert_int_equal(samples(), 0);
}

static void larger_blocks_written_throughout_are_dense(void **state) {
    (void)state;
    fill(sc, LEAST_SLABS, hak_sc_usable(&hak_sc_info[sc]));
    assert_true(hak_dense_is_due(dense)); /* the first few may stay the only ones */
    fill(sc, 1, 1);
    if (hak_os_page_bytes() == PAGE) {
        assert_int_equal(dense->bet, 1);
        assert_int_equal(dense->left, 1);
    }
}

static void blocks_written_in_part_are_sampled_once_a_range(void **state) {
    (void)state;
    hak_os_fault_plan(HAK_OS_CALL_RESIDENT, 1u << 30, 1);
    if (hak_os_page_bytes() == PAGE) {
        fill(sc, LEAST_SLABS + 60, PAGE);
        assert_int_equal(dense->bet, 0);
        assert_int_equal(samples(), 1);
    }
}

static void recycled_memory_tells_nothing(void **state) {
    (void)state;
    hak_span_t whole = unit_span(64, HAK_UNIT_BYTES);
    memset(whole.base, 1, 64u * HAK_UNIT_BYTES);
    unit_span_free(&whole, 64);
    hak_os_fault_plan(HAK_OS_CALL_RESIDENT, 1u << 30, 1);
    fill(sc, LEAST_SLABS + 4, 1);
    assert_false(owner.current[sc]->is_zero);
    assert_int_equal(samples(), 0);
    assert_true(hak_dense_is_due(dense));
}

static void kernel_that_does_not_tell_leaves_small_pages(void **state) {
    (void)state;
    hak_os_fault_plan(HAK_OS_CALL_RESIDENT, 0, 1u << 30);
    fill(sc, LEAST_SLABS + 2, hak_sc_usable(&hak_sc_info[sc]));
    assert_int_equal(dense->bet, 0);
}

#define DENSE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

static const struct CMUnitTest tests[] = {
    DENSE_TEST(blocks_of_two_pages_need_no_sample),
    DENSE_TEST(larger_blocks_written_throughout_are_dense),
    DENSE_TEST(blocks_written_in_part_are_sampled_once_a_range),
    DENSE_TEST(recycled_memory_tells_nothing),
    DENSE_TEST(kernel_that_does_not_tell_leaves_small_pages),
};

int main(void) {
    return cmocka_run_group_tests(tests, unit_slab_begin, NULL) == 0 ? 0 : 1;
}
