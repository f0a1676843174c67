/* SPDX-License-Identifier: MIT
 *
 * Blocks past the bins: hak_slab_take_packed. */
#include "unit/one_owner.h"

enum { SLABS = 8, CAPACITY = 64 }; /* of SC_1024 */

/* Full slabs, of which each then keeps so many blocks; a last one stays current. */
static void keep(const unsigned kept[SLABS]) {
    unit_take(&owner, SC_1024, &held, SLABS * CAPACITY + 1);
    for (unsigned slab = 0; slab < SLABS; slab++) {
        for (unsigned i = kept[slab]; i < CAPACITY; i++) {
            unit_give(&owner, held.block[slab * CAPACITY + i]);
        }
    }
}

static hak_slab_t *take(uint32_t below) {
    hak_blocks_t blocks = hak_slab_take_packed(&owner, SC_1024, below);
    assert_int_equal(blocks.count, 1);
    if (blocks.stride != 0) {
        hak_slab_link(&blocks);
    }
    assert_int_equal(unit_list_length(blocks.head), 1);
    held.block[held.count++] = blocks.head;
    return hak_slab_of(blocks.head);
}

ONE_OWNER_TEST(packed_block_comes_from_the_fullest_slab) {
    static const unsigned kept[SLABS] = {10, 3, 40, 64, 7, 62, 40, 1};
    keep(kept);
    hak_slab_t *fullest = hak_slab_of(held.block[5 * CAPACITY]);
    assert_ptr_equal(take(UINT32_MAX), fullest);
    assert_int_equal(fullest->state, HAK_SLAB_PARTIAL);
    assert_ptr_equal(take(UINT32_MAX), fullest);
    assert_int_equal(fullest->state, HAK_SLAB_FULL);
    hak_slab_t *next = take(UINT32_MAX);
    assert_int_equal(next->carved - next->free_count, 41);
}

ONE_OWNER_TEST(packed_block_comes_from_no_slab_below_the_rank_while_there_is_another) {
    static const unsigned kept[SLABS] = {5, 6, 7, 8, 33, 9, 10, 11};
    keep(kept);
    hak_slab_t *one = hak_slab_of(held.block[4 * CAPACITY]);
    for (unsigned i = kept[4]; i < CAPACITY; i++) {
        assert_ptr_equal(take(8u << 16), one); /* less than half full */
    }
    hak_slab_t *rest = take(8u << 16);
    assert_true(rest != one && hak_slab_rank(rest) < 8u << 16);
}

/* Else a block that is to leave its slab would only change its place there. */
ONE_OWNER_TEST(packed_block_comes_from_the_current_slab_where_all_others_are_to_be_emptied) {
    static const unsigned kept[SLABS] = {64, 64, 64, 64, 64, 64, 64, 3};
    keep(kept);
    hak_slab_t *current = hak_slab_of(held.block[SLABS * CAPACITY]);
    hak_slab_t *rest = hak_slab_of(held.block[(SLABS - 1) * CAPACITY]);
    assert_ptr_equal(owner.current[SC_1024], current);
    assert_ptr_equal(take(UINT32_MAX), rest); /* the current one has no free block */
    unit_give(&owner, held.block[SLABS * CAPACITY]);
    assert_int_equal(current->free_count, 1);
    assert_ptr_equal(take(8u << 16), current);
    assert_ptr_equal(take(0), rest); /* nothing is to be emptied */
}

ONE_OWNER_TEST(packed_block_without_a_partial_slab_is_that_of_a_refill) {
    hak_slab_t *slab = take(0); /* a new slab */
    assert_ptr_equal(owner.current[SC_1024], slab);
    assert_ptr_equal(take(0), slab);
    assert_int_equal(slab->carved, 2);
}

ONE_OWNER_TEST(rank_orders_slabs_by_how_full_they_are) {
    static const unsigned kept[SLABS] = {64, 63, 50, 40, 30, 20, 10, 1};
    keep(kept);
    for (unsigned i = 0; i + 1 < SLABS; i++) {
        const hak_slab_t *slab = hak_slab_of(held.block[i * CAPACITY]);
        const hak_slab_t *next = hak_slab_of(held.block[(i + 1) * CAPACITY]);
        assert_true(hak_slab_rank(slab) > hak_slab_rank(next));
        assert_int_equal(hak_slab_rank(slab) >> 16, kept[i] * 16 / CAPACITY);
    }
}
