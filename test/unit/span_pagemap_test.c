/* SPDX-License-Identifier: MIT
 *
 * The page map alone: entries of addresses nothing is mapped at. */
#include "unit/span.h"

#include <sys/resource.h>

static uint32_t entry_at(uint64_t address) {
    return hak_pagemap_get(hak_pagemap_base(), (const void *)(uintptr_t)address);
}

static bool zero_leaf_is_zero(void) {
    return unit_is_filled(&hak_pagemap.zero, sizeof hak_pagemap.zero, 0);
}

UNIT_TEST(entry_of_any_address_reads_zero_at_first) {
    static const uint64_t addresses[] = {0,
                                         1,
                                         0xffff,
                                         0x10000,
                                         0xffffffffull,
                                         0x100000000ull,
                                         0x7fffffffffffull,
                                         0x800000000000ull,
                                         0xffff800000000000ull,
                                         0xffffffffffffffffull,
                                         0xdeadbeefdeadbeefull};
    for (size_t i = 0; i < UNIT_COUNT(addresses); i++) {
        UNIT_EXPECT(entry_at(addresses[i]) == 0, "%#llx", (unsigned long long)addresses[i]);
        assert_null(hak_pagemap_superslab((const void *)(uintptr_t)addresses[i]));
    }
    assert_int_equal(entry_at((uintptr_t)&hak_pagemap), 0);
    assert_int_equal(entry_at((uintptr_t)addresses), 0);
}

UNIT_TEST(entry_set_across_a_leaf_border_reads_back_exactly) {
    const uint64_t border = 0x512300000000ull;
    char *base = (char *)(uintptr_t)(border - 3 * HAK_UNIT_BYTES);
    assert_true(hak_pagemap_prepare(base, 7u * HAK_UNIT_BYTES));
    hak_pagemap_set(base, 7, 0xabcdef12);
    assert_int_equal(entry_at(border - 3 * HAK_UNIT_BYTES - 1), 0);
    for (int64_t unit = -3; unit < 4; unit++) {
        uint64_t address = border + (uint64_t)(unit * HAK_UNIT_BYTES);
        assert_int_equal(entry_at(address), 0xabcdef12);
        assert_int_equal(entry_at(address + HAK_UNIT_BYTES - 1), 0xabcdef12);
    }
    assert_int_equal(entry_at(border + 4 * HAK_UNIT_BYTES), 0);
    hak_pagemap_set(base, 7, 0);
    assert_int_equal(entry_at(border), 0);
    assert_true(zero_leaf_is_zero());
}

UNIT_TEST(entry_of_the_highest_addresses_reads_back) {
    static const uint64_t addresses[] = {0, 0x7fffffff0000ull, 0xffffffff0000ull,
                                         0x800000000000ull};
    for (size_t i = 0; i < UNIT_COUNT(addresses); i++) {
        void *base = (void *)(uintptr_t)addresses[i];
        assert_true(hak_pagemap_prepare(base, HAK_UNIT_BYTES));
        hak_pagemap_set(base, 1, 0x100 + (uint32_t)i);
    }
    for (size_t i = 0; i < UNIT_COUNT(addresses); i++) {
        assert_int_equal(entry_at(addresses[i]), 0x100 + i);
        hak_pagemap_set((void *)(uintptr_t)addresses[i], 1, 0);
        assert_int_equal(entry_at(addresses[i]), 0);
    }
    assert_true(zero_leaf_is_zero());
}

UNIT_TEST(superslab_of_every_address_inside_is_found) {
    static hak_superslab_t record;
    char *base = (char *)(uintptr_t)0x51aa00400000ull;
    assert_true(hak_pagemap_prepare(base, HAK_SUPERSLAB_BYTES));
    hak_pagemap_set_superslab(base, &record);
    assert_null(hak_pagemap_superslab(base - 1));
    assert_ptr_equal(hak_pagemap_superslab(base), &record);
    assert_ptr_equal(hak_pagemap_superslab(base + HAK_SUPERSLAB_BYTES - 1), &record);
    assert_null(hak_pagemap_superslab(base + HAK_SUPERSLAB_BYTES));
    hak_pagemap_set_superslab(base, NULL);
    assert_null(hak_pagemap_superslab(base));
}

UNIT_TEST(prepare_of_a_known_range_costs_nothing) {
    void *base = (void *)(uintptr_t)0x51bb00000000ull;
    assert_true(hak_pagemap_prepare(base, HAK_UNIT_BYTES));
    size_t before = hak_meta_bytes();
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(hak_pagemap_prepare(base, (size_t)1 << 32));
    }
    assert_int_equal(hak_meta_bytes(), before);
    assert_true(hak_pagemap_prepare(base, ((size_t)1 << 32) + 1));
    assert_int_equal(hak_meta_bytes(), before + sizeof(hak_pagemap_leaf_t));
}

