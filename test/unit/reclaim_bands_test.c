/* SPDX-License-Identifier: MIT
 *
 * What reports say of bands of sizes: windows, slabs, and the child of a fork. What blocks add:
 * span_box_test.c. */
#include "reclaim/bands.h"
#include "unit/large.h"
#include "unit/one_owner.h"

static hak_band_view_t bands_view(unsigned band) {
    hak_band_view_t found;
    hak_band_look(band, &found);
    return found;
}

LARGE_TEST(window_tells_most_and_least_and_how_soon_memory_is_taken_again) {
    char *held = large(2u * MIB, 16);
    hak_bands_step(true);
    uint64_t in_use = bands_view(2).in_use_bytes;
    for (unsigned i = 0; i < 10; i++) {
        char *block = large(3u * MIB, 16);
        hak_bands_step(false);
        large_free(block);
    }
    large_free(held);
    hak_bands_step(false);
    held = large(2u * MIB, 16);
    hak_bands_step(true);
    hak_band_view_t found = bands_view(2);
    assert_in_range(found.most_bytes, in_use + 3u * MIB, in_use + 4u * MIB);
    assert_in_range(in_use - found.least_bytes, 2u * MIB, 3u * MIB);
    /* 5 MiB come and go, 32 MiB were allocated in 0.4 s: half of 5 waits for 31 ms */
    assert_in_range(found.reuse_ms, 29, 36);
    hak_bands_step(true);
    found = bands_view(2);
    assert_int_equal(found.most_bytes, found.least_bytes); /* nothing happened */
    assert_int_equal(found.reuse_ms, 0);
}

LARGE_TEST(child_of_a_fork_begins_anew_with_what_is_in_use) {
    large_free(large(2u * MIB, 16));
    hak_large_trim(0); /* in the parent */
    hak_bands_after_fork();
    char *block = large(2u * MIB, 16);
    assert_int_equal(bands_view(2).again_bytes, 0);
    uint64_t in_use = bands_view(2).in_use_bytes;
    hak_bands_after_fork();
    hak_band_view_t found = bands_view(2);
    assert_int_equal(found.in_use_bytes, in_use);
    assert_int_equal(found.taken_bytes + found.fresh_bytes, 0);
    assert_int_equal(found.sampled_bytes + found.touched_bytes + found.most_bytes, 0);
    large_free(block);
    hak_bands_step(true);
    assert_in_range(in_use - bands_view(2).least_bytes, 2u * MIB, 3u * MIB);
    assert_int_equal(bands_view(2).most_bytes, in_use);
}

static int bands_begin(void **state) {
    unit_slab_begin(state);
    large_begin(state);
    return unit_one_owner_begin(state);
}

/* A class whose slabs have one unit, two, and four. */
UNIT_TEST_WITH(slabs_are_counted_by_their_size, bands_begin, unit_one_owner_end) {
    static const size_t sizes[] = {1000, 20000, 65000};
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        unsigned sc = hak_sc_of(sizes[i]), row = HAK_BANDS_OF_BLOCKS + i;
        size_t slab = (size_t)hak_sc_info[sc].units * HAK_UNIT_BYTES;
        hak_band_view_t before = bands_view(row);
        assert_int_equal(slab > before.from_bytes, 1);
        unit_take(&owner, sc, &held, 3 * hak_sc_info[sc].blocks);
        hak_band_view_t after = bands_view(row);
        assert_int_equal(after.in_use_bytes - before.in_use_bytes, 3 * slab);
        assert_int_equal(after.taken_bytes - before.taken_bytes, 3 * slab);
        unit_give_all(&owner, &held);
        hak_slab_release_current(&owner);
        assert_int_equal(bands_view(row).in_use_bytes, before.in_use_bytes);
        assert_int_equal(bands_view(row).taken_bytes, after.taken_bytes);
        assert_true(bands_view(row).fresh_bytes <= bands_view(row).taken_bytes);
    }
}

UNIT_TEST_WITH(slabs_of_purged_units_are_regretted, bands_begin, unit_one_owner_end) {
    unsigned sc = hak_sc_of(65000), row = HAK_BANDS_OF_BLOCKS + 2;
    size_t slab = (size_t)hak_sc_info[sc].units * HAK_UNIT_BYTES;
    hak_span_purge(0);
    hak_span_t pin = unit_span_dirty(1);
    for (unsigned i = 0; i < 2; i++) {
        hak_band_view_t before = bands_view(row);
        unit_take(&owner, sc, &held, hak_sc_info[sc].blocks);
        assert_int_equal(bands_view(row).again_bytes - before.again_bytes, i == 0 ? 0 : slab);
        assert_int_equal(bands_view(row).fresh_bytes - before.fresh_bytes, slab);
        unit_give_all(&owner, &held);
        hak_slab_release_current(&owner);
        hak_span_purge(0);
    }
    unit_span_free(&pin, 1);
}

/* BOX-1 */
LARGE_TEST(records_and_what_is_learned_take_4_kib_at_most) {
    size_t learner_bytes = 1280; /* LEARN-1 */
    assert_true(sizeof hak_band + sizeof hak_band_flow + sizeof hak_band_slabs +
                    sizeof hak_band_owed_bytes + learner_bytes <=
                4096);
}
