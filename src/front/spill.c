/* SPDX-License-Identifier: MIT
 *
 * Sorting: how free blocks leave a tcache. A list of one class, in the order in which the program
 * freed, goes back to the slabs it came from, run by run: blocks of one unit that follow each other
 * are given back in one step. Runs of other owners' slabs are joined into one batch a slab, as far
 * as the sorter has places.
 *
 * Every block is checked here: that it is one; and of a whole list, that it is as long as it was
 * counted (TCACHE-4). */
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
    hak_slab_t *slab[SORTER_PLACES];
    hak_batch_t batch[SORTER_PLACES];
} sorter_t;

/* Records of neighbouring units are 128 bytes apart, those of superslabs 8.1 KiB. */
static unsigned sorter_place(const hak_slab_t *slab) {
    uintptr_t key = (uintptr_t)slab / HAK_UNIT_RECORD_BYTES;
    return (unsigned)(key ^ key >> 5) % SORTER_PLACES;
}

static void sorter_send(hak_tcache_t *tcache, sorter_t *sorter, unsigned place) {
    hak_owner_add(&tcache->counters.remote_out, 1);
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

/* The blocks from *next on that lie in one unit, at most *left. *next is what follows then. */
HAK_INLINE hak_batch_t run_take(const hak_slab_t *slab, void **next, uint32_t *left) {
    hak_batch_t run = {.head = *next, .tail = *next, .count = 0};
    void *block = *next;
    if (HAK_UNLIKELY((size_t)((const char *)block - slab->base) >> 32 != 0)) {
        hak_fatal(HAK_FATAL_CORRUPT_LINK, block, NULL); /* bits the page map does not look at */
    }
    do {
        hak_slab_check_freed(slab, block);
        void *follower = hak_link_get(block);
        if (HAK_UNLIKELY(follower == block)) {
            hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL); /* twice in a row: links to itself */
        }
        run.tail = block;
        run.count++;
        block = follower;
    } while (run.count < *left && is_same_unit(run.tail, block));
    if (HAK_UNLIKELY(run.count > hak_owner_load(&slab->carved))) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL); /* it goes round in circles */
    }
    *left -= run.count;
    *next = block;
    return run;
}

/* Sorts; what belongs to the owner held, NULL for none, goes straight back. */
static void *spill_sort(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks, hak_owner_t *held,
                        sorter_t *sorter) {
    uint32_t own = held != NULL ? hak_sc_entry(held->tag, sc) : 0;
    void *block = blocks.head;
    uint32_t left = blocks.count;
    while (left != 0) {
        uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
        if (HAK_UNLIKELY(!hak_slab_is_entry(entry) || hak_sc_of_entry(entry) != sc)) {
            /* a link that was overwritten, or the list ends early: freed twice */
            hak_fatal(block == NULL ? HAK_FATAL_DOUBLE_FREE : HAK_FATAL_CORRUPT_LINK, blocks.head,
                      NULL);
        }
        hak_slab_t *slab = hak_slab_of(block);
        hak_batch_t run = run_take(slab, &block, &left);
        if (HAK_LIKELY(entry == own)) {
            hak_slab_give_back(held, slab, &run);
        } else {
            sorter_add(tcache, sorter, slab, &run);
        }
    }
    return block;
}

void *hak_tcache_spill(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks) {
    sorter_t sorter;
    sorter.used = 0;
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
    return blocks < OUTBOX_MOST_BLOCKS ? (int32_t)blocks : OUTBOX_MOST_BLOCKS;
}

static hak_blocks_t outbox_take(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_side_t *side = &tcache->side[sc];
    uint32_t bytes = hak_sc_info[sc].bytes;
    hak_blocks_t blocks = side->outbox;
    side->outbox = (hak_blocks_t){0};
    side->outbox_room = hak_outbox_capacity(sc);
    tcache->outbox_bytes -= blocks.count * bytes;
    return blocks;
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
    return outbox_take(tcache, sc);
}