UNIT_TEST(prepare_without_memory_fails_and_reads_zero) {
    uint64_t address = 0x51cc00000000ull;
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    unsigned made = 0;
    while (hak_pagemap_prepare((void *)(uintptr_t)address, HAK_UNIT_BYTES) && made < 100) {
        address += 1ull << 32;
        made++;
    }
    assert_true(made < 100); /* the region ran out */
    assert_int_equal(entry_at(address), 0);
    assert_false(hak_pagemap_prepare((void *)(uintptr_t)address, HAK_UNIT_BYTES));
    hak_os_fault_clear();
    assert_true(hak_pagemap_prepare((void *)(uintptr_t)address, HAK_UNIT_BYTES));
    assert_true(zero_leaf_is_zero());
}

enum { PAGEMAP_THREADS = 4, ROOTS = 6 };

static void *prepare_all(void *context) {
    uint32_t own = (uint32_t)(uintptr_t)context;
    for (uint64_t i = 0; i < ROOTS; i++) {
        char *base = (char *)(uintptr_t)(0x51dd00000000ull + (i << 32)) + own * HAK_UNIT_BYTES;
        if (!hak_pagemap_prepare(base, HAK_UNIT_BYTES)) {
            return (void *)1;
        }
        hak_pagemap_set(base, 1, own << 8);
    }
    return NULL;
}

UNIT_TEST(prepare_by_many_threads_makes_one_leaf_each) {
    pthread_t threads[PAGEMAP_THREADS];
    void *result;
    size_t before = hak_meta_bytes();
    for (uintptr_t i = 0; i < PAGEMAP_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, prepare_all, (void *)(i + 1)), 0);
    }
    for (unsigned i = 0; i < PAGEMAP_THREADS; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    assert_int_equal(hak_meta_bytes(), before + ROOTS * sizeof(hak_pagemap_leaf_t));
    for (uint64_t i = 0; i < ROOTS; i++) {
        for (uint64_t own = 1; own <= PAGEMAP_THREADS; own++) {
            assert_int_equal(entry_at(0x51dd00000000ull + (i << 32) + own * HAK_UNIT_BYTES),
                             own << 8);
        }
    }
}

/* MAP-3, MAP-4: whatever spans do, nobody writes to the zero leaf. */
UNIT_TEST(zero_leaf_after_span_traffic_stays_zero) {
    hak_span_t spans[40];
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        spans[i] = unit_span(1 + i % 16, HAK_UNIT_BYTES);
        hak_pagemap_set_units(spans[i].base, spans[i].count, 0x4200);
    }
    for (unsigned i = 0; i < UNIT_COUNT(spans); i++) {
        hak_pagemap_set_units(spans[i].base, spans[i].count, 0);
        unit_span_free(&spans[i], 0);
    }
    hak_span_purge(0);
    assert_true(zero_leaf_is_zero());
    assert_int_equal(entry_at(0), 0);
}

/* A leaf that was full of entries, of which one stays in every eighth OS page. MAP-6 */
UNIT_TEST(trim_returns_the_memory_of_leaves_but_not_entries_in_use) {
    const uint64_t address = 0x51ee00000000ull;
    char *base = (char *)(uintptr_t)address;
    size_t page = hak_os_page_bytes(), units = page / sizeof(uint32_t);
    assert_true(hak_pagemap_prepare(base, HAK_UNIT_BYTES));
    hak_pagemap_leaf_t *leaf = hak_pagemap_leaf(hak_pagemap_base(), base);
    size_t empty = unit_is_emulated() ? 0 : hak_os_resident(leaf, sizeof *leaf);
    hak_pagemap_set(base, HAK_PAGEMAP_LEAF_UNITS, 0x4200);
    size_t full = unit_is_emulated() ? 0 : hak_os_resident(leaf, sizeof *leaf);
    hak_pagemap_set(base, HAK_PAGEMAP_LEAF_UNITS, 0);
    for (size_t i = 0; i < HAK_PAGEMAP_LEAF_UNITS; i += 8 * units) {
        hak_pagemap_set(base + i * HAK_UNIT_BYTES, 1, (uint32_t)i << 8 | 2);
    }
    hak_pagemap_trim();
    size_t left = unit_is_emulated() ? 0 : hak_os_resident(leaf, sizeof *leaf);
    for (size_t i = 0; i < HAK_PAGEMAP_LEAF_UNITS; i += units) {
        assert_int_equal(entry_at(address + i * HAK_UNIT_BYTES),
                         i % (8 * units) == 0 ? (uint32_t)i << 8 | 2 : 0);
    }
    assert_true(unit_is_emulated() || full >= sizeof leaf->entry);
    assert_true(unit_is_emulated() || left <= empty + (full - empty) / 8 + page);
    hak_pagemap_set(base, HAK_PAGEMAP_LEAF_UNITS, 0);
    hak_pagemap_trim();
    assert_int_equal(entry_at(address), 0);
}

