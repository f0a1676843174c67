/* SPDX-License-Identifier: MIT
 *
 * From a block to its slab: what the slow paths of free need. */
#ifndef HAK_SLAB_SLAB_INL_H
#define HAK_SLAB_SLAB_INL_H

#include "slab/harden.h"
#include "slab/slab.h"

/* Whether the entry is that of a slab: an owner's tag and a size class. */
HAK_INLINE bool hak_slab_is_entry(uint32_t entry) {
    return entry > HAK_KIND_MASK && (entry & HAK_KIND_MASK) < HAK_SC_COUNT;
}

/* The slab of a block; `address` lies in a unit whose entry is a size class. */
HAK_INLINE hak_slab_t *hak_slab_in(hak_superslab_t *superslab, const void *address) {
    unsigned unit = (unsigned)((uintptr_t)address >> HAK_UNIT_LOG2) & (HAK_SUPERSLAB_UNITS - 1);
    hak_slab_t *record = (hak_slab_t *)&superslab->unit[unit];
    return (hak_slab_t *)&superslab->unit[unit - record->back];
}

HAK_INLINE hak_slab_t *hak_slab_of(const void *address) {
    return hak_slab_in(hak_pagemap_superslab(address), address);
}

/* Whether the address is the start of a block that was carved. */
HAK_INLINE bool hak_slab_is_block(const hak_slab_t *slab, const void *address) {
    uint32_t offset = (uint32_t)((uintptr_t)address - (uintptr_t)slab->base);
    return hak_sc_is_multiple(slab->reciprocal, offset) &&
           offset < hak_owner_load(&slab->carved) * slab->block_bytes;
}

/* Puts blocks of one of the owner's slabs back onto the slab's list; may retire the slab. More than
 * were ever handed out: fatal, one of them was freed twice. */
HAK_INLINE void hak_slab_give_back(hak_owner_t *owner, hak_slab_t *slab,
                                   const hak_batch_t *blocks) {
    uint32_t free_count = slab->free_count + blocks->count;
    HAK_ASSERT(hak_load_relaxed(&slab->owner) == owner, "SLAB-6");
    if (HAK_UNLIKELY(free_count > slab->carved)) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, blocks->head, NULL);
    }
    hak_link_set(blocks->tail, slab->free);
    slab->free = blocks->head;
    hak_owner_store(&slab->free_count, free_count);
    if (HAK_UNLIKELY(slab->state == HAK_SLAB_FULL || free_count == slab->carved)) {
        hak_slab_note_freed(owner, slab);
    }
}

#endif
