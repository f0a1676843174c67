/* SPDX-License-Identifier: MIT
 *
 * The records of bands: what blocks above 64 KiB were taken, written to and given back. */
#include "double/os_fault.h"
#include "large/box.h"
#include "unit/large.h"

#include <string.h>

static hak_band_view_t view(unsigned band) {
    hak_band_view_t found;
    hak_band_look(band, &found);
    return found;
}

static void band_of_each_size_is_the_one_that_its_name_says(void **state) {
    (void)state;
    static const struct {
        size_t most;
        unsigned band;
    } ends[] = {{256u << 10, 0}, {MIB, 1}, {4u * MIB, 2}, {32u * MIB, 3}};
    for (unsigned i = 0; i < UNIT_COUNT(ends); i++) {
        assert_ptr_equal(hak_band_of(ends[i].most), &hak_band[ends[i].band]);
        assert_ptr_equal(hak_band_of(ends[i].most + 1), &hak_band[ends[i].band + 1]);
        assert_int_equal(view(ends[i].band + 1).least_size, ends[i].most);
    }
    assert_ptr_equal(hak_band_of(0), &hak_band[0]);
    assert_ptr_equal(hak_band_of(SIZE_MAX), &hak_band[HAK_BANDS - 1]);
}

/* Each band returns to what was in use, however blocks were resized meanwhile. */
static void blocks_that_come_and_go_leave_nothing_behind(void **state) {
    (void)state;
    static const size_t sizes[] = {100u << 10, 600u << 10, 2u * MIB, 20u * MIB, 40u * MIB};
    hak_band_view_t before[HAK_BANDS];
    for (unsigned i = 0; i < HAK_BANDS; i++) {
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
    for (unsigned i = 0; i < HAK_BANDS; i++) {
        assert_int_equal(view(i).in_use_bytes, before[i].in_use_bytes);
    }
}

static void window_tells_most_and_least_and_how_soon_memory_is_taken_again(void **state) {
    (void)state;
    char *held = large(2u * MIB, 16);
    hak_band_step(true);
    uint64_t in_use = view(2).in_use_bytes;
    for (unsigned i = 0; i < 10; i++) {
        char *block = large(3u * MIB, 16);
        hak_band_step(false);
        large_free(block);
    }
    large_free(held);
    hak_band_step(false);
    held = large(2u * MIB, 16);
    hak_band_step(true);
    hak_band_view_t found = view(2);
    assert_in_range(found.most_bytes, in_use + 3u * MIB, in_use + 4u * MIB);
    assert_in_range(in_use - found.least_bytes, 2u * MIB, 3u * MIB);
    /* 5 MiB come and go, 32 MiB were allocated in 0.4 s: half of 5 waits for 31 ms */
    assert_in_range(found.reuse_ms, 29, 36);
    hak_band_step(true);
    found = view(2);
    assert_int_equal(found.most_bytes, found.least_bytes); /* nothing happened */
    assert_int_equal(found.reuse_ms, 0);
    large_free(held);
}

static void sample_says_what_part_was_written_to(void **state) {
    (void)state;
    hak_band_view_t before = view(1);
    hak_band_sample(MIB, 256u << 10);
    hak_band_sample(MIB, SIZE_MAX); /* not known */
    assert_int_equal(view(1).sampled_bytes - before.sampled_bytes, MIB);
    assert_int_equal(view(1).touched_bytes - before.touched_bytes, 256u << 10);
}

static void child_of_a_fork_begins_anew_with_what_is_in_use(void **state) {
    (void)state;
    char *block = large(2u * MIB, 16);
    uint64_t in_use = view(2).in_use_bytes;
    hak_band_after_fork();
    hak_band_view_t found = view(2);
    assert_int_equal(found.in_use_bytes, in_use);
    assert_int_equal(found.taken_bytes + found.fresh_bytes, 0);
    assert_int_equal(found.sampled_bytes + found.touched_bytes + found.most_bytes, 0);
    large_free(block);
    hak_band_step(true);
    assert_in_range(in_use - view(2).least_bytes, 2u * MIB, 3u * MIB);
    assert_int_equal(view(2).most_bytes, in_use);
}

static const struct CMUnitTest tests[] = {
    LARGE_TEST(band_of_each_size_is_the_one_that_its_name_says),
    LARGE_TEST(blocks_that_come_and_go_leave_nothing_behind),
    LARGE_TEST(window_tells_most_and_least_and_how_soon_memory_is_taken_again),
    LARGE_TEST(sample_says_what_part_was_written_to),
    LARGE_TEST(child_of_a_fork_begins_anew_with_what_is_in_use),
};

UNIT_MAIN(tests)
