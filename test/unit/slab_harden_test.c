/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: canaries, zeros in free blocks, and the sizes that leave room for them. */
#include "unit/fatal.h"
#include "unit/slab.h"

static int harden_begin(void **state) {
    unit_slab_begin(state);
    hak_secret.canary = 0x0123456789abcdefull;
    hak_secret.factor = 0x9e3779b97f4a7c15ull;
    return 0;
}

/* A block's memory. */
static _Alignas(16) unsigned char area[1 << 16];

UNIT_TEST_WITH(handed_out_block_is_zero_but_for_its_canary, harden_begin, NULL) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        size_t bytes = hak_sc_info[sc].bytes, usable = hak_sc_usable(&hak_sc_info[sc]);
        assert_int_equal(usable, bytes - 8);
        memset(area, 0, bytes);
        hak_harden_hand_out(area, bytes);
        assert_true(unit_is_filled(area, usable, 0));
        assert_false(unit_is_filled(area + usable, 8, 0));
        memset(area, 0xa5, usable);
        assert_true(hak_harden_is_intact(area, bytes));
        hak_harden_wipe(area, bytes, 0);
        assert_true(hak_harden_is_clear(area, bytes));
        assert_true(bytes > 2 * HAK_FILL_PART_BYTES || unit_is_filled(area, bytes, 0));
    }
}

UNIT_TEST_WITH(canary_of_another_place_or_secret_differs, harden_begin, NULL) {
    uint64_t first = hak_harden_canary(area);
    assert_int_not_equal(first, hak_harden_canary(area + 16));
    hak_secret.canary ^= 1;
    assert_int_not_equal(first, hak_harden_canary(area));
}

UNIT_TEST_WITH(overflow_of_each_byte_is_seen, harden_begin, NULL) {
    for (unsigned i = 0; i < 8; i++) {
        memset(area, 0, 64);
        hak_harden_hand_out(area, 64);
        area[56 + i] ^= 1;
        assert_false(hak_harden_is_intact(area, 64));
    }
}

UNIT_TEST_WITH(write_to_a_free_block_is_fatal_where_it_is_looked_at, harden_begin, NULL) {
    static const size_t sizes[] = {16, 112, 1024, 1280, 65536};
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        size_t bytes = sizes[i];
        memset(area, 0, bytes);
        for (size_t at = 0; at < bytes; at += 1 + bytes / 97) {
            bool is_seen = at < HAK_FILL_PART_BYTES || at + HAK_FILL_PART_BYTES >= bytes;
            area[at] = 1;
            UNIT_EXPECT(hak_harden_is_clear(area, bytes) != is_seen, "%zu of %zu", at, bytes);
            area[at] = 0;
        }
        area[bytes - 1] = 1;
        UNIT_EXPECT_FATAL(hak_harden_hand_out(area, bytes), hak_fatal_text(HAK_FATAL_CORRUPT_LINK));
    }
}

UNIT_TEST_WITH(block_wiped_whole_is_zero_when_handed_out, harden_begin, NULL) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        size_t bytes = hak_sc_info[sc].bytes, usable = hak_sc_usable(&hak_sc_info[sc]);
        if (bytes > 2 * HAK_FILL_PART_BYTES) {
            memset(area, 0xa5, bytes);
            hak_harden_wipe_whole(area, bytes, 0);
            hak_link_clear(area);
            assert_false(hak_harden_is_clear(area, bytes)); /* its mark */
            assert_ptr_equal(hak_harden_hand_out(area, bytes), area);
            assert_true(unit_is_filled(area, usable, 0));
            assert_true(hak_harden_is_intact(area, bytes));
        }
    }
}

static void hand_out_is_fatal(size_t bytes) {
    UNIT_EXPECT_FATAL(hak_harden_hand_out(area, bytes), hak_fatal_text(HAK_FATAL_CORRUPT_LINK));
}

