/* SPDX-License-Identifier: MIT
 *
 * Bins with blocks of other owners: which frees are kept, and where the blocks go. */
#include "unit/front.h"

enum { FOREIGN_BLOCKS = 1000, LONG_RUN = 8 };

static void *make_blocks(void *context) {
    void **block = context;
    UNIT_TAKE_ALL(block, FOREIGN_BLOCKS, unit_malloc(64));
    return NULL;
}

/* Blocks of 64 bytes of a thread that has exited; this one has used no such block. */
static void **foreign_blocks(void) {
    static void *block[FOREIGN_BLOCKS];
    hak_tcache_t *tcache = self(); /* before that thread leaves one behind */
    hak_free(unit_malloc(64));     /* a slab for refills: none is adopted */
    unit_pthread_create_and_join(make_blocks, block);
    hak_tcache_flush(tcache);
    hak_bin_end(tcache, SC_64);
    hak_budget_give(tcache, tcache->drawn);
    for (uint64_t begun = tcache->begun; begun != 0; begun &= begun - 1) {
        hak_bin_end(tcache, hak_ctz(begun));
    }
    tcache->begun = 0;
    tcache->side[SC_64].counters.remote_out = 0;
    return block;
}

static int32_t cached(void) {
    return self()->side[SC_64].total - self()->bin[SC_64].slots_left;
}

static uint64_t waiting(void *block) {
    const hak_slab_t *slab = hak_slab_of(block);
    return hak_remote_waiting(hak_pagemap_superslab(slab->base), slab->unit);
}

static bool is_own(const void *block) {
    return hak_pagemap_get(hak_pagemap_base(), block) == hak_sc_entry(self()->first_entry, SC_64);
}

FRONT_TEST(first_frees_of_a_class_go_to_the_owner) {
    void **block = foreign_blocks();
    hak_tcache_t *tcache = self();
    for (unsigned i = 1; i <= 4; i++) {
        assert_int_equal(tcache->begun >> SC_64 & 1, 0);
        uint64_t before = waiting(block[i]);
        hak_free(block[i]);
        assert_int_equal(waiting(block[i]), before + 1);
        assert_int_equal(tcache->side[SC_64].counters.remote_out, i);
        assert_int_equal(cached(), 0);
    }
    assert_int_equal(tcache->begun, 1ull << SC_64);
    hak_free(block[0]);
    assert_int_equal(cached(), 1);
    assert_ptr_equal(unit_malloc(64), block[0]);
    hak_free(block[0]);
    UNIT_FREE_ALL(block + 5, FOREIGN_BLOCKS - 5);
    audit();
}

FRONT_TEST(refill_begins_a_class) {
    void **block = foreign_blocks();
    hak_tcache_t *tcache = self();
    void *own = unit_malloc(64);
    int32_t before = cached();
    assert_false(is_own(block[0]));
    hak_free(block[0]);
    assert_int_equal(cached(), before + 1);
    assert_int_equal(tcache->side[SC_64].counters.remote_out, 0);
    assert_ptr_equal(unit_malloc(64), block[0]);
    hak_free(own);
    UNIT_FREE_ALL(block, FOREIGN_BLOCKS);
    audit();
}

FRONT_TEST(flush_gives_each_block_to_its_owner) {
    enum { EACH = 5 };
    void **block = foreign_blocks(), *own[EACH];
    UNIT_TAKE_ALL(own, EACH, unit_malloc(64));
    hak_collect_thread();
    unsigned foreign = 0;
    for (unsigned i = 0; i < EACH; i++) {
        assert_true(is_own(own[i]));
        foreign += !is_own(block[i]);
        hak_free(own[i]);
        hak_free(block[i]);
    }
    assert_int_equal(foreign, EACH);
    assert_int_equal(cached(), 2 * EACH);
    uint64_t before = waiting(block[0]);
    hak_tcache_flush(self());
    assert_int_equal(cached(), 0);
    assert_int_equal(waiting(block[0]), before + EACH);
    for (unsigned i = 0; i < EACH; i++) {
        const hak_slab_t *slab = hak_slab_of(block[i]);
        uint32_t index = hak_slab_index(slab, block[i]);
        assert_true(hak_remote_is_marked(hak_pagemap_superslab(slab->base), slab->unit, index));
    }
    UNIT_FREE_ALL(block + EACH, FOREIGN_BLOCKS - EACH);
    audit();
}

/* One message a slab and flush, not one a block. */
FRONT_TEST(full_bin_sends_blocks_together) {
    void **block = foreign_blocks();
    hak_tcache_t *tcache = self();
    UNIT_FREE_ALL(block, FOREIGN_BLOCKS);
    assert_in_range(tcache->side[SC_64].overflows, LONG_RUN, UINT8_MAX);
    hak_tcache_flush(tcache);
    const hak_bin_counters_t *counters = &tcache->side[SC_64].counters;
    assert_true(counters->overflow > 0);
    assert_in_range(counters->remote_out, 4, 4 + 2 * (counters->overflow + 2));
    audit();
}

static int32_t capacity_after_overflows(size_t bytes, uint8_t overflows, bool has_sent) {
    hak_bin_side_t *side = &self()->side[hak_sc_of(bytes)];
    for (unsigned i = 0; i < 16; i++) {
        hak_collect_thread();
        side->overflows = overflows;
        side->has_sent = has_sent;
        hak_free(unit_malloc(bytes)); /* a refill */
        assert_false(side->has_sent);
    }
    return side->capacity;
}

FRONT_TEST(bin_that_sends_grows_less) {
    for (size_t bytes = 16; bytes <= 256; bytes *= 4) {
        hak_free(unit_malloc(bytes));
        assert_int_equal(capacity_after_overflows(bytes, LONG_RUN - 1, true),
                         bytes < 256 ? 256 : 128);
        assert_int_equal(capacity_after_overflows(bytes, LONG_RUN, true), bytes < 256 ? 1024 : 256);
    }
    assert_int_equal(capacity_after_overflows(64, 1, false), hak_bin_max_capacity(SC_64));
    audit();
}
