/* SPDX-License-Identifier: MIT
 *
 * Bins: capacities, what refills bring, what overflows take back. */
#include "unit/front.h"

static int32_t initial_capacity(unsigned sc) {
    return hak_bin_initial_capacity(HAK_BIN_INITIAL_BYTES, sc);
}

FRONT_TEST(capacity_limits_follow_the_knobs) {
    assert_int_equal(initial_capacity(0), 16);
    assert_int_equal(initial_capacity(SC_64), 16);
    assert_int_equal(initial_capacity(7), 8);
    assert_int_equal(initial_capacity(SC_65536), 1);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        size_t bytes = hak_sc_info[sc].bytes;
        assert_true(hak_bin_max_capacity(sc) >= initial_capacity(sc));
        assert_true(hak_bin_max_capacity(sc) <= 2048);
        assert_true(hak_bin_max_capacity(sc) == initial_capacity(sc) ||
                    (size_t)hak_bin_max_capacity(sc) * bytes <= 128u << 10);
    }
    hak_knobs.bin_max_blocks = 2;
    assert_int_equal(hak_bin_max_capacity(SC_64), 2);
    hak_knobs.bin_max_blocks = 0;
    assert_int_equal(hak_bin_max_capacity(SC_64), 0);
    hak_knobs.bin_max_blocks = 65536;
    hak_knobs.bin_max_bytes = 1u << 20;
    assert_int_equal(hak_bin_max_capacity(0), 65536);
}

static int32_t held(unsigned sc) {
    return hak_bin_side(self(), sc)->total - self()->bin[sc].slots_left;
}

/* Whatever a refill brings: a page's worth of small blocks, or the list of a slab. */
FRONT_TEST(bin_with_few_blocks_allowed_never_holds_more) {
    enum { COUNT = 2000 };
    static const size_t bounds[] = {0, 1, 2, 16};
    static void *block[COUNT];
    for (unsigned i = 0; i < UNIT_COUNT(bounds); i++) {
        hak_knobs.bin_max_blocks = bounds[i];
        hak_collect_thread();
        hak_free(unit_malloc(64)); /* from this refill on */
        int32_t most = 0;
        for (unsigned round = 0; round < 10; round++) {
            for (unsigned k = 0; k < COUNT; k++) {
                block[k] = unit_malloc(64);
                most = held(SC_64) > most ? held(SC_64) : most;
            }
            for (unsigned k = 0; k < COUNT; k++) {
                hak_free(block[k]);
                most = held(SC_64) > most ? held(SC_64) : most;
            }
        }
        UNIT_EXPECT((size_t)most <= bounds[i], "%zu: %d", bounds[i], most);
        audit();
    }
}

/* Blocks of 8 KiB come one by one, so that no refill is too long for the bin. */
FRONT_TEST(bin_of_blocks_that_come_one_by_one_obeys_a_lower_bound_set_later) {
    enum { COUNT = 64, BYTES = 8192, BOUND = 2 };
    static void *block[COUNT];
    unsigned sc = hak_slab_of(block[0] = unit_malloc(BYTES))->sc;
    hak_free(block[0]);
    for (unsigned round = 0; round < 10; round++) { /* its capacity grows */
        UNIT_TAKE_ALL(block, COUNT, unit_malloc(BYTES));
        UNIT_FREE_ALL(block, COUNT);
    }
    assert_true(hak_bin_side(self(), sc)->capacity > 2 * BOUND);
    UNIT_TAKE_ALL(block, COUNT, unit_malloc(BYTES));
    hak_tcache_flush(self());
    hak_knobs.bin_max_blocks = BOUND;
    hak_free(unit_malloc(BYTES));
    int32_t most = 0;
    for (unsigned k = 0; k < COUNT; k++) {
        hak_free(block[k]);
        most = held(sc) > most ? held(sc) : most;
    }
    assert_in_range(most, 1, BOUND);
}

/* A load that breathes by more than the bin holds doubles it, up to the bound; the long run of
 * frees alone lets it have 32 blocks. */
FRONT_TEST(capacity_of_a_breathing_load_grows_to_its_bound) {
    enum { COUNT = 3000 };
    static void *block[COUNT];
    hak_tcache_t *tcache = self();
    const int32_t *capacity = &tcache->side[SC_64].capacity;
    hak_bin_begin(tcache, SC_64);
    hak_tcache_flush(tcache);
    int32_t before = *capacity, most = hak_bin_max_capacity(SC_64);
    assert_int_equal(before, initial_capacity(SC_64));
    for (unsigned round = 0; round < 20; round++) {
        UNIT_TAKE_ALL(block, COUNT, unit_malloc(64));
        assert_true(*capacity == before || *capacity == before * 2);
        before = *capacity < 32 ? 32 : *capacity;
        UNIT_FREE_ALL(block, COUNT);
        assert_int_equal(*capacity, before);
        assert_true(*capacity <= most);
    }
    assert_int_equal(*capacity, most);
}

