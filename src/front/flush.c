/* SPDX-License-Identifier: MIT
 *
 * Flush: how free blocks leave a tcache. A list holds blocks of one class and of any slabs, in the
 * order of their frees. Blocks of the home's slabs are marked in their slab's bitmap, from which
 * refills take them in address order. Blocks of other owners are taken by runs, consecutive blocks
 * of one unit, and marked in the remote bitmap of their slab: all blocks of one word at once, until
 * another word needs its slot.
 *
 * A flush checks that each element is a block, that a block of the home is not free already, and
 * that a whole list has the counted number of blocks (TCACHE-2). */
#include "front/flush.h"

#include "base/knobs.h"
#include "front/find_free.h"
#include "front/quarantine.h"

enum { MESSAGES_SLOTS = 64, INSPECT_MOST_BLOCKS = 1 << 13 /* below 1 ms */ };

/* The remote marks of a flush, one word of a bitmap each. Direct-mapped: words of a slab have
 * successive slots, so that their number is told once. */
typedef struct messages {
    uint64_t used; /* bit per slot */
    unsigned sc;
    hak_marks_t slot[MESSAGES_SLOTS];
} messages_t;

static hak_marks_t *messages_slot(messages_t *messages, const hak_marks_t *marks) {
    uintptr_t superslab = (uintptr_t)marks->superslab / HAK_LINE_BYTES;
    uint32_t slab = (uint32_t)(superslab ^ superslab >> 6) + marks->unit;
    unsigned words_log2 = hak_log2((hak_sc_info[messages->sc].blocks - 1u) | 32) - 5; /* or more */
    uint32_t slot = (slab << words_log2) + marks->word;
    return &messages->slot[slot % MESSAGES_SLOTS];
}

HAK_INLINE bool is_same_slab(const hak_marks_t *a, const hak_marks_t *b) {
    return a->superslab == b->superslab && a->unit == b->unit;
}

static void messages_count(hak_tcache_t *tcache, const messages_t *messages) {
    hak_single_writer_add(&hak_bin_side(tcache, messages->sc)->counters.remote_out, 1);
}

/* Sends all, the marks of one slab with one number. */
static HAK_NOINLINE void messages_send(hak_tcache_t *tcache, const messages_t *messages) {
    uint32_t count = 0;
    hak_set_unlocked_update(true);
    for (uint64_t left = messages->used; left != 0;) {
        const hak_marks_t *marks = &messages->slot[hak_ctz(left)];
        left &= left - 1;
        count += marks->count;
        hak_remote_note(&tcache->sending, (hak_slab_t *)&marks->superslab->unit[marks->unit]);
        hak_remote_mark(marks);
        if (left == 0 || !is_same_slab(marks, &messages->slot[hak_ctz(left)])) {
            hak_remote_tell(marks, count);
            messages_count(tcache, messages);
            count = 0;
        }
    }
    hak_remote_note(&tcache->sending, NULL);
    hak_set_unlocked_update(false);
}

/* Adds marks to those of their word; another word that had its slot is sent. */
static void messages_add(hak_tcache_t *tcache, messages_t *messages, const hak_marks_t *marks) {
    hak_marks_t *slot = messages_slot(messages, marks);
    uint64_t bit = 1ull << (slot - messages->slot);
    if ((messages->used & bit) != 0) {
        if (is_same_slab(slot, marks) && slot->word == marks->word) {
            uint64_t twice = slot->bits & marks->bits;
            if (HAK_UNLIKELY(twice != 0)) {
                hak_fatal(HAK_FATAL_DOUBLE_FREE, hak_remote_block(marks, twice), NULL);
            }
            slot->bits |= marks->bits;
            slot->count += marks->count;
            return;
        }
        hak_remote_send(slot, &tcache->sending);
        messages_count(tcache, messages);
    }
    messages->used |= bit;
    *slot = *marks;
}

HAK_INLINE bool is_same_unit(const void *a, const void *b) {
    return ((uintptr_t)a ^ (uintptr_t)b) < HAK_UNIT_BYTES;
}

