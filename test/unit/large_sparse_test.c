/* SPDX-License-Identifier: MIT
 *
 * Where the cache of huge mappings places blocks, by how much of earlier ones was written to
 * (docs/experiments/0107-fronts-of-sparse-blocks.md). */
#include "unit/large.h"

enum { BLOCKS = 8, ROOM = 32 * MIB };

static int sparse_begin(void **state) {
    large_begin(state);
    hak_knobs.huge_cache_bytes = 64u << 20;
    return 0;
}

/* Blocks in fresh memory, so many that those of earlier tests count no more. Only the front of each
 * is written to, or all. */
static void learn(bool is_sparse) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        hak_large_trim(0);
        size_t bytes = (size_t)ROOM;
        char *block = large_untouched(bytes, 16);
        memset(block, 1, is_sparse ? 4096 : bytes);
        large_free(block);
    }
}

/* An extent of 32 MiB that begins a unit behind a multiple of 16 MiB. */
static char *extent_make(void) {
    hak_large_trim(0);
    char *block = large_untouched(ROOM, 16u * MIB);
    large_free(block);
    char *first = hak_large_alloc(HAK_PARTITION_ANY, 2u * MIB + HAK_UNIT_BYTES, 16).block;
    assert_ptr_equal(first, block); /* a multiple of any power of two up to it */
    return first;
}

static char *take(size_t bytes) {
    uint64_t mapped = hak_counters.huge_map;
    char *block = large_untouched(bytes, 16);
    assert_int_equal(hak_counters.huge_map, mapped);
    return block;
}

UNIT_TEST_WITH(sparse_blocks_begin_at_multiples_of_their_size, sparse_begin, large_end) {
    learn(true);
    char *first = extent_make();
    char *block = take(5u * MIB), *second = take(5u * MIB), *small = take(MIB + HAK_UNIT_BYTES);
    assert_ptr_equal(block, first + 4u * MIB);
    assert_ptr_equal(second, first + 12u * MIB); /* no other multiple of 4 MiB has room before */
    assert_ptr_equal(small, first + 9u * MIB);   /* in the gap that is left, at a multiple of 1 */
    size_t taken = 2u * MIB + HAK_UNIT_BYTES + 10u * MIB + MIB + HAK_UNIT_BYTES;
    assert_int_equal(large_stats().huge_cached_bytes, ROOM - taken);
    char *all[] = {block, second, small, first};
    large_free_all(all, UNIT_COUNT(all));
    assert_int_equal(large_stats().huge_cached_bytes, ROOM); /* the gaps joined again */
}

/* The next block lies where the lowest extent begins. */
static void expect_lowest_place(size_t bytes) {
    char *first = extent_make();
    char *block = take(bytes);
    assert_ptr_equal(block, first + 2u * MIB + HAK_UNIT_BYTES);
    large_free(block);
    large_free(first);
}

UNIT_TEST_WITH(dense_blocks_begin_where_there_is_room, sparse_begin, large_end) {
    learn(false);
    expect_lowest_place(5u * MIB);
}

/* Better there than in a new mapping. */
UNIT_TEST_WITH(sparse_blocks_without_such_a_place_take_any, sparse_begin, large_end) {
    learn(true);
    expect_lowest_place(20u * MIB); /* would begin at 16 MiB */
}

/* Each second block of many stays in use, so that there are as many extents. */
UNIT_TEST_WITH(many_extents_are_not_split, sparse_begin, large_end) {
    learn(true);
    hak_large_trim(0);
    enum { MANY = 240 };
    static char *held[MANY];
    UNIT_TAKE_ALL(held, MANY, large_untouched(2u * MIB + HAK_UNIT_BYTES, 16));
    for (unsigned i = 0; i < MANY; i += 2) {
        large_free(held[i]);
    }
    size_t cached = large_stats().huge_cached_bytes;
    (void)take(2u * MIB);
    assert_int_equal(large_stats().huge_cached_bytes, cached - 2u * MIB);
}

/* An unknown share counts as all of it. */
UNIT_TEST_WITH(blocks_that_the_kernel_does_not_tell_of_are_dense, sparse_begin, large_end) {
    learn(true);
    hak_os_fault_plan(HAK_OS_CALL_PEEK, 0, 1u << 30);
    learn(true);
    hak_os_fault_clear();
    expect_lowest_place(5u * MIB);
}
