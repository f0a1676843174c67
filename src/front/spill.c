/* SPDX-License-Identifier: MIT
 *
 * Sorting: how free blocks leave a tcache. A list of one class, in the order in which the program
 * freed, goes back to the slabs it came from. Blocks of this owner's slabs are marked in the bitmap
 * of their slab, from which they come back in the order of their addresses. Blocks of others go run
 * by run, those of one unit that follow each other; runs are joined into one batch a slab, as far
 * as the sorter has places.
 *
 * Every block is checked here: that it is one; of this owner's, that it is not free already; and of
 * a whole list, that it is as long as it was counted (TCACHE-4). */
#include "base/knobs.h"
#include "front/tcache.h"

enum {
    SORTER_PLACES = 32,
    /* Fewer blocks of others are not used here: they may share cache lines with what other threads
     * use (docs/experiments/0014-blocks-of-others.md). */
    RECYCLE_LEAST = 4,
    /* In one outbox at most: each may keep a slab from retiring, and all are sorted in one call. */
    OUTBOX_MOST_BLOCKS = 256,
};

/* Batches under way, direct-mapped by slab. */
typedef struct sorter {
    uint32_t used; /* bit per place */
    unsigned sc;
    hak_slab_t *slab[SORTER_PLACES];
    hak_batch_t batch[SORTER_PLACES];
} sorter_t;

/* Records of neighbouring units are 128 bytes apart, those of superslabs 8.1 KiB. */
static unsigned sorter_place(const hak_slab_t *slab) {
    uintptr_t key = (uintptr_t)slab / HAK_UNIT_RECORD_BYTES;
    return (unsigned)(key ^ key >> 5) % SORTER_PLACES;
}

static void sorter_send(hak_tcache_t *tcache, sorter_t *sorter, unsigned place) {
    hak_owner_add(&tcache->side[sorter->sc].counters.remote_out, 1);
    hak_remote_push(sorter->slab[place], &sorter->batch[place]);
    sorter->used &= ~(1u << place);
}

static void sorter_add(hak_tcache_t *tcache, sorter_t *sorter, hak_slab_t *slab,
                       const hak_batch_t *run) {
    unsigned place = sorter_place(slab);
    bool is_used = (sorter->used >> place & 1) != 0;
    if (is_used && sorter->slab[place] == slab) {
        hak_link_set(run->tail, sorter->batch[place].head);
        sorter->batch[place].head = run->head;
        sorter->batch[place].count += run->count;
        return;
    }
    if (is_used) {
        sorter_send(tcache, sorter, place);
    }
    sorter->slab[place] = slab;
    sorter->batch[place] = *run;
    sorter->used |= 1u << place;
}

HAK_INLINE bool is_same_unit(const void *a, const void *b) {
    return ((uintptr_t)a ^ (uintptr_t)b) < HAK_UNIT_BYTES;
}

/* The blocks from `block` on that lie in one unit, at most `most`, and what follows them. */
static hak_batch_t run_take(const hak_slab_t *slab, void *block, uint32_t most, void **next) {
    hak_batch_t run = {.head = block, .tail = block, .count = 0};
    if (HAK_UNLIKELY((size_t)((const char *)block - slab->base) >> 32 != 0)) {
        hak_fatal(HAK_FATAL_CORRUPT_LINK, block, NULL); /* bits the page map does not look at */
    }
    do {
        hak_slab_check_freed(slab, block);
        hak_hunt_check_mark(block);
        void *follower = hak_link_get(block);
        if (HAK_UNLIKELY(follower == block)) {
            hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL); /* twice in a row: links to itself */
        }
        run.tail = block;
        run.count++;
        block = follower;
    } while (run.count < most && is_same_unit(run.tail, block));
    if (HAK_UNLIKELY(run.count > hak_owner_load(&slab->carved))) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL); /* it goes round in circles */
    }
    *next = block;
    return run;
}

