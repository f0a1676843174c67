/* SPDX-License-Identifier: MIT
 *
 * Which requests are sampled, where their blocks lie, and how they are freed. */
#include "slab/remote.h"
#include "unit/fatal.h"
#include "unit/profile.h"

/* One sample a byte: all are taken, but for one in ten million of the smallest. */
UNIT_AROUND(sample_begin) {
    begin(1);
    return 0;
}

UNIT_AROUND(sample_end) {
    assert_int_equal(live(), 0);
    finish();
    return 0;
}

#define SAMPLE_TEST(name) UNIT_TEST_WITH(name, sample_begin, sample_end)

SAMPLE_TEST(sampled_blocks_are_like_any_others) {
    static const size_t sizes[] = {1, 16, 17, 100, 512, 2000, 2049, 5000, 20000, 65000};
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        size_t size = sizes[i] - (sizes[i] > 8 ? HAK_CANARY_BYTES : 0);
        char *block = unit_malloc(sizes[i]);
        UNIT_EXPECT(is_sampled(block), "%zu bytes", sizes[i]);
        assert_int_equal(live(), 1);
        assert_true(hak_malloc_usable_size(block) >= size);
        assert_true((uintptr_t)block % HAK_BLOCK_ALIGN == 0);
        memset(block, 7, size);
        char *same = hak_realloc(block, hak_malloc_usable_size(block));
        assert_ptr_equal(same, block);
        char *moved = hak_realloc(block, 3 * sizes[i] + 4096);
        assert_true(unit_is_filled(moved, size, 7));
        hak_free(moved);
        UNIT_EXPECT(live() == 0, "%zu bytes", sizes[i]);
    }
    char *aligned = hak_aligned_alloc(4096, 5000);
    assert_true(is_sampled(aligned) && (uintptr_t)aligned % 4096 == 0);
    hak_free(aligned);
    char *zeroed = hak_calloc(3, 100);
    assert_true(is_sampled(zeroed) && unit_is_filled(zeroed, 300, 0));
    hak_free_sized(zeroed, 300);
}

SAMPLE_TEST(large_blocks_keep_their_place_and_have_a_record) {
    static const size_t sizes[] = {70000, 1 << 20, 5 << 20};
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        char *block = unit_malloc(sizes[i]);
        assert_int_equal(live(), 1);
        assert_int_equal(large_records(), 1);
        block = hak_realloc(block, 2 * sizes[i]); /* in place, by moved pages or by a copy */
        assert_int_equal(live(), 1);
        block = hak_realloc(block, sizes[i]);
        assert_int_equal(live(), 1);
        assert_int_equal(large_records(), 1);
        hak_free(block);
        assert_int_equal(live(), 0);
        assert_int_equal(large_records(), 0);
    }
}

/* A block that could not be resized keeps its record; memory is out. */
SAMPLE_TEST(failed_resize_keeps_the_record) {
    char *block = unit_malloc(3 << 20);
    assert_int_equal(live(), 1);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, UINT64_MAX);
    hak_os_fault_plan(HAK_OS_CALL_REMAP, 0, UINT64_MAX);
    assert_null(hak_realloc(block, (size_t)1 << 40));
    hak_os_fault_clear();
    assert_int_equal(live(), 1);
    hak_free(block);
}

/* --- frees ------------------------------------------------------------------------------------ */

static void *free_it(void *block) {
    hak_free(block);
    return NULL;
}

SAMPLE_TEST(any_thread_frees_a_sampled_block) {
    for (unsigned i = 0; i < 10; i++) {
        void *block = unit_malloc(100);
        assert_int_equal(live(), 1);
        unit_pthread_create_and_join(free_it, block);
        assert_int_equal(live(), 0);
    }
}

/* While another thread holds the owner, a free leaves the block to it, and waits for nothing. */
SAMPLE_TEST(free_goes_to_the_remote_list_of_a_held_owner) {
    void *block[20], *again;
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
        block[i] = unit_malloc(48);
        assert_true(is_sampled(block[i]));
    }
    hak_store_relaxed(&hak_sample_owner.lock.is_taken, 1);
    UNIT_FREE_ALL(block, UNIT_COUNT(block) - 1);
    assert_int_equal(live(), 1);
    hak_store_relaxed(&hak_sample_owner.lock.is_taken, 0);
    assert_true(hak_remote_is_pending(&hak_sample_owner));
    again = unit_malloc(48); /* receives them all, and uses one */
    assert_true(is_sampled(again));
    assert_false(hak_remote_is_pending(&hak_sample_owner));
    hak_free(again);
    hak_free(block[UNIT_COUNT(block) - 1]);
}

