/* SPDX-License-Identifier: MIT
 *
 * Blocks of size 0: distinct places without memory, found by no hit path, and what is fatal. */
#include "front/zero_size.h"
#include "unit/dies.h"
#include "unit/fatal.h"
#include "unit/front.h"

enum { PLACES = 1 << 16, ZERO_SIZE_MANY = PLACES + 1000 };

static void *zero_size_blocks[ZERO_SIZE_MANY];

static bool is_place(const void *block) {
    return (hak_pagemap_get(hak_pagemap_base(), block) & HAK_KIND_MASK) == HAK_KIND_ZERO_SIZE;
}

/* TCACHE-9 */
UNIT_TEST(zero_size_leaves_the_hit_path) {
    hak_tcache_t *tcache = self();
    int64_t offset = hak_bin_offset_of(hak_pagemap_base(), 0);
    assert_null(hak_bin_at(tcache, offset)->head);
    assert_null(hak_bin_pop(tcache, offset));
    void *block = unit_malloc(0);
    assert_true(is_place(block));
    hak_free(block);
    assert_null(hak_bin_at(tcache, offset)->head);
}

UNIT_TEST(zero_size_can_neither_be_read_nor_written) {
    void *block[] = {unit_malloc(0),
                     hak_calloc(0, 8),
                     hak_calloc(8, 0),
                     hak_realloc(NULL, 0),
                     hak_memalign(64, 0),
                     hak_aligned_alloc(4096, 0),
                     hak_recallocarray(NULL, 0, 0, 4)};
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
        assert_non_null(block[i]);
        assert_int_equal((uintptr_t)block[i] % HAK_BLOCK_ALIGN, 0);
        assert_int_equal(hak_malloc_usable_size(block[i]), 0);
        assert_int_equal(unit_write_signal(block[i]), SIGSEGV);
        for (unsigned k = 0; k < i; k++) {
            assert_ptr_not_equal(block[i], block[k]);
        }
    }
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
        hak_free_sized(block[i], 0);
    }
}

static void grow_and_shrink(size_t bytes) {
    void *place = unit_malloc(0);
    char *block = hak_realloc(place, bytes);
    assert_non_null(block);
    memset(block, 1, bytes);
    block = hak_recallocarray(block, bytes, 0, 1);
    assert_true(is_place(block));
    block = hak_recallocarray(block, 0, bytes, 1);
    assert_true(unit_is_filled((unsigned char *)block, bytes, 0));
    assert_null(hak_realloc(block, 0));
    UNIT_EXPECT_FATAL(hak_free(place), hak_fatal_text(HAK_FATAL_DOUBLE_FREE));
}

UNIT_TEST(zero_size_grows_and_shrinks_by_realloc) {
    for (size_t bytes = 1; bytes <= 4 * MIB; bytes = bytes * 7 + 1) {
        grow_and_shrink(bytes);
    }
}

UNIT_TEST(zero_size_is_aligned_as_asked) {
    for (size_t align = 1; align <= 4 * MIB; align *= 2) {
        void *block[20];
        for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
            block[i] = hak_memalign(align, 0);
            assert_int_equal((uintptr_t)block[i] % align, 0);
            assert_true(align >= HAK_UNIT_BYTES || is_place(block[i]));
        }
        for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
            hak_free_aligned_sized(block[i], align, 0);
        }
    }
}

static int by_address(const void *a, const void *b) {
    uintptr_t left = *(const uintptr_t *)a, right = *(const uintptr_t *)b;
    return (left > right) - (left < right);
}

/* More than a region has; the next round finds all of them free again. */
UNIT_TEST(many_of_zero_size_are_distinct_and_cost_bits) {
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < ZERO_SIZE_MANY; i++) {
            zero_size_blocks[i] = unit_malloc(0);
            assert_true(is_place(zero_size_blocks[i]));
        }
        qsort(zero_size_blocks, ZERO_SIZE_MANY, sizeof *zero_size_blocks, by_address);
        for (unsigned i = 1; i < ZERO_SIZE_MANY; i++) {
            assert_ptr_not_equal(zero_size_blocks[i - 1], zero_size_blocks[i]);
        }
        size_t meta = hak_meta_bytes();
        UNIT_FREE_ALL(zero_size_blocks, ZERO_SIZE_MANY);
        assert_int_equal(hak_meta_bytes(), meta);
    }
}

UNIT_TEST(a_place_is_not_used_again_soon) {
    void *block = unit_malloc(0);
    hak_free(block);
    for (unsigned i = 0; i < 1000; i++) {
        void *other = unit_malloc(0);
        assert_ptr_not_equal(other, block);
        hak_free(other);
    }
    UNIT_EXPECT_FATAL(hak_free(block), hak_fatal_text(HAK_FATAL_DOUBLE_FREE));
}

UNIT_TEST(misuse_of_zero_size_is_fatal) {
    char *block = unit_malloc(0);
    UNIT_EXPECT_FATAL(hak_free(block + 1), hak_fatal_text(HAK_FATAL_INTERIOR_FREE));
    UNIT_EXPECT_FATAL(hak_free_sized(block, 1), hak_fatal_text(HAK_FATAL_SIZE_MISMATCH));
    UNIT_EXPECT_FATAL(hak_freezero(block, 1), hak_fatal_text(HAK_FATAL_CLEAR_SIZE));
    hak_free(block);
    UNIT_EXPECT_FATAL(hak_free(block), "a place of size 0");
    UNIT_EXPECT_FATAL((void)!hak_realloc(block, 5), hak_fatal_text(HAK_FATAL_FREED_REALLOC));
    UNIT_EXPECT_FATAL((void)!hak_malloc_usable_size(block),
                      hak_fatal_text(HAK_FATAL_FREED_USABLE_SIZE));
}

enum { ZERO_SIZE_THREADS = 4, ZERO_SIZE_ROUNDS = 20000, HELD = 16 };
static void *shared[HELD]; /* [atomic] */

static void *trade(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < unit_rounds(ZERO_SIZE_ROUNDS); i++) {
        hak_free(hak_swap_acquire(&shared[i % HELD], unit_malloc(0)));
    }
    return NULL;
}

/* Each is in one hand: a place given twice would be freed twice. */
UNIT_TEST(threads_trade_blocks_of_zero_size) {
    pthread_t thread[ZERO_SIZE_THREADS];
    unit_pthread_create_all(thread, ZERO_SIZE_THREADS, trade, NULL, 0);
    unit_pthread_join_all(thread, ZERO_SIZE_THREADS);
    UNIT_FREE_ALL(shared, HELD);
}

/* The last test: the regions that it makes stay. All that one process may have, then some. */
UNIT_TEST(where_there_is_no_place_a_small_block_serves) {
    enum { MOST = 64 * PLACES, MORE = 300 };
    static void *all[MOST + MORE];
    unsigned places = 0;
    for (unsigned i = 0; i < MOST + MORE; i++) {
        bool is_refused = i == 3 * PLACES;
        if (is_refused) {
            hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1);
        }
        errno = 0;
        all[i] = unit_malloc(0);
        assert_non_null(all[i]);
        assert_int_equal(errno, 0);
        if (is_refused) {
            assert_false(is_place(all[i]));
            hak_os_fault_clear();
        }
        places += is_place(all[i]);
    }
    assert_true(places < MOST + MORE && places > MOST - 2 * MORE);
    assert_true(hak_malloc_usable_size(all[MOST + MORE - 1]) > 0 || places == MOST);
    UNIT_FREE_ALL(all, MOST + MORE);
}