/* A thread that uses little of a class takes little of it: each refill twice what the last one
 * took, until a page's worth. */
FRONT_TEST(refills_of_a_new_bin_grow) {
    enum { SC_96 = 5, COUNT = 200 };
    void *block[COUNT];
    hak_tcache_t *tcache = self();
    hak_bin_begin(tcache, SC_96);
    unsigned most = 4096 / 96, expected = tcache->side[SC_96].want;
    assert_int_equal(expected, initial_capacity(SC_96) / 2);
    for (unsigned i = 0; i < COUNT; i++) {
        bool is_empty = tcache->bin[SC_96].head == NULL;
        block[i] = unit_malloc(96);
        if (is_empty) {
            int64_t rest = tcache->side[SC_96].total - tcache->bin[SC_96].slots_left;
            assert_int_equal(rest, expected - 1);
            expected = expected * 2 < most ? expected * 2 : most;
        }
    }
    assert_int_equal(expected, most);
    UNIT_FREE_ALL(block, COUNT);
}

/* What a refill made larger than its capacity holds no more than that after it overflowed. */
FRONT_TEST(overflow_brings_a_bin_back_to_its_capacity) {
    enum { SC_160 = 8, COUNT = 400 };
    void *block[COUNT];
    hak_tcache_t *tcache = self();
    const hak_bin_side_t *side = &tcache->side[SC_160];
    UNIT_TAKE_ALL(block, COUNT, unit_malloc(160));
    assert_int_equal(side->capacity, initial_capacity(SC_160));
    UNIT_FREE_ALL(block, COUNT);
    assert_int_equal(side->total, side->capacity);
    assert_true(tcache->bin[SC_160].slots_left >= 0);
}

static int32_t length(const void *block) {
    int32_t count = 0;
    for (; block != NULL; block = hak_link_get(block)) {
        count++;
    }
    return count;
}

/* After the look-up of a free another owner may adopt the slab: the block leaves the full bin for
 * its new owner, and the bin must not count as having less than no slot left. */
FRONT_TEST(push_that_failed_leaves_no_debt) {
    enum { SC_96 = 5 };
    hak_tcache_t *tcache = self();
    hak_bin_t *bin = &tcache->bin[SC_96];
    void *block = unit_malloc(96);
    hak_slab_t *slab = hak_slab_of(block);
    tcache->side[SC_96].total -= bin->slots_left; /* full */
    bin->slots_left = 0;
    uintptr_t base = hak_pagemap_base(), index = hak_pagemap_index(base, block);
    assert_ptr_equal(hak_bin_at(tcache, hak_pagemap_kind_at(base, index)), bin);
    assert_false(hak_bin_push(bin, block));
    hak_owner_t *other = hak_owner_join(HAK_PARTITION_ANY);
    assert_ptr_not_equal(other, tcache->home);
    hak_slab_change_owner(slab, other); /* as adoption does it */
    hak_slow_free(block, tcache, index);
    assert_true(bin->slots_left >= 0);
    assert_int_equal(length(bin->head), tcache->side[SC_96].total - bin->slots_left);
    assert_int_not_equal(hak_remote_waiting(hak_pagemap_superslab(slab->base), slab->unit), 0);
    assert_true(hak_remote_is_pending(other));
    hak_slab_change_owner(slab, tcache->home);
    hak_owner_quit(other);
    hak_owner_collect();
}

FRONT_TEST(is_multiple_of_every_offset_equals_a_remainder) {
    static const uint32_t bytes[] = {16, 48, 80, 112, 1152, 2048, 3584, 5120, 7168, 9216, 12288};
    for (unsigned i = 0; i < UNIT_COUNT(bytes); i++) {
        uint32_t factor = UINT32_MAX / bytes[i] + 1;
        for (uint32_t offset = 0; offset < 1 << 16; offset++) {
            assert_int_equal(hak_is_multiple(offset, &factor), offset % bytes[i] == 0);
        }
    }
    uint32_t no_factor = 0;
    assert_false(hak_is_multiple(0, &no_factor));
}