SAMPLE_TEST(misuse_of_sampled_blocks_is_fatal) {
    char *block = unit_malloc(100), *stays = unit_malloc(100);
    assert_true(is_sampled(block) && is_sampled(stays));
    UNIT_EXPECT_FATAL(hak_free(block + 16), "free of an address inside a block");
    hak_free(block);
    UNIT_EXPECT_FATAL(hak_free(block), "double free");
    hak_free(stays);
}

/* --- the owner -------------------------------------------------------------------------------- */

/* SLAB-10 */
SAMPLE_TEST(slabs_of_sampled_blocks_stay_with_their_owner) {
    enum { SC = 5, COUNT = 3000 };
    static void *block[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = unit_malloc(96);
        assert_true(is_sampled(block[i]));
    }
    for (unsigned i = 0; i < COUNT; i += 2) {
        hak_free(block[i]);
    }
    assert_true(hak_profile_set_rate(0));
    hak_owner_t *home = self()->home;
    assert_true(hak_owner_try_lock(home));
    hak_slab_t *adopted = hak_slab_adopt(home, SC, HAK_ADOPT_LAST_RESORT);
    assert_true(adopted == NULL || hak_load_relaxed(&adopted->owner) != &hak_sample_owner);
    hak_owner_unlock(home);
    hak_owner_collect();
    hak_malloc_trim(0);
    for (unsigned i = 1; i < COUNT; i += 2) {
        assert_ptr_equal(hak_load_relaxed(&hak_slab_of(block[i])->owner), &hak_sample_owner);
        assert_true(is_sampled(block[i]));
        hak_free(block[i]);
    }
    assert_int_equal(live(), 0);
    assert_true(hak_owner_try_lock(&hak_sample_owner));
    assert_null(hak_slab_adopt(&hak_sample_owner, SC, HAK_ADOPT_LAST_RESORT));
    hak_owner_unlock(&hak_sample_owner);
    hak_sample_release();
    assert_int_equal(hak_sample_owner.slab_count[SC], 0);
}

/* PROFILE-2: what is dropped has an ordinary block, or one without a record. */
SAMPLE_TEST(without_memory_requests_are_served_and_counted) {
    hak_profile_state_t before, after;
    hak_profile_look(&before);
    void *block[200];
    hak_store_relaxed(&hak_sample_owner.lock.is_taken, 1); /* nobody gives it back for long */
    block[0] = unit_malloc(32);
    hak_store_relaxed(&hak_sample_owner.lock.is_taken, 0);
    assert_non_null(block[0]);
    assert_false(is_sampled(block[0]));
    hak_profile_look(&after);
    assert_int_equal(after.dropped - before.dropped, 1);
    hak_free(block[0]);
}

SAMPLE_TEST(labels_tell_sites_apart) {
    static const char one[] = "one", two[] = "two";
    void *first = hak_alloc_at(100, one), *second = hak_alloc_at(100, two);
    assert_int_equal(live(), 2);
    unsigned labels = 0;
    hak_profile_store_t *store = &hak_profile_store;
    for (uint32_t at = hak_profile_store_first(store); at < store->low;) {
        const hak_profile_site_t *site = hak_profile_site_at(store->base, at);
        labels += site->label == one;
        labels += site->label == two;
        at += hak_profile_site_bytes(site->depth);
    }
    assert_int_equal(labels, 2);
    assert_null(self()->profile_label);
    hak_free_at(first, 100, one);
    hak_free_at(second, 100, two);
}

/* The hit path of realloc has no instruction for it (docs/heap-sampling.md). */
SAMPLE_TEST(realloc_in_place_keeps_the_record_and_what_was_first_asked_for) {
    hak_profile_store_t *store = &hak_profile_store;
    char *block = unit_malloc(1700);
    const hak_profile_site_t *site =
        hak_profile_site_at(store->base, hak_profile_store_first(store));
    double bytes = site->in_use.bytes, asked = site->requested_bytes;
    assert_ptr_equal(hak_realloc(block, 1500), block);
    assert_int_equal(live(), 1);
    assert_true(site->in_use.bytes == bytes && site->requested_bytes == asked);
    char *large = hak_realloc(block, 100000); /* now by its own site and size */
    assert_true(site->in_use.bytes == 0 && site->requested_bytes == 0);
    hak_free(large);
}

/* MAP-5, TCACHE-9 */
UNIT_TEST(the_table_of_sizes_is_as_before) {
    uint8_t before[HAK_PAGEMAP_TABLE_BYTES];
    memcpy(before, hak_pagemap.table, sizeof before);
    begin(1 << 20);
    assert_int_equal(hak_pagemap.table[0], HAK_KIND_ZERO_SIZE);
    assert_int_equal(hak_pagemap.table[1], HAK_KIND_DETOUR);
    assert_int_equal(hak_pagemap.table[HAK_SC_SMALL_SIZE], HAK_KIND_DETOUR);
    finish();
    assert_memory_equal(before, hak_pagemap.table, sizeof before);
}
