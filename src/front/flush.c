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

/* Sends all, the marks of one slab with one number. */
static HAK_NOINLINE void messages_send(hak_tcache_t *tcache, const messages_t *messages) {
    uint32_t count = 0;
    hak_slab_t **sending = hak_remote_begin(&tcache->sending);
    for (uint64_t left = messages->used; left != 0;) {
        const hak_marks_t *marks = &messages->slot[hak_ctz(left)];
        left &= left - 1;
        count += marks->count;
        hak_remote_note(sending, (hak_slab_t *)&marks->superslab->unit[marks->unit]);
        hak_remote_mark(marks);
        if (left == 0 || !is_same_slab(marks, &messages->slot[hak_ctz(left)])) {
            hak_remote_tell(marks, count);
            hak_single_writer_add(&hak_bin_side(tcache, messages->sc)->counters.remote_out, 1);
            count = 0;
        }
    }
    hak_remote_end(sending);
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
        hak_single_writer_add(&hak_bin_side(tcache, messages->sc)->counters.remote_out, 1);
    }
    messages->used |= bit;
    *slot = *marks;
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

HAK_INLINE bool is_neighbour(const void *a, const void *b, uintptr_t bytes) {
    uintptr_t distance = (uintptr_t)a - (uintptr_t)b; /* of both directions: the square */
    return distance * distance == bytes * bytes;
}

/* Takes a row off a list of at most `most` blocks: block `*index` of a slab and its neighbours, of
 * which it is followed, as a program frees them in address order. Their links differ by their
 * distance: one comparison checks marker and neighbour. *index becomes that of the lowest. */
HAK_INLINE hak_blocks_t list_row(char *block, uint32_t *index, uint32_t bytes, uint32_t carved,
                                 uint32_t most, bool is_foreign) {
    bool is_upward = (char *)hak_link_get(block) > block;
    ptrdiff_t step = is_upward ? (ptrdiff_t)bytes : -(ptrdiff_t)bytes;
    uint32_t count = (uint32_t)hak_least(most, is_upward ? carved - *index : *index + 1);
    uint32_t left = count;
    for (uintptr_t word = hak_link_plain(block + step);; block += step) {
        if (is_foreign) {
            hak_check_mark(block); /* else the bitmap says whether it was free */
        }
        if (--left == 0 || hak_link_word(block) != word) {
            break;
        }
        hak_link_set_mark(block, HAK_LINK_MARK);
        word += (uintptr_t)step << HAK_LINK_MARKER_BITS;
    }
    count -= left;
    *index -= is_upward ? 0 : count - 1;
    hak_link_set_mark(block, HAK_LINK_MARK);
    return (hak_blocks_t){.head = hak_link_get(block), .count = count};
}

/* Adds marks of the same slab; those of another word are added to the messages before. */
HAK_INLINE void marks_add(hak_tcache_t *tcache, messages_t *messages, hak_marks_t *marks,
                          uint32_t word, uint64_t bits, uint32_t count) {
    if (word != marks->word && marks->count != 0) {
        messages_add(tcache, messages, marks);
        *marks = (hak_marks_t){.superslab = marks->superslab, .unit = marks->unit};
    }
    hak_require((marks->bits & bits) == 0, HAK_FATAL_DOUBLE_FREE,
                hak_remote_block(marks, marks->bits & bits));
    marks->word = (uint8_t)word;
    marks->bits |= bits;
    marks->count += count;
}

