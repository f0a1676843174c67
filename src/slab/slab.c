/* SPDX-License-Identifier: MIT
 *
 * Life of a slab: create, refill from, take blocks back, retire. The caller holds the owner
 * (SLAB-6), except for hak_slab_link. */
#include "slab/slab.h"

#include "slab/remote.h"
#include "slab/slab_inl.h"

hak_secret_t hak_secret;

enum {
    SLAB_CARVE_BYTES = 4096, /* bytes carved at a time, one OS page */
    SLAB_DRAIN_BUDGET = 32,  /* slabs drained per refill: bounds the work under one call */
    SLAB_DENSE_LEAST = 4,
    SLAB_PACK_BUDGET = 64, /* slabs looked at for a packed block */
};

void hak_slab_set_entry(const hak_slab_t *slab) {
    uint32_t first_entry = slab->has_purged_pages ? (uint32_t)HAK_KIND_PURGED
                                                  : hak_load_relaxed(&slab->owner)->first_entry;
    hak_pagemap_set_units(slab->base, slab->units, hak_sc_entry(first_entry, slab->sc));
}

/* The purged pages are about to be written to. */
static void slab_forget_purged(hak_slab_t *slab) {
    if (HAK_UNLIKELY(slab->purged_bytes != 0)) {
        hak_span_note_filled(slab->purged_bytes);
        slab->purged_bytes = 0;
    }
}

static void slab_leave_partial(hak_owner_t *owner, hak_slab_t *slab) {
    hak_list_remove(&slab->link);
    hak_single_writer_add(&owner->partial_count[slab->sc], -1u);
    owner->purge_pass.regretted += slab->purged_bytes != 0;
    slab_forget_purged(slab);
    slab->looked = 0;
}

hak_slab_t *hak_slab_take_partial(hak_owner_t *owner, unsigned sc) {
    if (hak_list_is_empty(&owner->partial[sc])) {
        return NULL;
    }
    hak_slab_t *slab = HAK_CONTAINER_OF(owner->partial[sc].next, hak_slab_t, link);
    slab_leave_partial(owner, slab);
    return slab;
}

/* Cache lines of a bitmap with a bit for every block. */
static unsigned slab_bits_lines(unsigned sc) {
    return (hak_sc_info[sc].blocks + HAK_LINE_BYTES * 8 - 1) / (HAK_LINE_BYTES * 8);
}

/* Slabs that come and go shall take no lock of all threads: an owner keeps some bitmaps, linked by
 * their first words (docs/experiments/0137-units-without-a-lock.md). */
enum { BITS_KEPT = 8 }; /* of each length */

static uint64_t *bits_take(hak_owner_t *owner, unsigned lines) {
    uint64_t *bits = owner->bits[lines - 1];
    if (bits == NULL) {
        return hak_meta_take(lines);
    }
    owner->bits[lines - 1] = (uint64_t *)(uintptr_t)bits[0];
    owner->bits_count[lines - 1]--;
    bits[0] = 0;
    return bits;
}

static void bits_give(hak_owner_t *owner, uint64_t *bits, unsigned lines) {
    if (owner->bits_count[lines - 1] == BITS_KEPT) {
        hak_meta_give(bits, lines);
        return;
    }
    bits[0] = (uintptr_t)owner->bits[lines - 1];
    owner->bits[lines - 1] = bits;
    owner->bits_count[lines - 1]++;
}

static void slab_set_carved(hak_slab_t *slab, uint32_t carved) {
    hak_single_writer_store(&slab->carved, carved);
    hak_single_writer_store(&slab->carved_shared, carved);
    slab->carved_less_2 = (uint32_t)hak_excess(carved, 2);
}

/* A new slab may lie in a huge page if its owner has some slabs of the class already, and the
 * blocks are not much larger than OS pages, of which programs leave few untouched, or are written
 * to throughout. The slab that is full now tells, if it began as small OS pages. */
static hak_dense_t *slab_use(hak_owner_t *owner, unsigned sc) {
    const hak_slab_t *full = owner->current[sc];
    if (owner->slab_count[sc] < SLAB_DENSE_LEAST) {
        return HAK_SPAN_SPARSE;
    }
    if (sc < HAK_SLAB_SAMPLED_FROM) {
        return HAK_SPAN_DENSE;
    }
    hak_dense_t *dense = &owner->dense[sc - HAK_SLAB_SAMPLED_FROM];
    if (full != NULL && full->is_zero) {
        hak_dense_sample(dense, full->base, (size_t)full->capacity * full->block_bytes);
    }
    return dense;
}

