/* SPDX-License-Identifier: MIT
 *
 * From a block to its slab: what the slow paths of free need. */
#ifndef HAK_SLAB_SLAB_INL_H
#define HAK_SLAB_SLAB_INL_H

#include "slab/harden.h"
#include "slab/slab.h"

/* Whether the entry is that of a slab: an owner's tag and a size class. */
HAK_INLINE bool hak_slab_is_entry(uint32_t entry) {
    return entry > HAK_KIND_MASK && (entry & HAK_KIND_MASK) < HAK_SC_PLACES;
}

/* The record of the unit the address lies in; of a slab's units only the first one's is the slab's,
 * the others have nothing but `back`. */
HAK_INLINE hak_unit_record_t *hak_slab_record(hak_superslab_t *superslab, const void *address) {
    uint32_t unit = (uint32_t)(uintptr_t)address >> HAK_UNIT_LOG2;
    return &superslab->unit[unit % HAK_SUPERSLAB_UNITS];
}

/* The slab of a block; `address` lies in a unit whose entry is a size class. */
HAK_INLINE hak_slab_t *hak_slab_in(hak_superslab_t *superslab, const void *address) {
    hak_unit_record_t *record = hak_slab_record(superslab, address);
    return (hak_slab_t *)(record - ((hak_slab_t *)record)->back);
}

HAK_INLINE hak_slab_t *hak_slab_of(const void *address) {
    return hak_slab_in(hak_pagemap_superslab(address), address);
}

/* Whether the address is the start of a block that was carved. */
HAK_INLINE bool hak_slab_is_block(const hak_slab_t *slab, const void *address) {
    uint32_t offset = (uint32_t)((uintptr_t)address - (uintptr_t)slab->base);
    return hak_sc_index(&hak_sc_info[slab->sc], offset) < hak_owner_load(&slab->carved);
}

/* Fatal unless the address, which was freed, is the start of a block of the slab. */
HAK_INLINE void hak_slab_check_freed(const hak_slab_t *slab, const void *address) {
    if (HAK_UNLIKELY(!hak_slab_is_block(slab, address))) {
        hak_fatal(HAK_FATAL_INTERIOR_FREE, address, NULL);
    }
}

/* Whether the address is where a block of a slab starts, carved or not; `leaf` has the entry of its
 * unit, `info` is that of the entry's class. Looks at the record of that unit alone, not at the
 * head of the slab. */
HAK_INLINE bool hak_slab_is_start(const hak_pagemap_leaf_t *leaf, const hak_sc_info_t *info,
                                  const void *address) {
    uint32_t index = (uint32_t)(uintptr_t)address >> HAK_SUPERSLAB_LOG2;
    hak_superslab_t *superslab = hak_load_hot(&leaf->superslab[index]);
    const hak_slab_t *record = (const hak_slab_t *)hak_slab_record(superslab, address);
    uint32_t inside = (uint32_t)(uintptr_t)address % HAK_UNIT_BYTES;
    uint32_t offset = inside + (uint32_t)record->back * HAK_UNIT_BYTES;
    return hak_sc_index(info, offset) < info->blocks;
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
