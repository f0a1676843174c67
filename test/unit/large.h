/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of large/: blocks with their entries, filled and checked. */
#ifndef HAK_TEST_UNIT_LARGE_H
#define HAK_TEST_UNIT_LARGE_H

#include "large/huge_record.h"
#include "unit/span.h"

/* In hardened builds the end of a huge block is its guard: the tests ask for so much less, so that
 * mappings have the sizes they mean, and write up to the guard. */
enum { GUARD = HAK_HUGE_GUARD_BYTES };

static inline size_t unit_size(size_t bytes) {
    return bytes > (size_t)HAK_LARGE_MAX_UNITS * HAK_UNIT_BYTES ? bytes - GUARD : bytes;
}

static inline uint32_t entry_of(const void *block) {
    return hak_pagemap_get(hak_pagemap_base(), block);
}

static inline char *large(size_t bytes, size_t align) {
    bytes = unit_size(bytes);
    hak_large_result_t result = hak_large_alloc(HAK_PARTITION_ANY, bytes, align);
    UNIT_EXPECT(result.block != NULL, "%zu at %zu", bytes, align);
    assert_int_equal((uintptr_t)result.block % align, 0);
    assert_int_equal((uintptr_t)result.block % HAK_UNIT_BYTES, 0);
    assert_int_equal(hak_large_usable(result.block, entry_of(result.block)),
                     hak_align_up(bytes == 0 ? 1 : bytes, HAK_UNIT_BYTES));
    if (result.is_zero) {
        assert_true(unit_span_reads_zero(result.block, bytes & ~(size_t)4095));
    }
    return result.block;
}

/* One that nobody reads, as large() does; of exactly so many bytes. */
static inline char *large_untouched(size_t bytes, size_t align) {
    char *block = hak_large_alloc(HAK_PARTITION_ANY, bytes, align).block;
    assert_non_null(block);
    return block;
}

static inline void large_free(char *block) {
    assert_true(hak_large_free(block, entry_of(block)));
    uint32_t entry = entry_of(block); /* none, or of a vacant range */
    assert_true(entry == 0 || (entry & HAK_KIND_MASK) == HAK_KIND_VACANT);
}

static inline void large_free_all(char *const *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        large_free(blocks[i]);
    }
}

static inline char *large_resize(char *block, size_t bytes) {
    return hak_large_resize(block, entry_of(block), unit_size(bytes));
}

static inline hak_large_stats_t large_stats(void) {
    hak_large_stats_t stats;
    hak_large_stats(&stats);
    return stats;
}

UNIT_AROUND(large_begin) {
    hak_os_init();
    hak_os_fault_clear();
    hak_large_quarantine_switch(false); /* its own test has it on */
    unit_span_retain((size_t)1 << 40, 0);
    hak_services.huge_bound = hak_target_huge_bound; /* as life/ does */
    hak_knobs.huge_cache_bytes = 32u << 20;
    return 0;
}

/* As most blocks here are hardly written to, they would be placed as sparse ones are, if the kernel
 * told. */
static inline void large_fault_clear(void) {
    hak_os_fault_clear();
    hak_os_fault_plan(HAK_OS_CALL_PEEK, 0, 1u << 30);
}

static inline int large_begin_untold(void **state) {
    int status = large_begin(state);
    large_fault_clear();
    return status;
}

static struct large_left {
    char *block[512];
    unsigned count;
} large_left;

static inline void large_note(char *block) {
    assert_true(large_left.count < UNIT_COUNT(large_left.block));
    large_left.block[large_left.count++] = block;
}

static inline void large_note_huge(void) {
    for (uint32_t i = 0; i < hak_huge_state.record_count; i++) {
        const hak_huge_t *record = hak_huge_at(i);
        if (record->base != NULL && !record->is_vacant) {
            large_note(record->base);
        }
    }
}

static inline void large_note_spans(hak_superslab_t *superslab, void *unused) {
    (void)unused;
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS; unit++) {
        char *base = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
        if (entry_of(base) == HAK_KIND_LARGE) {
            large_note(base);
        }
    }
}

/* Teardown: what the test left in use is freed, and all goes back. */
UNIT_AROUND(large_end) {
    hak_os_fault_clear();
    large_left.count = 0;
    large_note_huge();
    hak_span_visit(large_note_spans, NULL);
    large_free_all(large_left.block, large_left.count);
    hak_large_trim(0);
    hak_large_stats_t stats = large_stats();
    assert_int_equal(stats.huge_in_use_bytes, 0);
    assert_int_equal(stats.huge_count, 0);
    assert_int_equal(stats.huge_cached_bytes, 0);
    return unit_span_end(state);
}

#define LARGE_TEST(name) UNIT_TEST_WITH(name, large_begin, large_end)
#define UNTOLD_TEST(name) UNIT_TEST_WITH(name, large_begin_untold, large_end)

#endif