static hak_slab_t *slab_create(hak_owner_t *owner, unsigned sc) {
    const hak_sc_info_t *info = &hak_sc_info[sc];
    hak_dense_t *use = slab_use(owner, sc);
    hak_span_t span;
    uint64_t *bits = bits_take(owner, slab_bits_lines(sc));
    if (bits == NULL) {
        return NULL;
    }
    hak_partition_t partition = hak_slab_partition(owner->first_entry);
    if (!hak_span_alloc(partition, info->units, HAK_UNIT_BYTES, use, &span)) {
        bits_give(owner, bits, slab_bits_lines(sc));
        return NULL;
    }
    hak_slab_t *slab = (hak_slab_t *)&span.superslab->unit[span.unit];
    slab->bits = bits;
    hak_single_writer_store(&slab->free_count, 0);
    slab_set_carved(slab, 0);
    slab->base = span.base;
    slab->is_zero = span.is_zero;
    hak_list_init(&slab->link);
    slab->looked = 0;
    slab->purged_bytes = 0;
    slab->has_purged_pages = false;
    slab->block_bytes = info->bytes;
    slab->capacity = info->blocks;
    slab->sc = (uint8_t)sc;
    slab->units = (uint8_t)span.count;
    slab->unit = (uint8_t)span.unit;
    hak_store_relaxed(&slab->owner, owner);
    for (unsigned i = 0; i < span.count; i++) {
        hak_single_writer_store(&span.superslab->units_to_first[span.unit + i], (uint8_t)i);
    }
    hak_slab_set_entry(slab);
    hak_single_writer_add(&owner->counters[sc].slab_create, 1);
    hak_single_writer_add(&owner->slab_count[sc], 1);
    return slab;
}

static void slab_retire(hak_owner_t *owner, hak_slab_t *slab) {
    HAK_ASSERT(slab->free_count == slab->carved, "SLAB-3");
    size_t touched = (size_t)slab->carved * slab->block_bytes;
    unsigned touched_units = (unsigned)((touched + HAK_UNIT_BYTES - 1) / HAK_UNIT_BYTES);
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    HAK_ASSERT(hak_remote_waiting(superslab, slab->unit) == 0, "SLAB-3");
    for (uint32_t i = 0; i < slab->carved; i += 64) { /* every block is marked */
        slab->bits[i / 64] = 0;
    }
    bits_give(owner, slab->bits, slab_bits_lines(slab->sc));
    slab_forget_purged(slab);
    hak_list_remove(&slab->link);
    hak_single_writer_add(&owner->partial_count[slab->sc],
                          slab->state == HAK_SLAB_PARTIAL ? -1u : 0);
    hak_pagemap_set_units(slab->base, slab->units, 0);
    hak_single_writer_add(&owner->slab_count[slab->sc], -1u);
    hak_span_free(superslab, slab->unit, slab->units, touched_units);
}

/* Lists a slab that has blocks to give and is not current. */
static void slab_full_to_partial(hak_owner_t *owner, hak_slab_t *slab) {
    slab->state = HAK_SLAB_PARTIAL;
    hak_list_push_front(&owner->partial[slab->sc], &slab->link);
    hak_single_writer_add(&owner->partial_count[slab->sc], 1);
}

void hak_slab_note_freed(hak_owner_t *owner, hak_slab_t *slab) {
    if (slab->state == HAK_SLAB_CURRENT) {
        return;
    }
    if (slab->free_count == slab->carved) {
        slab_retire(owner, slab);
    } else if (slab->state == HAK_SLAB_FULL) {
        slab_full_to_partial(owner, slab);
    }
}

/* The next few fresh blocks. */
static hak_blocks_t slab_carve(hak_slab_t *slab, uint32_t want) {
    uint32_t bytes = slab->block_bytes;
    uint32_t left = (uint32_t)slab->capacity - slab->carved;
    uint32_t count = bytes >= SLAB_CARVE_BYTES ? 1 : SLAB_CARVE_BYTES / bytes;
    count = want < count ? want : count;
    count = left < count ? left : count;
    char *block = slab->base + (size_t)slab->carved * bytes;
    if (HAK_HARDEN && !slab->is_zero) {
        hak_span_touch(block); /* before the first write */
        for (uint32_t i = 0; i < count; i++) {
            char *fresh = block + (size_t)i * bytes;
            hak_harden_wipe(fresh, bytes, hak_harden_last_tag(fresh, bytes));
        }
    }
    slab_set_carved(slab, slab->carved + count);
    return (hak_blocks_t){.head = block, .count = count, .stride = bytes};
}

