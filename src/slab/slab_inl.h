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
HAK_INLINE hak_slab_t *hak_slab_of(const void *address) {
    hak_superslab_t *superslab = hak_pagemap_superslab(address);
    unsigned unit = (unsigned)((uintptr_t)address >> HAK_UNIT_LOG2) & (HAK_SUPERSLAB_UNITS - 1);
    hak_slab_t *record = (hak_slab_t *)&superslab->unit[unit];
    return (hak_slab_t *)&superslab->unit[unit - record->back];
}

/* Whether the address is the start of a block that was carved. */
HAK_INLINE bool hak_slab_is_block(const hak_slab_t *slab, const void *address) {
    uint32_t offset = (uint32_t)((uintptr_t)address - (uintptr_t)slab->base);
    return hak_sc_is_multiple(slab->sc, offset) &&
           offset < hak_owner_load(&slab->carved) * slab->block_bytes;
}

#endif
