/* SPDX-License-Identifier: MIT
 *
 * Flush: how free blocks leave a tcache. A list holds blocks of one class and of any slabs, in the
 * order of their frees. Blocks of the home's slabs are marked in their slab's bitmap, from which
 * refills take them in address order. Blocks of other owners are taken by runs, consecutive blocks
 * of one unit; a batch joins the runs of one slab, until another slab needs its slot.
 *
 * A flush checks that each element is a block, that a block of the home is not free already, and
 * that a whole list has the counted number of blocks (TCACHE-4). */
#include "front/flush.h"

#include "base/knobs.h"
#include "front/find_free.h"
#include "front/quarantine.h"

enum {
    BATCHES_SLOTS = 32,
    /* Fewer blocks of other owners are not recycled: they may share cache lines with blocks in use
     * by other threads (docs/experiments/0014-blocks-of-others.md). */
    RECYCLE_LEAST = 4,
    /* In one outbox: each block may keep a slab from retiring, and one call flushes all. */
    OUTBOX_MOST_BLOCKS = 256,
    INSPECT_MOST_BLOCKS = 1 << 13, /* below 1 ms */
};

/* The batches of a flush, direct-mapped by slab. */
typedef struct batches {
    uint32_t used; /* bit per slot */
    unsigned sc;
    hak_slab_t *slab[BATCHES_SLOTS];
    hak_batch_t batch[BATCHES_SLOTS];
} batches_t;

/* Records of neighbouring units are 128 bytes apart, those of superslabs 8.1 KiB. */
static unsigned batches_slot(const hak_slab_t *slab) {
    uintptr_t key = (uintptr_t)slab / HAK_UNIT_RECORD_BYTES;
    return (unsigned)(key ^ key >> 5) % BATCHES_SLOTS;
}

static void batches_send(hak_tcache_t *tcache, batches_t *batches, unsigned slot) {
    hak_single_writer_add(&hak_bin_side(tcache, batches->sc)->counters.remote_out, 1);
    hak_remote_push(batches->slab[slot], &batches->batch[slot]);
    batches->used &= ~(1u << slot);
}

static void batches_add(hak_tcache_t *tcache, batches_t *batches, hak_slab_t *slab,
                        const hak_batch_t *run) {
    unsigned slot = batches_slot(slab);
    bool is_used = (batches->used >> slot & 1) != 0;
    if (is_used && batches->slab[slot] == slab) {
        hak_link_set(run->tail, batches->batch[slot].head);
        batches->batch[slot].head = run->head;
        batches->batch[slot].count += run->count;
        return;
    }
    if (is_used) {
        batches_send(tcache, batches, slot);
    }
    batches->slab[slot] = slab;
    batches->batch[slot] = *run;
    batches->used |= 1u << slot;
}

HAK_INLINE bool is_same_unit(const void *a, const void *b) {
    return ((uintptr_t)a ^ (uintptr_t)b) < HAK_UNIT_BYTES;
}

/* Takes the leading blocks of one unit, at most `most`; `next` is the block behind them. */
static hak_batch_t run_take(const hak_slab_t *slab, void *block, uint32_t most, void **next) {
    hak_batch_t run = {.head = block, .tail = block, .count = 0};
    /* address bits that the page map ignores */
    hak_require((size_t)((const char *)block - slab->base) >> 32 == 0, HAK_FATAL_CORRUPT_LINK,
                block);
    do {
        hak_slab_check_freed(slab, block);
        hak_check_mark(block);
        void *follower = hak_link_get(block);
        hak_require(follower != block, HAK_FATAL_DOUBLE_FREE, block); /* twice in a row */
        run.tail = block;
        run.count++;
        block = follower;
    } while (run.count < most && is_same_unit(run.tail, block));
    /* else the list is a cycle */
    hak_require(run.count <= hak_single_writer_load(&slab->carved), HAK_FATAL_DOUBLE_FREE, block);
    *next = block;
    return run;
}

/* The slab of a block in a list of class `sc`. `first` is for messages. */
HAK_INLINE hak_slab_t *list_slab(const void *block, unsigned sc, const void *first) {
    uintptr_t index = hak_pagemap_index(hak_pagemap_base(), block);
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    bool is_far = (uintptr_t)block >> 48 != 0; /* bits that the page map ignores */
    /* NULL: the list is too short, a block was freed twice; else a link was overwritten */
    hak_fatal_kind_t kind = block == NULL ? HAK_FATAL_DOUBLE_FREE : HAK_FATAL_CORRUPT_LINK;
    hak_require(!is_far && hak_slab_is_entry(entry) && hak_sc_of_entry(entry) == sc, kind, first);
    return hak_slab_in(hak_pagemap_superslab_at(index, block), block);
}

