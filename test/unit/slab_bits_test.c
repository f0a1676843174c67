/* SPDX-License-Identifier: MIT
 *
 * The bitmap of a slab: what is marked comes back in address order, once. */
#include "unit/fatal.h"
#include "unit/one_owner.h"

static bool mark(void *block, uint32_t count) {
    hak_slab_t *slab = hak_slab_of(block);
    if (!hak_slab_mark(slab, hak_slab_index(slab, block), count)) {
        return false;
    }
    hak_slab_count_free(&owner, slab, count, block);
    return true;
}

static void mark_all_held(void) {
    while (held.count != 0) {
        assert_true(mark(held.block[--held.count], 1));
    }
}

/* Takes every block of one slab; held.block[i] is block i. */
static hak_slab_t *take_slab(unsigned sc) {
    unit_take(&owner, sc, &held, hak_sc_info[sc].blocks);
    return hak_slab_of(held.block[0]);
}

/* An order without neighbours. */
static unsigned shuffled(unsigned i, unsigned count) {
    return (unsigned)((uint64_t)i * 20011 % count);
}

ONE_OWNER_TEST(marked_blocks_come_back_in_address_order) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        hak_slab_t *slab = take_slab(sc);
        unsigned count = held.count;
        for (unsigned i = 0; i + 1 < count; i++) { /* one stays in use */
            assert_true(mark(held.block[shuffled(i, count)], 1));
        }
        const void *in_use = held.block[shuffled(count - 1, count)];
        assert_int_equal(slab->free_count, count - 1);
        hak_blocks_t blocks = hak_slab_refill(&owner, sc, UINT32_MAX);
        assert_int_equal(blocks.count, count - 1);
        assert_int_equal(unit_list_length(blocks.head), count - 1);
        const void *block = blocks.head;
        for (unsigned i = 0; i < count; i++) {
            if (held.block[i] != in_use) {
                assert_ptr_equal(block, held.block[i]);
                block = hak_link_get(block);
            }
        }
        assert_int_equal(slab->free_count, 0);
        mark_all_held();
        hak_slab_release_current(&owner);
    }
}

ONE_OWNER_TEST(refill_takes_no_more_marked_blocks_than_wanted) {
    take_slab(SC_64);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    for (unsigned i = 0; i < 300; i++) {
        assert_true(mark(held.block[i], 1));
    }
    unsigned next = 0;
    for (unsigned most = 1; next < 300; most += 60) {
        hak_blocks_t blocks = hak_slab_refill(&owner, SC_64, most);
        assert_int_equal(blocks.count, next + most > 300 ? 300 - next : most);
        for (void *block = blocks.head; block != NULL; block = hak_link_get(block)) {
            assert_ptr_equal(block, held.block[next++]);
        }
        assert_int_equal(slab->free_count, 300 - next);
    }
    assert_int_equal(next, 300);
    mark_all_held();
}

ONE_OWNER_TEST(rows_of_every_place_and_length_are_marked) {
    hak_slab_t *slab = take_slab(SC_64);
    for (unsigned last = 0; last < 200; last += 7) {
        for (unsigned count = 1; count <= last + 1; count += 5) {
            assert_true(mark(held.block[last + 1 - count], count));
            assert_false(mark(held.block[last], 1));
            assert_false(mark(held.block[last + 1 - count], 1));
            for (unsigned i = 0; i < 256; i++) {
                bool is_marked = i <= last && i + count > last;
                assert_int_equal(slab->bits[i / 64] >> i % 64 & 1, is_marked);
            }
            assert_int_equal(hak_slab_refill(&owner, SC_64, UINT32_MAX).count, count);
        }
    }
    mark_all_held();
}

ONE_OWNER_TEST(retired_slabs_leave_no_marks) {
    static const uint8_t classes[] = {SC_16, SC_64, SC_1024, SC_57344};
    for (unsigned i = 0; i < UNIT_COUNT(classes); i++) {
        const hak_slab_t *slab = take_slab(classes[i]);
        const uint64_t *bits = slab->bits; /* metadata is never unmapped */
        unsigned words = (slab->capacity + 63u) / 64;
        mark_all_held();
        hak_slab_release_current(&owner);
        assert_int_equal(unit_span_check().in_use_bytes, 0);
        for (unsigned word = 1; word < words; word++) { /* the first links spare pieces */
            assert_int_equal(bits[word], 0);
        }
    }
}

/* First and last block change the state; marked one by one, as a flush does. */
ONE_OWNER_TEST(single_blocks_of_a_full_slab_make_it_partial_then_empty) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        hak_slab_t *slab = take_slab(sc);
        hak_slab_release_current(&owner);
        assert_int_equal(slab->state, HAK_SLAB_FULL);
        for (unsigned count = held.count, i = 0; i < count; i++) {
            uint32_t index = shuffled(i, count);
            assert_int_equal(owner.partial_count[sc], i != 0);
            assert_true(hak_slab_mark_one(slab, index));
            assert_false(i + 1 < count && hak_slab_mark_one(slab, index));
            hak_slab_count_one(&owner, slab, held.block[index]);
        }
        held.count = 0;
        assert_int_equal(owner.slab_count[sc], 0);
    }
}

ONE_OWNER_TEST(more_free_blocks_than_carved_are_noticed) {
    hak_slab_t *slab = take_slab(SC_1024);
    hak_slab_count_free(&owner, slab, 1, held.block[0]); /* without a mark */
    for (unsigned i = 0; i + 1 < held.count; i++) {
        assert_true(mark(held.block[i], 1));
    }
    UNIT_EXPECT_FATAL(mark(held.block[held.count - 1], 1), "double free");
    slab->free_count = slab->carved; /* as if nothing had been */
}

UNIT_GROUP(unit_slab_begin)