/* The slab of a block that a list of class `sc` leads to. `first` is for messages. */
HAK_INLINE hak_slab_t *list_slab(const void *block, unsigned sc, const void *first) {
    uintptr_t index = hak_pagemap_index(hak_pagemap_base(), block);
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    bool is_far = (uintptr_t)block >> 48 != 0; /* bits the page map does not look at */
    if (HAK_UNLIKELY(is_far || !hak_slab_is_entry(entry) || hak_sc_of_entry(entry) != sc)) {
        /* a link that was overwritten, or the list ends early: freed twice */
        hak_fatal(block == NULL ? HAK_FATAL_DOUBLE_FREE : HAK_FATAL_CORRUPT_LINK, first, NULL);
    }
    return hak_slab_in(hak_pagemap_superslab_at(index, block), block);
}

/* A list of at most `most` blocks begins with one of another owner, or with no block at all.
 * Returns what follows those of its unit, and how many they were. `first` is for messages. */
static HAK_NOINLINE hak_blocks_t spill_foreign(hak_tcache_t *tcache, unsigned sc, sorter_t *sorter,
                                               void *block, uint32_t most, const void *first) {
    hak_slab_t *slab = list_slab(block, sc, first);
    void *next;
    hak_batch_t run = run_take(slab, block, most, &next);
    sorter_add(tcache, sorter, slab, &run);
    return (hak_blocks_t){.head = next, .count = run.count};
}

/* A list of at most `most` blocks begins with block `index` of one of the owner's slabs, followed
 * by its neighbour, and perhaps by that one's, and so on, upwards or downwards: they were freed in
 * the order of their addresses, and are marked together. Returns what follows, and their number. */
static HAK_NOINLINE hak_blocks_t spill_row(hak_owner_t *owner, hak_slab_t *slab, uint32_t index,
                                           char *block, uint32_t most) {
    char *next = hak_link_get(block);
    bool is_upward = next > block;
    ptrdiff_t step = is_upward ? (ptrdiff_t)slab->block_bytes : -(ptrdiff_t)slab->block_bytes;
    uint32_t room = is_upward ? slab->carved - index : index + 1;
    const char *neighbour = block + step;
    uint32_t count = 1;
    most = most < room ? most : room;
    hak_link_set_mark(block, HAK_LINK_MARK);
    while (count < most && next == neighbour) {
        char *member = next;
        neighbour += step;
        next = hak_link_get(member);
        hak_link_set_mark(member, HAK_LINK_MARK);
        count++;
    }
    if (HAK_UNLIKELY(!hak_slab_mark(slab, is_upward ? index + count - 1 : index, count))) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
    }
    hak_slab_count_free(owner, slab, count, block);
    return (hak_blocks_t){.head = next, .count = count};
}

/* The same for a list of any blocks of the owner's slabs, or of addresses inside; one, or a row. */
HAK_INLINE hak_blocks_t spill_own(hak_owner_t *owner, const hak_sc_info_t *info, hak_slab_t *slab,
                                  char *block, uint32_t most) {
    uint32_t index = hak_sc_index(info, (uint32_t)(block - slab->base));
    if (HAK_UNLIKELY(index >= slab->carved)) {
        hak_fatal(HAK_FATAL_INTERIOR_FREE, block, NULL);
    }
    char *next = hak_link_get(block);
    if (HAK_UNLIKELY(next == block - info->bytes || next == block + info->bytes)) {
        return spill_row(owner, slab, index, block, most);
    }
    if (HAK_UNLIKELY(!hak_slab_mark_one(slab, index))) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
    }
    hak_link_set_mark(block, HAK_LINK_MARK);
    hak_slab_count_free(owner, slab, 1, block);
    return (hak_blocks_t){.head = next, .count = 1};
}

