/* SPDX-License-Identifier: MIT
 *
 * Blocks of types without pointers and all others never have the same place (TCACHE-10, SPAN-11).
 * In builds that are not hardened there is one partition, and entering another changes nothing. */
#include "front/quarantine.h"
#include "unit/front.h"

enum { PARTITION_BLOCKS = 2000, PARTITION_ROUNDS = 3, UNITS = 40000 };

static char *partition_blocks[PARTITION_BLOCKS];
static uintptr_t units_of_plain[UNITS];
static unsigned unit_count;

UNIT_AROUND(partition_begin) {
    hak_fast_free(hak_fast_malloc(1));
    return 0;
}

static void *plain_malloc(size_t size) {
    uintptr_t before = hak_partition_enter(HAK_PARTITION_PLAIN);
    void *block = hak_fast_malloc(size);
    hak_partition_leave(before);
    return block;
}

static bool is_plain(const void *block) {
    return hak_partition_of(block, hak_pagemap_get(hak_pagemap_base(), block)) ==
           HAK_PARTITION_PLAIN;
}

static void note_units(const char *block, size_t size) {
    for (uintptr_t unit = (uintptr_t)block / HAK_UNIT_BYTES;
         unit <= ((uintptr_t)block + size - 1) / HAK_UNIT_BYTES && unit_count < UNITS; unit++) {
        units_of_plain[unit_count++] = unit;
    }
}

static bool was_plain(const void *block) {
    for (unsigned i = 0; i < unit_count; i++) {
        if (units_of_plain[i] == (uintptr_t)block / HAK_UNIT_BYTES) {
            return true;
        }
    }
    return false;
}

static void partition_free_all(void) {
    for (unsigned i = 0; i < PARTITION_BLOCKS; i++) {
        hak_fast_free(partition_blocks[i]);
        partition_blocks[i] = NULL;
    }
    hak_tcache_flush(hak_tcache_self(hak_pagemap_base()));
    hak_owner_collect();
}

UNIT_TEST(places_of_one_partition_never_become_the_others) {
    static const size_t sizes[] = {24, 200, 3000, 40000};
    for (unsigned round = 0; round < PARTITION_ROUNDS * UNIT_COUNT(sizes); round++) {
        size_t size = sizes[round % UNIT_COUNT(sizes)];
        unsigned count = PARTITION_BLOCKS / (unsigned)(1 + size / 2000);
        for (unsigned i = 0; i < count; i++) {
            partition_blocks[i] = plain_malloc(size);
            assert_non_null(partition_blocks[i]);
            assert_int_equal(is_plain(partition_blocks[i]), HAK_HARDEN);
            note_units(partition_blocks[i], size);
        }
        partition_free_all();
        (void)hak_span_purge(0);
        for (unsigned i = 0; i < count; i++) {
            partition_blocks[i] = hak_fast_malloc(size);
            assert_false(is_plain(partition_blocks[i]));
            assert_true(!HAK_HARDEN || !was_plain(partition_blocks[i]));
        }
        partition_free_all();
        (void)hak_span_purge(0);
        hak_audit_t audit;
        bool is_healthy = hak_audit_walk(&audit);
        UNIT_EXPECT(is_healthy, "%s at %p", audit.broken, audit.where);
    }
}

UNIT_TEST(partition_is_left_again) {
    uintptr_t own = hak_tcache_offset;
    uintptr_t before = hak_partition_enter(HAK_PARTITION_PLAIN);
    assert_int_equal(before, own);
    assert_int_equal(hak_tcache_offset != own, HAK_HARDEN);
    uintptr_t nested = hak_partition_enter(HAK_PARTITION_PLAIN);
    assert_int_equal(nested, hak_tcache_offset);
    hak_partition_leave(nested);
    hak_partition_leave(before);
    assert_int_equal(hak_tcache_offset, own);
}

UNIT_TEST(moved_blocks_stay_in_their_partition) {
    static const size_t sizes[] = {5000, 100, 60000, 200, 20};
    char *plain = plain_malloc(20), *other = hak_fast_malloc(20);
    memset(plain, 7, 20);
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        plain = hak_resize(plain, sizes[i]);
        other = hak_resize(other, sizes[i]);
        assert_int_equal(is_plain(plain), HAK_HARDEN);
        assert_false(is_plain(other));
        assert_int_equal(plain[19], 7);
    }
    hak_fast_free(plain);
    hak_fast_free(other);
}

UNIT_TEST(large_block_is_in_a_superslab_of_its_partition) {
    hak_large_result_t any = hak_large_alloc(HAK_PARTITION_ANY, 300000, 16);
    hak_large_result_t plain = hak_large_alloc(HAK_PARTITION_PLAIN, 300000, 16);
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), plain.block);
    if ((entry & HAK_KIND_MASK) == HAK_KIND_LARGE) {
        assert_int_equal(is_plain(plain.block), HAK_HARDEN);
    }
    assert_false(is_plain(any.block));
    hak_fast_free(any.block);
    hak_fast_free(plain.block);
}

UNIT_GROUP(partition_begin)