/* Takes the first run of a list of at most `most` blocks that begins with another owner's block, or
 * is empty. Returns the rest and the number of blocks taken. `first` is for messages. */
static HAK_NOINLINE hak_blocks_t flush_remote(hak_tcache_t *tcache, unsigned sc, batches_t *batches,
                                              void *block, uint32_t most, const void *first) {
    hak_slab_t *slab = list_slab(block, sc, first);
    void *next;
    hak_batch_t run = run_take(slab, block, most, &next);
    batches_add(tcache, batches, slab, &run);
    return (hak_blocks_t){.head = next, .count = run.count};
}

/* Marks neighbours together: a list of at most `most` blocks begins with block `index` of the
 * owner's slab and its neighbours, upwards or downwards, as the program freed them in address
 * order. Returns the rest of the list and the number of blocks marked. */
static HAK_NOINLINE hak_blocks_t flush_row(hak_owner_t *owner, hak_slab_t *slab, uint32_t index,
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
    hak_require(hak_slab_mark(slab, is_upward ? index + count - 1 : index, count),
                HAK_FATAL_DOUBLE_FREE, block);
    hak_slab_count_free(owner, slab, count, block);
    return (hak_blocks_t){.head = next, .count = count};
}

/* Marks the first block of a list in the owner's slab, or a row of neighbours. Fatal inside a
 * block. */
HAK_INLINE hak_blocks_t flush_own(hak_owner_t *owner, const hak_sc_info_t *info, hak_slab_t *slab,
                                  char *block, uint32_t most) {
    uint32_t index = hak_sc_index(info, (uint32_t)(block - slab->base));
    hak_require(index < slab->carved, HAK_FATAL_INTERIOR_FREE, block);
    char *next = hak_link_get(block);
    if (HAK_UNLIKELY(next == block - info->bytes || next == block + info->bytes)) {
        return flush_row(owner, slab, index, block, most);
    }
    hak_require(hak_slab_mark_one(slab, index), HAK_FATAL_DOUBLE_FREE, block);
    hak_link_set_mark(block, HAK_LINK_MARK);
    hak_slab_count_free(owner, slab, 1, block);
    return (hak_blocks_t){.head = next, .count = 1};
}

/* Marks the blocks of the held owner, if any, and batches the others. Returns the rest of the
 * list. */
static void *flush_each(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks, hak_owner_t *held,
                        batches_t *batches) {
    const hak_sc_info_t info = hak_sc_info[sc]; /* a copy in registers */
    uintptr_t base = hak_pagemap_base();
    uint32_t own = held != NULL ? hak_sc_entry(held->first_entry, sc) : UINT32_MAX; /* no owner's */
    char *block = blocks.head;
    uint32_t left = blocks.count;
    while (left != 0) {
        uintptr_t index = hak_pagemap_index(base, block);
        uint32_t entry = hak_pagemap_at(base, index);
        hak_blocks_t done; /* the rest of the list; the number of blocks done */
        /* the page map ignores the highest bits */
        if (HAK_LIKELY(((entry ^ own) | (uintptr_t)block >> 48) == 0)) {
            hak_slab_t *slab = hak_slab_in(hak_pagemap_superslab_at(index, block), block);
            done = flush_own(held, &info, slab, block, left);
        } else {
            done = flush_remote(tcache, sc, batches, block, left, blocks.head);
        }
        block = done.head;
        left -= done.count;
    }
    return block;
}

void *hak_tcache_flush_blocks(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks) {
    batches_t batches;
    batches.used = 0;
    batches.sc = sc;
    hak_owner_t *held = hak_owner_try_lock(tcache->home) ? tcache->home : NULL;
    void *rest = flush_each(tcache, sc, blocks, held, &batches);
    if (HAK_LIKELY(held != NULL)) {
        hak_owner_unlock(held);
        hak_wanted_serve();
    }
    while (batches.used != 0) {
        batches_send(tcache, &batches, hak_ctz(batches.used));
    }
    return rest;
}