/* The same for a row. */
static HAK_NOINLINE hak_blocks_t marks_add_row(hak_tcache_t *tcache, messages_t *messages,
                                               hak_marks_t *marks, void *block, uint32_t index,
                                               uint32_t most) {
    const hak_slab_t *slab = (const hak_slab_t *)&marks->superslab->unit[marks->unit];
    uint32_t carved = hak_single_writer_load(&slab->carved_shared);
    uint32_t bytes = hak_sc_info[messages->sc].bytes;
    hak_blocks_t row = list_row(block, &index, bytes, carved, most, true);
    for (uint32_t left = row.count; left != 0;) {
        uint32_t word = index / 64, before = left;
        uint64_t bits = hak_row_take_word(&index, &left);
        marks_add(tcache, messages, marks, word, bits, before - left);
    }
    return row;
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
    uint32_t carved = hak_single_writer_load(&slab->carved_shared), left = most;
    hak_marks_t marks = {.superslab = superslab, .unit = (uint8_t)unit};
    uintptr_t before;
    do {
        HAK_KNOWN(block != NULL); /* no slab lies at address 0 */
        uint32_t index = hak_sc_index(info, (uint32_t)((uintptr_t)block - base));
        hak_require(index < carved, HAK_FATAL_INTERIOR_FREE, block);
        hak_blocks_t done = {.head = hak_link_get(block), .count = 1};
        if (HAK_LIKELY(!is_neighbour(done.head, block, info->bytes))) {
            hak_require(done.head != block, HAK_FATAL_DOUBLE_FREE, block); /* twice in a row */
            hak_check_mark(block);
            hak_link_set_mark(block, HAK_LINK_MARK);
            marks_add(tcache, messages, &marks, index / 64, 1ull << index % 64, 1);
        } else {
            done = marks_add_row(tcache, messages, &marks, block, index, left);
        }
        before = (uintptr_t)block;
        block = done.head;
        left -= done.count;
    } while (left != 0 && (before ^ (uintptr_t)block) < HAK_UNIT_BYTES); /* of the same unit */
    messages_add(tcache, messages, &marks);
    return (hak_blocks_t){.head = block, .count = most - left};
}

/* Marks a row of the owner's slab. */
static HAK_NOINLINE hak_blocks_t flush_row(hak_owner_t *owner, hak_slab_t *slab, uint32_t index,
                                           char *block, uint32_t most) {
    hak_blocks_t row = list_row(block, &index, slab->block_bytes, slab->carved, most, false);
    hak_require(hak_slab_mark(slab, index, row.count), HAK_FATAL_DOUBLE_FREE, block);
    hak_slab_count_free(owner, slab, row.count, block);
    return row;
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
            hak_superslab_t *superslab = hak_load_hot(hak_pagemap_superslab_entry(base, at, block));
            hak_slab_t *slab =
                is_single ? hak_slab_in_unit(superslab, block) : hak_slab_in(superslab, block);
            uint32_t offset =
                (uint32_t)(is_single ? (uint16_t)(uintptr_t)block : block - slab->base);
            uint32_t index = hak_sc_index(&info, offset);
            hak_require(index < slab->carved, HAK_FATAL_INTERIOR_FREE, block);
            char *next = hak_link_get(block);
            if (HAK_LIKELY(!is_neighbour(next, block, stride))) {
                hak_require(hak_slab_mark_one(slab, index), HAK_FATAL_DOUBLE_FREE, block);
                hak_link_set_mark(block, HAK_LINK_MARK);
                hak_slab_count_one(held, slab, block);
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
    tcache->given_bytes += (uint64_t)blocks.count * hak_sc_info[sc].bytes;
    hak_owner_t *held = hak_owner_try_lock(tcache->home) ? tcache->home : NULL;
    void *rest = HAK_LIKELY(hak_sc_info[sc].units == 1)
                     ? flush_each(tcache, sc, blocks, held, &messages, true)
                     : flush_each_multiple(tcache, sc, blocks, held, &messages);
    if (HAK_LIKELY(held != NULL)) {
        hak_owner_unlock(held);
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
        hak_slab_check_freed(hak_slab_in(list_superslab(head, sc, head), head), head);
        hak_check_mark(head);
        head = hak_link_get(head);
    }
}

void hak_tcache_inspect(hak_tcache_t *tcache) {
    for (hak_tcache_t *t = tcache, *next; t != NULL && tcache->is_attached; t = next) {
        uint32_t steps = INSPECT_MOST_BLOCKS;
        next = hak_tcache_behind(t, tcache);
        if (hak_quarantine_of(t) != NULL) {
            hak_quarantine_inspect(t);
        }
        for (uint64_t left = t->begun; left != 0; left &= left - 1) {
            list_inspect(t->bin[hak_ctz(left)].head, hak_ctz(left), &steps);
        }
    }
}