/* Sorts; what belongs to the owner held, NULL for none, goes straight back. */
static void *spill_sort(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks, hak_owner_t *held,
                        sorter_t *sorter) {
    const hak_sc_info_t info = hak_sc_info[sc]; /* in registers */
    uintptr_t base = hak_pagemap_base();
    uint32_t own = held != NULL ? hak_sc_entry(held->tag, sc) : UINT32_MAX; /* nobody's */
    char *block = blocks.head;
    uint32_t left = blocks.count;
    while (left != 0) {
        hak_pagemap_leaf_t *leaf = hak_pagemap_leaf(base, block);
        uint32_t entry = hak_pagemap_leaf_get(leaf, block);
        hak_blocks_t done; /* what follows; how many are done */
        /* the page map does not look at the highest bits */
        if (HAK_LIKELY(((entry ^ own) | (uintptr_t)block >> 48) == 0)) {
            hak_slab_t *slab = hak_slab_in(hak_pagemap_leaf_superslab(leaf, block), block);
            done = spill_own(held, &info, slab, block, left);
        } else {
            done = spill_foreign(tcache, sc, sorter, block, left, blocks.head);
        }
        block = done.head;
        left -= done.count;
    }
    return block;
}

void *hak_tcache_spill(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks) {
    sorter_t sorter;
    sorter.used = 0;
    sorter.sc = sc;
    hak_owner_t *held = hak_owner_try(tcache->home) ? tcache->home : NULL;
    void *rest = spill_sort(tcache, sc, blocks, held, &sorter);
    if (HAK_LIKELY(held != NULL)) {
        hak_owner_leave(held);
    }
    while (sorter.used != 0) {
        sorter_send(tcache, &sorter, hak_ctz(sorter.used));
    }
    return rest;
}

void hak_tcache_spill_all(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks) {
    const void *rest = blocks.count != 0 ? hak_tcache_spill(tcache, sc, blocks) : blocks.head;
    if (HAK_UNLIKELY(rest != NULL)) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, rest, NULL);
    }
}

/* --- outbox ---------------------------------------------------------------------------------- */

int32_t hak_outbox_capacity(unsigned sc) {
    size_t blocks = hak_load_relaxed(&hak_knobs.outbox_bytes) / 4 / hak_sc_info[sc].bytes;
    return blocks == 0 ? 1 : blocks < OUTBOX_MOST_BLOCKS ? (int32_t)blocks : OUTBOX_MOST_BLOCKS;
}

static hak_blocks_t outbox_take(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_side_t *side = &tcache->side[sc];
    uint32_t bytes = hak_sc_info[sc].bytes;
    hak_blocks_t blocks = side->outbox;
    hak_store_hot(&side->outbox.head, NULL);
    side->outbox.count = 0;
    side->outbox_room = hak_outbox_capacity(sc);
    tcache->outbox_bytes -= blocks.count * bytes;
    return blocks;
}

/* When they were freed it was only looked whether blocks could be there. */
static void outbox_check(const hak_blocks_t *blocks, unsigned sc) {
    const void *block = blocks->head;
    for (uint32_t left = blocks->count; left != 0; left--) {
        hak_slab_check_freed(list_slab(block, sc, blocks->head), block);
        hak_hunt_check_mark(block);
        block = hak_link_get(block);
    }
    if (HAK_UNLIKELY(block != NULL)) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
    }
}

static void outbox_empty(hak_tcache_t *tcache, unsigned sc) {
    hak_blocks_t blocks = outbox_take(tcache, sc);
    hak_tcache_spill_all(tcache, sc, blocks);
}

void hak_outbox_flush(hak_tcache_t *tcache) {
    for (unsigned sc = 0; tcache->outbox_bytes != 0 && sc < HAK_SC_COUNT; sc++) {
        outbox_empty(tcache, sc);
    }
}

void hak_outbox_shrink(hak_tcache_t *tcache, unsigned sc) {
    size_t bound = hak_load_relaxed(&hak_knobs.outbox_bytes);
    outbox_empty(tcache, sc);
    for (unsigned i = 0; i < HAK_SC_COUNT && tcache->outbox_bytes > bound / 2; i++) {
        outbox_empty(tcache, tcache->outbox_cursor);
        tcache->outbox_cursor = (uint8_t)((tcache->outbox_cursor + 1) % HAK_SC_COUNT);
    }
}

hak_blocks_t hak_outbox_recycle(hak_tcache_t *tcache, unsigned sc) {
    if (tcache->side[sc].outbox.count < RECYCLE_LEAST) {
        return (hak_blocks_t){0};
    }
    hak_blocks_t blocks = outbox_take(tcache, sc);
    outbox_check(&blocks, sc);
    return blocks;
}
