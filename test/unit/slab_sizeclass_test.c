/* SPDX-License-Identifier: MIT
 *
 * Size classes against a model that knows only the rule: 16-byte steps up to 128, then four per
 * doubling up to 64 KiB, and from 1 KiB on one of 9/8 of each power of two. Exhaustive: every size,
 * every alignment, every offset. */
#include "slab/sizeclass.h"
#include "unit/slab.h"

static size_t model[256];
static unsigned model_count;

UNIT_AROUND(model_make) {
    for (size_t bytes = 16; bytes <= 128; bytes += 16) {
        model[model_count++] = bytes;
    }
    for (size_t base = 128; base < 65536; base *= 2) {
        if (base >= 1024) {
            model[model_count++] = base / 8 * 9;
        }
        for (size_t step = 1; step <= 4; step++) {
            model[model_count++] = base + base / 4 * step;
        }
    }
    return 0;
}

/* The slow truth: the first class that holds the size, and in hardened builds a canary, at
 * multiples of the alignment. */
static unsigned model_class(size_t size, size_t align) {
    unsigned sc = 0;
    while (sc < model_count && (model[sc] < size + HAK_CANARY_BYTES || model[sc] % align != 0)) {
        sc++;
    }
    return sc;
}

UNIT_TEST(table_equals_the_model) {
    assert_int_equal(model_count, HAK_SC_COUNT);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        assert_int_equal(hak_sc_info[sc].bytes, model[sc]);
    }
    assert_int_equal(model[HAK_SC_COUNT - 1], HAK_SC_MAX_BYTES);
    assert_true(HAK_SC_COUNT < 0x80); /* kinds of the page map share the byte */
}

UNIT_TEST(class_of_every_size_is_the_smallest_that_fits) {
    for (size_t size = 0; size <= HAK_SC_MAX_SIZE; size++) {
        unsigned sc = model_class(size, 1);
        UNIT_EXPECT(hak_sc_of(size) == sc, "%zu", size);
        UNIT_EXPECT(size > HAK_SC_SMALL_SIZE || hak_sc_of_small(size) == sc, "%zu", size);
        UNIT_EXPECT(size < 1025 || hak_sc_of_medium(size) == sc, "%zu", size);
    }
}

UNIT_TEST(class_of_every_size_and_alignment_is_the_smallest_that_fits) {
    for (size_t align = 1; align <= HAK_SC_MAX_BYTES; align *= 2) {
        for (size_t size = 1; size <= HAK_SC_MAX_SIZE; size++) {
            unsigned sc = hak_sc_of_aligned(size, align);
            UNIT_EXPECT(sc == model_class(size, align), "%zu at %zu", size, align);
        }
    }
}

UNIT_TEST(class_beyond_the_largest_is_none) {
    assert_int_equal(hak_sc_of_aligned(HAK_SC_MAX_SIZE + 1, 16), HAK_SC_COUNT);
    assert_int_equal(hak_sc_of_aligned(SIZE_MAX, 16), HAK_SC_COUNT);
    assert_int_equal(hak_sc_of_aligned(1, HAK_SC_MAX_BYTES * 2u), HAK_SC_COUNT);
    assert_int_equal(hak_sc_of_aligned(0, (size_t)1 << 63), HAK_SC_COUNT);
}

UNIT_TEST(class_waste_above_128_bytes_is_at_most_a_fifth) {
    for (size_t size = 129; size <= HAK_SC_MAX_SIZE; size++) {
        size_t bytes = hak_sc_usable(&hak_sc_info[hak_sc_of(size)]);
        UNIT_EXPECT((bytes - size) * 5 <= bytes + HAK_CANARY_BYTES, "%zu", size);
    }
}

UNIT_TEST(slab_of_every_class_is_filled_and_small_enough) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_sc_info_t *info = &hak_sc_info[sc];
        size_t slab_bytes = (size_t)info->units * HAK_UNIT_BYTES;
        assert_true(info->units >= 1 && info->units <= 8);
        assert_int_equal(info->blocks, slab_bytes / info->bytes);
        assert_true(info->blocks >= 4);
        UNIT_EXPECT(slab_bytes % info->bytes * 16 <= slab_bytes, "waste at the end of %u", sc);
        assert_int_equal(info->bytes % HAK_BLOCK_ALIGN, 0);
    }
}

/* Also what no slab contains. */
UNIT_TEST(index_is_exact_for_every_class_and_offset) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        uint32_t bytes = hak_sc_info[sc].bytes, blocks = hak_sc_info[sc].blocks;
        for (uint32_t offset = 0; offset < 1u << 19; offset++) {
            bool is_start = offset % bytes == 0 && offset / bytes < blocks;
            uint32_t index = hak_sc_index(&hak_sc_info[sc], offset);
            if (is_start ? index != offset / bytes : index < blocks) {
                fail_msg("class %u, offset %u: %u", sc, offset, index);
            }
        }
    }
}

UNIT_TEST(realloc_keeps_what_fills_more_than_half_or_is_small) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        size_t bytes = hak_sc_info[sc].bytes;
        assert_int_equal(hak_sc_info[sc].keep_from, bytes <= 64 ? 1 : bytes / 2 + 1);
    }
}

/* MAP-5 */
UNIT_TEST(hit_path_table_equals_the_model) {
    hak_sc_init();
    for (size_t size = 0; size <= HAK_SC_SMALL_SIZE; size++) {
        unsigned place = hak_pagemap.table[size];
        unsigned expected = size == 0 ? HAK_KIND_ZERO_SIZE : hak_sc_kind(hak_sc_of(size));
        UNIT_EXPECT(place == expected, "%zu", size);
    }
}

UNIT_GROUP(model_make)