/* Links `count` blocks that lie side by side; returns the last. */
static char *slab_link_row(char *block, uint32_t bytes, uint32_t count) {
    const char *last = block + (size_t)(count - 1) * bytes;
    uintptr_t word = hak_link_plain(block + bytes);
    for (; block != last; block += bytes) {
        hak_link_begin_plain(block, word);
        word += (uintptr_t)bytes << HAK_LINK_MARKER_BITS; /* of the next block but one */
        HAK_OPAQUE(word);
    }
    return block;
}

void hak_slab_link(const hak_blocks_t *blocks) {
    hak_span_touch(blocks->head);
    char *last = slab_link_row(blocks->head, blocks->stride, blocks->count);
    hak_link_begin(last, NULL);
}

/* Marked blocks, at least one and at most `want`, in address order. There may be more marks than
 * free_count says, of messages under way: which of the blocks are taken makes no difference. */
static hak_blocks_t slab_take_bits(hak_slab_t *slab, uint32_t want) {
    uint32_t count = slab->free_count;
    uint32_t bytes = slab->block_bytes;
    uint32_t taken = count < want ? count : want;
    uint64_t *word = slab->bits;
    char *base = slab->base;
    uintptr_t first_link[2];
    void *tail = first_link;
    for (uint32_t left = taken; left != 0;) {
        HAK_ASSERT(word < slab->bits + (slab->carved + 63) / 64, "SLAB-1");
        uint64_t bits = *word;
        while (bits != 0 && left != 0) {
            unsigned first = hak_ctz(bits);
            unsigned row = bits == ~0ull ? 64 : hak_ctz(~(bits >> first));
            row = row > left ? left : row;
            char *block = base + (size_t)first * bytes;
            hak_link_begin(tail, block);
            tail = slab_link_row(block, bytes, row);
            bits &= ~(hak_mask(row) << first);
            left -= row;
        }
        *word++ = bits;
        base += (size_t)bytes * 64;
    }
    hak_link_begin(tail, NULL);
    hak_single_writer_store(&slab->free_count, count - taken);
    return (hak_blocks_t){.head = hak_link_get(first_link), .count = taken};
}

/* After the last counted block was taken: the slab has no purged pages, unless one of them belongs
 * to a message under way. */
static HAK_COLD void slab_end_purged(hak_slab_t *slab) {
    uint64_t marks = 0;
    for (uint32_t i = 0; i < slab->carved; i += 64) {
        marks |= slab->bits[i / 64];
    }
    if (marks == 0) {
        slab->has_purged_pages = false;
        hak_slab_set_entry(slab);
    }
}

/* At most `want` blocks of the slab; count == 0: it has none. */
static hak_blocks_t slab_take(hak_slab_t *slab, uint32_t want) {
    if (slab->free_count != 0) {
        hak_blocks_t blocks = slab_take_bits(slab, want);
        if (HAK_UNLIKELY(slab->has_purged_pages) && slab->free_count == 0) {
            slab_end_purged(slab);
        }
        return blocks;
    }
    return slab->carved < slab->capacity ? slab_carve(slab, want) : (hak_blocks_t){0};
}

/* Another slab becomes current, in order of cheapness. NULL when memory is out. */
static hak_slab_t *slab_find(hak_owner_t *owner, unsigned sc) {
    hak_slab_t *slab = hak_slab_take_partial(owner, sc);
    slab = slab != NULL ? slab : hak_slab_adopt(owner, sc, HAK_ADOPT_SPARE);
    slab = slab != NULL ? slab : slab_create(owner, sc);
    return HAK_LIKELY(slab != NULL) ? slab : hak_slab_adopt(owner, sc, HAK_ADOPT_LAST_RESORT);
}

void hak_slab_receive(hak_owner_t *owner) {
    if (hak_remote_is_pending(owner)) {
        hak_remote_drain(owner, SLAB_DRAIN_BUDGET);
    }
}

