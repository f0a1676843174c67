/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of slab/: owners that no thread has, and lists of blocks taken from them. */
#ifndef HAK_TEST_UNIT_SLAB_H
#define HAK_TEST_UNIT_SLAB_H

#include "slab/remote.h"
#include "slab/slab_inl.h"
#include "unit/span.h"

/* Blocks a test holds; large enough for a few slabs of the smallest class. */
typedef struct unit_blocks {
    void *block[20000];
    unsigned count;
} unit_blocks_t;

static inline int unit_slab_begin(void **state) {
    (void)state;
    hak_os_init();
    if (HAK_HARDEN) {
        hak_secret.link = (uintptr_t)0x5eed5eed5eed5ee0ull;
    }
    return 0;
}

/* Owners have tags that no thread of the process gets. */
static inline void unit_owner_begin(hak_owner_t *owner, uint32_t number) {
    memset(owner, 0, sizeof *owner);
    hak_owner_init(owner, (1000 + number) << 8);
}

static inline unsigned unit_list_length(const void *block) {
    unsigned length = 0;
    for (; block != NULL; block = hak_link_get(block)) {
        length++;
    }
    return length;
}

/* What a refill of at most `want` gives, linked. */
static inline hak_blocks_t unit_blocks(hak_owner_t *owner, unsigned sc, uint32_t want) {
    hak_blocks_t blocks = hak_slab_refill(owner, sc, want);
    assert_in_range(blocks.count, 1, want);
    if (blocks.stride != 0) {
        hak_slab_link(&blocks);
    }
    return blocks;
}

/* One refill; its blocks join those held. */
static inline unsigned unit_refill_some(hak_owner_t *owner, unsigned sc, unit_blocks_t *held,
                                        uint32_t want) {
    hak_blocks_t blocks = unit_blocks(owner, sc, want);
    assert_int_equal(unit_list_length(blocks.head), blocks.count);
    for (void *block = blocks.head; block != NULL; block = hak_link_get(block)) {
        assert_true(hak_slab_is_block(hak_slab_of(block), block));
        assert_int_equal(hak_pagemap_get(hak_pagemap_base(), block),
                         hak_sc_entry(owner->first_entry, sc));
        assert_true(held->count < UNIT_COUNT(held->block));
        held->block[held->count++] = block;
    }
    return blocks.count;
}

static inline unsigned unit_refill(hak_owner_t *owner, unsigned sc, unit_blocks_t *held) {
    return unit_refill_some(owner, sc, held, UINT32_MAX);
}

/* Takes `count` blocks at least. */
static inline void unit_take(hak_owner_t *owner, unsigned sc, unit_blocks_t *held, unsigned count) {
    while (held->count < count) {
        unit_refill(owner, sc, held);
    }
}

static inline void unit_give(hak_owner_t *owner, void *block) {
    hak_batch_t batch = {.head = block, .tail = block, .count = 1};
    hak_slab_give_back(owner, hak_slab_of(block), &batch);
}

static inline void unit_give_all(hak_owner_t *owner, unit_blocks_t *held) {
    while (held->count > 0) {
        unit_give(owner, held->block[--held->count]);
    }
}

/* blocks[from .. from+count) as one batch in list order. */
static inline hak_batch_t unit_batch(void *const *blocks, unsigned count) {
    for (unsigned i = 0; i + 1 < count; i++) {
        hak_link_set(blocks[i], blocks[i + 1]);
    }
    return (hak_batch_t){.head = blocks[0], .tail = blocks[count - 1], .count = count};
}

/* Sends blocks of one slab to its owner. */
static inline void unit_push(void *const *blocks, unsigned count) {
    hak_batch_t batch = unit_batch(blocks, count);
    hak_remote_push(hak_slab_of(blocks[0]), &batch);
}

/* Every slab went back: the owner holds nothing and the provider knows it. */
static inline void unit_owner_end(hak_owner_t *owner) {
    hak_remote_drain(owner, UINT32_MAX);
    hak_slab_release_current(owner);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        assert_null(owner->current[sc]);
        assert_true(hak_list_is_empty(&owner->partial[sc]));
        assert_int_equal(owner->partial_count[sc], 0);
        assert_int_equal(owner->slab_count[sc], 0);
        assert_int_equal(owner->counters[sc].slab_create, owner->counters[sc].slab_retire);
    }
}

#endif