/* The superslab of a block in a list of class `sc`. `first` is for messages. */
HAK_INLINE hak_superslab_t *list_superslab(const void *block, unsigned sc, const void *first) {
    uintptr_t index = hak_pagemap_index(hak_pagemap_base(), block);
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    bool is_far = (uintptr_t)block >> 48 != 0; /* bits that the page map ignores */
    /* NULL: the list is too short, a block was freed twice; else a link was overwritten */
    hak_fatal_kind_t kind = block == NULL ? HAK_FATAL_DOUBLE_FREE : HAK_FATAL_CORRUPT_LINK;
    hak_require(!is_far && hak_slab_is_entry(entry) && hak_sc_of_entry(entry) == sc, kind, first);
    return hak_pagemap_superslab_at(index, block);
}

HAK_INLINE hak_slab_t *list_slab(const void *block, unsigned sc, const void *first) {
    return hak_slab_in(list_superslab(block, sc, first), block);
}

/* Marks the leading blocks of one unit for their owner, at most `most` of a list of another owner's
 * blocks. Returns the rest and the number of blocks taken. `first` is for messages. Reads nothing
 * that the owner writes to often. */
static HAK_NOINLINE hak_blocks_t flush_remote(hak_tcache_t *tcache, messages_t *messages,
                                              void *block, uint32_t most, const void *first) {
    const hak_sc_info_t *info = &hak_sc_info[messages->sc];
    hak_superslab_t *superslab = list_superslab(block, messages->sc, first);
    const hak_slab_t *slab = hak_slab_in(superslab, block);
    unsigned unit = (unsigned)((const hak_unit_record_t *)slab - superslab->unit);
    uintptr_t base = (uintptr_t)block & -(uintptr_t)HAK_UNIT_BYTES;
    base -= (uintptr_t)(hak_slab_unit(block) - unit) * HAK_UNIT_BYTES;
    uint32_t carved = hak_single_writer_load(&slab->carved_shared), count = 0;
    hak_marks_t marks = {.superslab = superslab, .unit = (uint8_t)unit};
    const char *last;
    do {
        HAK_KNOWN(block != NULL); /* no slab lies at address 0 */
        uint32_t index = hak_sc_index(info, (uint32_t)((uintptr_t)block - base));
        uint64_t bit = 1ull << index % 64;
        hak_require(index < carved, HAK_FATAL_INTERIOR_FREE, block);
        hak_check_mark(block);
        if (index / 64 != marks.word && marks.count != 0) {
            messages_add(tcache, messages, &marks);
            marks.bits = marks.count = 0;
        }
        hak_require((marks.bits & bit) == 0, HAK_FATAL_DOUBLE_FREE, block);
        marks.word = (uint8_t)(index / 64);
        marks.bits |= bit;
        marks.count++;
        last = block;
        block = hak_link_get(block);
        hak_link_set_mark((void *)(uintptr_t)last, HAK_LINK_MARK);
        hak_require(block != last, HAK_FATAL_DOUBLE_FREE, block); /* twice in a row */
        count++;
    } while (count < most && is_same_unit(last, block));
    messages_add(tcache, messages, &marks);
    return (hak_blocks_t){.head = block, .count = count};
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
    while (next == neighbour) {
        char *member = next;
        HAK_OPAQUE(member); /* two branches, not one of both conditions */
        if (count == most) {
            break;
        }
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

/* Marks one block of the owner's slab. */
HAK_INLINE void flush_single(hak_owner_t *owner, hak_slab_t *slab, uint32_t index, void *block) {
    hak_require(hak_slab_mark_one(slab, index), HAK_FATAL_DOUBLE_FREE, block);
    hak_link_set_mark(block, HAK_LINK_MARK);
    hak_slab_count_one(owner, slab, block);
}

/* Marks the blocks of the held owner, if any, and collects the others. Returns the rest of the
 * list. `is_single`: slabs of the class have one unit, so that a block's address says where its
 * slab's record and base are. */
HAK_INLINE void *flush_each(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks,
                            hak_owner_t *held, messages_t *messages, bool is_single) {
    const hak_sc_info_t info = hak_sc_info[sc]; /* a copy in registers */
    const uintptr_t stride = info.bytes;
    uintptr_t base = hak_pagemap_base();
    uint32_t own = held != NULL ? hak_sc_entry(held->first_entry, sc) : UINT32_MAX; /* no owner's */
    char *block = blocks.head;
    for (uint32_t left = blocks.count; left != 0;) {
        hak_blocks_t done; /* the rest of the list; the number of blocks done */
        uintptr_t at = hak_pagemap_index(base, block);
        if (HAK_LIKELY(hak_pagemap_at(base, at) == own)) {
            HAK_KNOWN(block != NULL); /* no slab lies at address 0 */
            /* the owner's lock orders what the superslabs of its slabs hold */
            hak_superslab_t *superslab = hak_load_hot(hak_pagemap_superslab_place(base, at, block));
            hak_slab_t *slab =
                is_single ? hak_slab_in_unit(superslab, block) : hak_slab_in(superslab, block);
            uint32_t offset =
                (uint32_t)(is_single ? (uint16_t)(uintptr_t)block : block - slab->base);
            uint32_t index = hak_sc_index(&info, offset);
            hak_require(index < slab->carved, HAK_FATAL_INTERIOR_FREE, block);
            char *next = hak_link_get(block);
            uintptr_t distance = (uintptr_t)next - (uintptr_t)block;
            if (HAK_LIKELY(distance * distance != stride * stride)) { /* no neighbour */
                flush_single(held, slab, index, block);
                block = next;
                left--;
                continue;
            }
            done = flush_row(held, slab, index, block, left);
        } else {
            done = flush_remote(tcache, messages, block, left, blocks.head);
        }
        block = done.head;
        left -= done.count;
    }
    return block;
}

static HAK_COLD void *flush_each_multiple(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks,
                                          hak_owner_t *held, messages_t *messages) {
    return flush_each(tcache, sc, blocks, held, messages, false);
}

void *hak_tcache_flush_blocks(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks) {
    messages_t messages;
    messages.used = 0;
    messages.sc = sc;
    hak_owner_t *held = hak_owner_try_lock(tcache->home) ? tcache->home : NULL;
    void *rest = HAK_LIKELY(hak_sc_info[sc].units == 1)
                     ? flush_each(tcache, sc, blocks, held, &messages, true)
                     : flush_each_multiple(tcache, sc, blocks, held, &messages);
    if (HAK_LIKELY(held != NULL)) {
        hak_owner_unlock(held);
        hak_wanted_serve();
    }
    if (messages.used != 0) {
        messages_send(tcache, &messages);
    }
    return rest;
}

void hak_tcache_flush_list(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks) {
    const void *rest =
        blocks.count != 0 ? hak_tcache_flush_blocks(tcache, sc, blocks) : blocks.head;
    hak_require(rest == NULL, HAK_FATAL_DOUBLE_FREE, rest);
}

/* --- at the end of the process --------------------------------------------------------------- */

/* Checks a list, until the steps are over. A block that comes again was freed twice: each is
 * compared with one of those before it (Brent's search for a cycle). A list may be shorter than it
 * is counted, where a signal handler ends the process inside malloc or free. */
static void list_inspect(const void *head, unsigned sc, uint32_t *steps) {
    const void *earlier = NULL;
    for (uint32_t i = 1; head != NULL && *steps != 0; i++, --*steps) {
        hak_require(head != earlier, HAK_FATAL_DOUBLE_FREE, head);
        earlier = (i & (i - 1)) == 0 ? head : earlier;
        hak_slab_check_freed(list_slab(head, sc, head), head);
        hak_check_mark(head);
        head = hak_link_get(head);
    }
}

static void tcache_inspect(hak_tcache_t *tcache) {
    uint32_t steps = INSPECT_MOST_BLOCKS;
    if (HAK_HARDEN) {
        hak_quarantine_inspect(tcache);
    }
    for (uint64_t left = tcache->begun; left != 0; left &= left - 1) {
        unsigned sc = hak_ctz(left);
        list_inspect(tcache->bin[sc].head, sc, &steps);
    }
}

void hak_tcache_inspect(hak_tcache_t *tcache) {
    tcache_inspect(tcache);
    if (HAK_HARDEN && tcache->second != NULL) {
        tcache_inspect(tcache->second);
    }
}