hak_blocks_t hak_slab_refill(hak_owner_t *owner, unsigned sc, uint32_t want) {
    hak_blocks_t blocks = {0};
    hak_slab_receive(owner);
    hak_slab_t *slab = owner->current[sc];
    if (slab != NULL) {
        blocks = slab_take(slab, want);
        if (blocks.count != 0) {
            return blocks;
        }
        slab->state = HAK_SLAB_FULL;
    }
    slab = slab_find(owner, sc);
    owner->current[sc] = slab;
    if (slab != NULL) {
        slab->state = HAK_SLAB_CURRENT;
        blocks = slab_take(slab, want);
        HAK_ASSERT(blocks.count != 0, "SLAB-4");
    }
    return blocks;
}

/* Those below the rank go to the list's end. NULL: none, or the current slab's blocks are better.
 */
static hak_slab_t *slab_find_packed(hak_owner_t *owner, unsigned sc, uint32_t below) {
    hak_slab_t *best = NULL;
    uint32_t best_rank = 0, left = owner->partial_count[sc];
    left = left < SLAB_PACK_BUDGET ? left : SLAB_PACK_BUDGET;
    for (; left != 0 && (best == NULL || best_rank < below); left--) {
        hak_slab_t *slab = hak_slab_in_turn(owner, sc);
        uint32_t rank = hak_slab_rank(slab);
        best = best == NULL || rank > best_rank ? slab : best;
        best_rank = rank > best_rank ? rank : best_rank;
    }
    hak_slab_t *other = best_rank < below ? hak_slab_adopt(owner, sc, HAK_ADOPT_ANY) : NULL;
    if (other != NULL) { /* else blocks would move for ever between slabs that are to be emptied */
        slab_full_to_partial(owner, other);
        best = best == NULL || hak_slab_rank(other) > best_rank ? other : best;
        best_rank = hak_slab_rank(best);
    }
    const hak_slab_t *current = owner->current[sc];
    bool is_better = current != NULL && current->free_count != 0 && best_rank < below &&
                     hak_slab_rank(current) > best_rank;
    return is_better ? NULL : best;
}

hak_blocks_t hak_slab_take_packed(hak_owner_t *owner, unsigned sc, uint32_t below) {
    hak_slab_receive(owner);
    hak_slab_t *slab = slab_find_packed(owner, sc, below);
    if (slab == NULL) {
        return hak_slab_refill(owner, sc, 1);
    }
    slab_leave_partial(owner, slab);
    hak_blocks_t blocks = slab_take(slab, 1);
    slab->state = HAK_SLAB_FULL;
    if (slab->free_count != 0 || slab->carved < slab->capacity) {
        slab_full_to_partial(owner, slab); /* in front: the next one is of this slab, too */
    }
    return blocks;
}

void hak_slab_release_current(hak_owner_t *owner) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        hak_slab_t *slab = owner->current[sc];
        if (slab == NULL) {
            continue;
        }
        owner->current[sc] = NULL;
        slab->state = HAK_SLAB_FULL;
        if (slab->free_count != 0 || slab->carved < slab->capacity) {
            hak_slab_note_freed(owner, slab);
        }
    }
}

void hak_slab_change_owner(hak_slab_t *slab, hak_owner_t *owner) {
    hak_single_writer_add(&hak_load_relaxed(&slab->owner)->slab_count[slab->sc], -1u);
    hak_single_writer_add(&owner->slab_count[slab->sc], 1);
    hak_store_release(&slab->owner, owner); /* pairs REMOTE-3 */
    hak_slab_set_entry(slab);
}

/* --- hardened builds -------------------------------------------------------------------------- */

typedef uint64_t HAK_MAY_ALIAS slab_pair_t __attribute__((vector_size(16)));

/* Sizes above 128 bytes are multiples of 32. */
void *hak_harden_hand_out_whole(void *block, size_t bytes, unsigned last) {
    uint64_t *mark = (uint64_t *)block + 1;
    bool was_cleared = bytes > 2 * HAK_FILL_PART_BYTES && *mark == hak_harden_mark(block);
    hak_require(was_cleared, HAK_FATAL_CORRUPT_LINK, block);
    *mark = 0;
    const slab_pair_t *pair = block, *end = pair + bytes / sizeof *pair;
    slab_pair_t sum = {0, 0};
    for (; pair < end; pair += 2) {
        sum |= pair[0] | pair[1];
    }
    hak_require((sum[0] | sum[1]) == 0, HAK_FATAL_CORRUPT_LINK, block);
    *hak_harden_canary_at(block, bytes) = hak_harden_canary(block);
    return hak_tags_are_on() ? hak_tag_give(block, bytes, last) : block;
}