void hak_tcache_flush_list(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks) {
    const void *rest =
        blocks.count != 0 ? hak_tcache_flush_blocks(tcache, sc, blocks) : blocks.head;
    hak_require(rest == NULL, HAK_FATAL_DOUBLE_FREE, rest);
}

/* --- at the end of the process --------------------------------------------------------------- */

/* Checks a list; returns what is left of the steps. A block that comes again was freed twice: each
 * is compared with one of those before it (Brent's search for a cycle). A list may be shorter than
 * it is counted, where a signal handler ends the process inside malloc or free. */
static uint32_t list_inspect(const void *head, unsigned sc, uint32_t steps) {
    const void *earlier = NULL;
    for (uint32_t i = 1; head != NULL && steps != 0; i++, steps--) {
        hak_require(head != earlier, HAK_FATAL_DOUBLE_FREE, head);
        earlier = (i & (i - 1)) == 0 ? head : earlier;
        hak_slab_check_freed(list_slab(head, sc, head), head);
        hak_check_mark(head);
        head = hak_link_get(head);
    }
    return steps;
}

void hak_tcache_inspect(hak_tcache_t *tcache) {
    uint32_t steps = INSPECT_MOST_BLOCKS;
    if (HAK_HARDEN) {
        hak_quarantine_inspect(tcache);
    }
    for (uint64_t left = tcache->begun; left != 0; left &= left - 1) {
        unsigned sc = hak_ctz(left);
        steps = list_inspect(tcache->bin[sc].head, sc, steps);
        steps = list_inspect(hak_bin_side(tcache, sc)->outbox.head, sc, steps);
    }
}

/* --- outbox ---------------------------------------------------------------------------------- */

int32_t hak_outbox_capacity(unsigned sc) {
    size_t blocks = hak_load_relaxed(&hak_knobs.outbox_bytes) / 4 / hak_sc_info[sc].bytes;
    return blocks == 0 ? 1 : blocks < OUTBOX_MOST_BLOCKS ? (int32_t)blocks : OUTBOX_MOST_BLOCKS;
}

static hak_blocks_t outbox_take(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    uint32_t bytes = hak_sc_info[sc].bytes;
    hak_blocks_t blocks = side->outbox;
    hak_store_hot(&side->outbox.head, NULL);
    side->outbox.count = 0;
    side->outbox_slots_left = hak_outbox_capacity(sc);
    tcache->outbox_bytes -= blocks.count * bytes;
    return blocks;
}

/* The checks that a free of another owner's block leaves out, as it reads no slab record. */
static void outbox_check(const hak_blocks_t *blocks, unsigned sc) {
    const void *block = blocks->head;
    for (uint32_t left = blocks->count; left != 0; left--) {
        hak_slab_check_freed(list_slab(block, sc, blocks->head), block);
        hak_check_mark(block);
        block = hak_link_get(block);
    }
    hak_require(block == NULL, HAK_FATAL_DOUBLE_FREE, block);
}

void hak_outbox_flush(hak_tcache_t *tcache) {
    for (uint64_t left = tcache->begun; tcache->outbox_bytes != 0 && left != 0; left &= left - 1) {
        unsigned sc = hak_ctz(left);
        hak_tcache_flush_list(tcache, sc, outbox_take(tcache, sc));
    }
}

void hak_outbox_shrink(hak_tcache_t *tcache, unsigned sc) {
    size_t bound = hak_load_relaxed(&hak_knobs.outbox_bytes);
    hak_tcache_flush_list(tcache, sc, outbox_take(tcache, sc));
    for (unsigned i = 0; i < HAK_SC_COUNT && tcache->outbox_bytes > bound / 2; i++) {
        sc = tcache->outbox_cursor;
        tcache->outbox_cursor = (uint8_t)((sc + 1) % HAK_SC_COUNT);
        if ((tcache->begun >> sc & 1) != 0) {
            hak_tcache_flush_list(tcache, sc, outbox_take(tcache, sc));
        }
    }
}

hak_blocks_t hak_outbox_recycle(hak_tcache_t *tcache, unsigned sc) {
    if (hak_bin_side(tcache, sc)->outbox.count < RECYCLE_LEAST) {
        return (hak_blocks_t){0};
    }
    hak_blocks_t blocks = outbox_take(tcache, sc);
    outbox_check(&blocks, sc);
    return blocks;
}