/* Its units get entries without a lock that the trim holds. */
UNIT_TEST(trim_leaves_entries_of_a_superslab_alone) {
    static hak_superslab_t record;
    char *base = (char *)(uintptr_t)0x51ef00000000ull;
    size_t page = hak_os_page_bytes();
    assert_true(hak_pagemap_prepare(base, HAK_SUPERSLAB_BYTES));
    hak_pagemap_leaf_t *leaf = hak_pagemap_leaf(hak_pagemap_base(), base);
    char *first = (char *)hak_align_up((uintptr_t)leaf, page);
    size_t unit = (size_t)(first - (char *)leaf) / sizeof(uint32_t);
    char *mapped = base + hak_align_up(unit, HAK_SUPERSLAB_UNITS) * HAK_UNIT_BYTES;
    hak_pagemap_set(base, HAK_PAGEMAP_LEAF_UNITS, 0x4200);
    hak_pagemap_set(base, HAK_PAGEMAP_LEAF_UNITS, 0);
    hak_pagemap_set_superslab(mapped, &record);
    hak_pagemap_trim();
    assert_ptr_equal(hak_pagemap_superslab(mapped), &record);
    if (!unit_is_emulated()) {
        assert_int_equal(hak_os_resident(first, page), page);
        assert_int_equal(hak_os_resident(first + page, page), 0);
    }
    hak_pagemap_set_units(mapped, 1, 0x4200); /* noted as long as the superslab is there */
    hak_pagemap_trim();
    assert_int_equal(entry_at((uintptr_t)mapped), 0x4200);
    hak_pagemap_set_units(mapped, 1, 0);
    hak_pagemap_set_superslab(mapped, NULL);
    hak_pagemap_trim();
    if (!unit_is_emulated()) {
        assert_int_equal(hak_os_resident(first, page), 0);
    }
}

static long minor_faults(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

extern uint64_t hak_pagemap_written[];
enum { NOTES = 16 };

/* 400 GiB of addresses that were prepared, as of a large mapping that is not used yet. Reading a
 * page of a leaf is a page fault. A note is of every 16th leaf: those of the mappings of this
 * process, which lie at addresses that the kernel chose, would be read here, too. MAP-7 */
UNIT_TEST(trim_reads_no_part_that_nobody_wrote_to) {
    enum { LEAVES = 100 };
    const uint64_t address = 0x520000000000ull;
    char *base = (char *)(uintptr_t)address;
    uint64_t noted[NOTES];
    memcpy(noted, hak_pagemap_written, sizeof noted);
    memset(hak_pagemap_written, 0, sizeof noted);
    assert_true(hak_pagemap_prepare(base, (size_t)LEAVES << HAK_PAGEMAP_LEAF_LOG2));
    hak_pagemap_set(base, 1, 0x4200);
    hak_pagemap_trim();
    long before = minor_faults();
    hak_pagemap_trim();
    assert_true(unit_is_emulated() || minor_faults() - before < LEAVES);
    assert_int_equal(entry_at(address), 0x4200);
    hak_pagemap_set(base, 1, 0);
    hak_pagemap_trim();
    for (size_t i = 0; i < NOTES; i++) {
        hak_pagemap_written[i] |= noted[i];
    }
}

/* A superslab's note serves its units; an entry that goes is noted, too: the child of a fork in the
 * middle of a trim has no older notes. Both here are of the first part of the leaf. MAP-7 */
UNIT_TEST(what_is_written_is_noted) {
    static hak_superslab_t record;
    const uint64_t address = 0x522800000000ull;
    char *base = (char *)(uintptr_t)address;
    uint64_t *notes = &hak_pagemap_written[(address >> HAK_PAGEMAP_LEAF_LOG2) % NOTES];
    assert_true(hak_pagemap_prepare(base, HAK_SUPERSLAB_BYTES));
    uint64_t taken = *notes;
    *notes = 0;
    hak_pagemap_set_superslab(base, &record);
    assert_int_equal(*notes & 1, 1);
    hak_pagemap_set_superslab(base, NULL);
    hak_pagemap_set(base, 1, 0x4200);
    *notes = 0;
    hak_pagemap_set(base, 1, 0);
    assert_int_equal(*notes & 1, 1);
    *notes |= taken;
}

/* A trim takes the notes while it looks: another one meanwhile, or the child of a fork then, has
 * only newer ones. MAP-7 */
UNIT_TEST(trim_leaves_what_it_has_no_note_of_alone) {
    const uint64_t address = 0x524000000000ull;
    const size_t far = HAK_PAGEMAP_LEAF_UNITS / 2;
    char *base = (char *)(uintptr_t)address;
    uint64_t *notes = &hak_pagemap_written[(address >> HAK_PAGEMAP_LEAF_LOG2) % NOTES];
    assert_true(hak_pagemap_prepare(base, HAK_UNIT_BYTES));
    for (size_t i = 0; i < far; i += 64) {
        hak_pagemap_set(base + i * HAK_UNIT_BYTES, 1, 0x4200);
    }
    uint64_t taken = *notes;
    *notes = 0;
    hak_pagemap_set(base + far * HAK_UNIT_BYTES, 1, 0x4200);
    hak_pagemap_set(base + far * HAK_UNIT_BYTES, 1, 0);
    hak_pagemap_trim();
    for (size_t i = 0; i < far; i += 64) {
        assert_int_equal(entry_at(address + i * HAK_UNIT_BYTES), 0x4200);
    }
    *notes |= taken;
    hak_pagemap_set(base, far, 0);
    hak_pagemap_trim();
}
