/* SPDX-License-Identifier: MIT
 *
 * The records of bands: what blocks above 64 KiB were taken, written to, given back and wanted
 * again. */
#include "reclaim/bands.h"
#include "unit/large.h"

static hak_band_view_t view(unsigned band) {
    hak_band_view_t found;
    hak_band_look(band, &found);
    return found;
}

LARGE_TEST(band_of_each_size_is_the_one_that_its_name_says) {
    static const struct {
        size_t most;
        unsigned band;
    } ends[] = {{256u << 10, 0}, {MIB, 1}, {4u * MIB, 2}, {32u * MIB, 3}};
    for (unsigned i = 0; i < UNIT_COUNT(ends); i++) {
        assert_ptr_equal(hak_band_of(ends[i].most), &hak_band[ends[i].band]);
        assert_ptr_equal(hak_band_of(ends[i].most + 1), &hak_band[ends[i].band + 1]);
        assert_int_equal(view(ends[i].band + 1).from_bytes, ends[i].most);
    }
    assert_ptr_equal(hak_band_of(0), &hak_band[0]);
    assert_ptr_equal(hak_band_of(SIZE_MAX), &hak_band[HAK_BANDS_OF_BLOCKS - 1]);
}

/* Each band returns to what was in use, however blocks were resized meanwhile. */
LARGE_TEST(blocks_that_come_and_go_leave_nothing_behind) {
    static const size_t sizes[] = {100u << 10, 600u << 10, 2u * MIB, 20u * MIB, 40u * MIB};
    hak_band_view_t before[HAK_BANDS_OF_BLOCKS];
    for (unsigned i = 0; i < HAK_BANDS_OF_BLOCKS; i++) {
        before[i] = view(i);
    }
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        char *block = large(sizes[i], 16);
        assert_in_range(view(i).in_use_bytes - before[i].in_use_bytes, sizes[i],
                        sizes[i] + 2 * HAK_UNIT_BYTES);
        assert_true(view(i).taken_bytes >= before[i].taken_bytes + sizes[i]);
        for (unsigned to = 0; to < UNIT_COUNT(sizes); to++) {
            char *resized = hak_large_resize(block, entry_of(block), sizes[to]);
            block = resized != NULL ? resized : block;
        }
        large_free(block);
    }
    for (unsigned i = 0; i < HAK_BANDS_OF_BLOCKS; i++) {
        assert_int_equal(view(i).in_use_bytes, before[i].in_use_bytes);
    }
}

LARGE_TEST(sample_says_what_part_was_written_to) {
    hak_band_view_t before = view(1);
    hak_band_sample(&hak_band[1], MIB, 256u << 10);
    hak_band_sample(&hak_band[1], MIB, SIZE_MAX); /* not known */
    assert_int_equal(view(1).sampled_bytes - before.sampled_bytes, MIB);
    assert_int_equal(view(1).touched_bytes - before.touched_bytes, 256u << 10);
}

/* What a pinned superslab gave back, and what a block takes of it. */
LARGE_TEST(purged_units_that_a_block_takes_are_regretted_in_its_band) {
    hak_span_purge(0);
    (void)large(100u << 10, 16); /* a pin */
    char *block = large(MIB, 16);
    memset(block, 1, MIB);
    large_free(block);
    hak_band_view_t before = view(1), smaller = view(0);
    hak_span_purge(0);
    assert_int_equal(view(1).returned_bytes - before.returned_bytes, MIB);
    assert_int_equal(view(1).again_bytes, before.again_bytes);
    block = large(512u << 10, 16);
    char *rest = large(200u << 10, 16);
    assert_int_equal(view(1).again_bytes - before.again_bytes, 512u << 10);
    assert_int_equal(view(0).again_bytes - smaller.again_bytes, 256u << 10);
    assert_int_equal(view(1).fresh_bytes - before.fresh_bytes, 512u << 10);
    large_free(block);
    large_free(rest);
    block = large(512u << 10, 16); /* it held memory */
    assert_int_equal(view(1).again_bytes - before.again_bytes, 512u << 10);
}

LARGE_TEST(block_that_grows_into_purged_units_regrets_them) {
    hak_span_purge(0);
    char *pin = large(128u << 10, 16), *block = large(MIB, 16);
    memset(block, 1, MIB);
    large_free(block);
    hak_span_purge(0);
    hak_band_view_t before = view(1);
    assert_ptr_equal(large_resize(pin, 512u << 10), pin);
    assert_int_equal(view(1).again_bytes - before.again_bytes, 384u << 10);
    assert_int_equal(view(1).fresh_bytes - before.fresh_bytes, 384u << 10);
}

/* Given back lately: a window halves it. */
LARGE_TEST(returned_mappings_are_regretted_if_they_are_soon_made_again) {
    for (unsigned windows = 0; windows <= 40; windows += 20) {
        hak_band_view_t before = view(2);
        char *block = large(2u * MIB, 16);
        uint64_t again = view(2).again_bytes;
        large_free(block);
        assert_int_equal(view(2).returned_bytes, before.returned_bytes);
        hak_large_trim(0);
        assert_int_equal(view(2).returned_bytes - before.returned_bytes, 2u * MIB);
        for (unsigned i = 0; i < windows; i++) {
            hak_bands_step(true);
        }
        block = large(2u * MIB, 16);
        assert_int_equal(view(2).again_bytes - again, (uint64_t)(2 * MIB) >> windows);
        assert_int_equal(view(2).fresh_bytes - before.fresh_bytes, 4u * MIB);
        large_free(block);
        hak_large_trim(0);
        for (unsigned i = 0; i < 60; i++) { /* nothing is owed */
            hak_bands_step(true);
        }
    }
}