/* Of a block that has no middle the second word is never a mark. */
UNIT_TEST_WITH(write_anywhere_to_a_block_wiped_whole_is_fatal, harden_begin, NULL) {
    static const size_t sizes[] = {160, 1024, 1152, 4608};
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        size_t bytes = sizes[i];
        for (size_t at = 0; at < bytes; at += 1 + bytes / 97) {
            hak_harden_wipe_whole(area, bytes, 0);
            hak_link_clear(area);
            area[at] ^= 1;
            hand_out_is_fatal(bytes);
        }
    }
    hak_harden_wipe_whole(area, 160, 0);
    hak_link_clear(area);
    hand_out_is_fatal(128);
}

UNIT_TEST_WITH(size_leaves_room_for_the_canary, harden_begin, NULL) {
    assert_int_equal(hak_sc_info[hak_sc_of(8)].bytes, 16);
    assert_int_equal(hak_sc_info[hak_sc_of(9)].bytes, 32);
    assert_int_equal(hak_sc_info[hak_sc_of(24)].bytes, 32);
    assert_int_equal(hak_sc_info[hak_sc_of(2040)].bytes, 2048);
    assert_int_equal(hak_sc_info[hak_sc_of(2041)].bytes, 2304);
    assert_int_equal(hak_sc_info[hak_sc_of(65528)].bytes, 65536);
    for (size_t align = 1; align <= HAK_UNIT_BYTES; align *= 2) {
        for (size_t size = 1; size <= 70000; size += 1 + size / 50) {
            unsigned sc = hak_sc_of_aligned(size, align);
            bool fits = sc == HAK_SC_COUNT || (hak_sc_usable(&hak_sc_info[sc]) >= size &&
                                               hak_sc_info[sc].bytes % align == 0);
            UNIT_EXPECT(fits, "%zu at %zu", size, align);
        }
    }
    for (size_t less = 0; less < 32; less++) { /* sums that pass the largest number */
        assert_int_equal(hak_sc_of_aligned(SIZE_MAX - less, 16), HAK_SC_COUNT);
        assert_true(hak_sc_aligned_last(SIZE_MAX - less, 64) >= HAK_SC_MAX_SIZE);
    }
}

/* Memory that another slab left full of data. */
UNIT_TEST_WITH(block_carved_from_used_memory_is_clear, harden_begin, NULL) {
    static unit_blocks_t held;
    hak_owner_t owner;
    unit_span_retain((size_t)1 << 40, 0);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned sc = 3; sc < HAK_SC_COUNT; sc += 13) {
            size_t bytes = hak_sc_info[sc].bytes;
            unit_owner_begin(&owner, 1);
            unit_take(&owner, sc, &held, hak_sc_info[sc].blocks);
            for (unsigned i = 0; i < held.count; i++) {
                hak_link_clear(held.block[i]);
                UNIT_EXPECT(hak_harden_is_clear(held.block[i], bytes), "%u of class %u", i, sc);
                memset(held.block[i], 0xa5, bytes);
            }
            unit_give_all(&owner, &held);
            unit_owner_end(&owner);
        }
    }
}

/* Nothing is stored in blocks on their way. */
UNIT_TEST_WITH(block_sent_to_its_owner_is_zero_behind_its_link, harden_begin, NULL) {
    static unit_blocks_t held;
    hak_owner_t owner;
    unit_owner_begin(&owner, 2);
    unit_take(&owner, 3, &held, 8);
    unit_push(held.block, 4);
    assert_true(hak_remote_drain(&owner, UINT32_MAX));
    assert_int_equal(((uint64_t *)held.block[0])[1], 0);
    for (unsigned i = 4; i < held.count; i++) {
        unit_give(&owner, held.block[i]);
    }
    held.count = 0;
    unit_owner_end(&owner);
}

/* The low bits of the secret are 0: a cleared word never looks like a link. */
UNIT_TEST_WITH(cleared_word_is_never_tagged, harden_begin, NULL) {
    for (unsigned i = 0; i < 1 << 16; i += 16) {
        hak_secret.link = 0xfeedface00000000ull | i;
        hak_link_clear(area);
        assert_false(hak_link_has_free_marker(hak_link_word(area)));
    }
}
