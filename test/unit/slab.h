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

UNIT_AROUND(unit_slab_begin) {
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

/* As a flush of the owner's threads does it. */
static inline void unit_give(hak_owner_t *owner, void *block) {
    hak_slab_t *slab = hak_slab_of(block);
    hak_link_set(block, NULL);
    assert_true(hak_slab_mark_one(slab, hak_slab_index(slab, block)));
    hak_link_set_mark(block, HAK_LINK_MARK);
    hak_slab_count_free(owner, slab, 1, block);
}

static inline void unit_give_all(hak_owner_t *owner, unit_blocks_t *held) {
    while (held->count > 0) {
        unit_give(owner, held->block[--held->count]);
    }
}

/* What the test still has: blocks that no bitmap has a mark of, whatever it gave before. */
static inline void unit_give_rest(unit_blocks_t *held) {
    while (held->count > 0) {
        void *block = held->block[--held->count];
        if (hak_pagemap_get(hak_pagemap_base(), block) == 0) {
            continue; /* its slab retired */
        }
        hak_slab_t *slab = hak_slab_of(block);
        uint32_t index = hak_slab_index(slab, block);
        if ((slab->bits[index / 64] >> index % 64 & 1) == 0 &&
            !hak_remote_is_marked(hak_pagemap_superslab(slab->base), slab->unit, index)) {
            unit_give(slab->owner, block);
        }
    }
}

/* A message of one block. */
static inline hak_marks_t unit_marks(const void *block) {
    const hak_slab_t *slab = hak_slab_of(block);
    uint32_t index = hak_slab_index(slab, block);
    return (hak_marks_t){.superslab = hak_pagemap_superslab(block),
                         .bits = 1ull << index % 64,
                         .count = 1,
                         .unit = slab->unit,
                         .word = (uint8_t)(index / 64)};
}

/* Sends blocks of one slab to its owner, with one number. */
static inline void unit_push(void *const *blocks, unsigned count) {
    hak_marks_t marks = {0};
    hak_set_unlocked_update(true);
    for (unsigned i = 0; i < count; i++) {
        marks = unit_marks(blocks[i]);
        hak_link_set(blocks[i], NULL);
        hak_link_set_mark(blocks[i], HAK_LINK_MARK);
        hak_remote_mark(&marks);
    }
    hak_remote_tell(&marks, count);
    hak_set_unlocked_update(false);
}

/* The number of blocks that wait at a slab. */
static inline uint64_t unit_waiting(const hak_slab_t *slab) {
    return hak_remote_waiting(hak_pagemap_superslab(slab->base), slab->unit);
}

/* The marks in a slab's own bitmap. */
static inline unsigned unit_marked(const hak_slab_t *slab) {
    unsigned count = 0;
    for (unsigned i = 0; i < slab->capacity; i += 64) {
        count += hak_popcount(slab->bits[i / 64]);
    }
    return count;
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
    }
}

#endif
