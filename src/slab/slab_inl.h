/* SPDX-License-Identifier: MIT
 *
 * From a block to its slab, for the slow paths of free. */
#ifndef HAK_SLAB_SLAB_INL_H
#define HAK_SLAB_SLAB_INL_H

#include "os/cpu.h"
#include "slab/harden.h"
#include "slab/slab.h"

/* Whether the entry is an ordinary slab's: an owner id and a size class. */
HAK_INLINE bool hak_slab_is_ordinary(uint32_t entry) {
    return (uint8_t)(entry - HAK_KIND_PER_CLASS) < HAK_SC_PLACES;
}

/* Whether the entry is that of a slab with purged pages or of sampled blocks: it names no owner. */
HAK_INLINE bool hak_slab_is_ownerless(uint32_t entry) {
    return (entry & HAK_KIND_MASK) >= HAK_KIND_PURGED;
}

/* Whether the entry is a slab's. */
HAK_INLINE bool hak_slab_is_entry(uint32_t entry) {
    return hak_slab_is_ordinary(entry) || hak_slab_is_ownerless(entry);
}

/* The partition of an ordinary slab's entry, or of an owner's first_entry. Owners never exchange
 * slabs with those of another. */
HAK_INLINE hak_partition_t hak_slab_partition(uint32_t entry) {
    bool is_plain = HAK_HARDEN && (entry & HAK_SLAB_PLAIN_ID) != 0;
    return is_plain ? HAK_PARTITION_PLAIN : HAK_PARTITION_ANY;
}

HAK_INLINE unsigned hak_slab_unit(const void *address) {
    return (uint32_t)(uintptr_t)address / HAK_UNIT_BYTES % HAK_SUPERSLAB_UNITS;
}

/* The slab of a block of a class whose slabs have one unit. */
HAK_INLINE hak_slab_t *hak_slab_in_unit(hak_superslab_t *superslab, const void *address) {
    uint32_t place = (uint32_t)(uintptr_t)address / (HAK_UNIT_BYTES / HAK_UNIT_RECORD_BYTES);
    place &= (HAK_SUPERSLAB_UNITS - 1) * HAK_UNIT_RECORD_BYTES;
    HAK_OPAQUE(superslab);
    return (hak_slab_t *)((char *)superslab->unit + place);
}

/* The slab of a block; `address` lies in a unit whose entry is a size class. */
HAK_INLINE hak_slab_t *hak_slab_in(hak_superslab_t *superslab, const void *address) {
    unsigned unit = hak_slab_unit(address);
    return (hak_slab_t *)&superslab
        ->unit[unit - hak_single_writer_load(&superslab->units_to_first[unit])];
}

HAK_INLINE hak_slab_t *hak_slab_of(const void *address) {
    return hak_slab_in(hak_pagemap_superslab(address), address);
}

/* The index of the block that starts at the address; capacity or more: none does. */
HAK_INLINE uint32_t hak_slab_index(const hak_slab_t *slab, const void *address) {
    return hak_sc_index(&hak_sc_info[slab->sc],
                        (uint32_t)((uintptr_t)address - (uintptr_t)slab->base));
}

/* Whether a carved block starts at the address. */
HAK_INLINE bool hak_slab_is_block(const hak_slab_t *slab, const void *address) {
    return hak_slab_index(slab, address) < hak_single_writer_load(&slab->carved);
}

/* Fatal unless a carved block of the slab starts at the freed address. */
HAK_INLINE void hak_slab_check_freed(const hak_slab_t *slab, const void *address) {
    hak_require(hak_slab_is_block(slab, address), HAK_FATAL_INTERIOR_FREE, address);
}

/* Whether a block, carved or not, starts at the address. `index` is the place of its unit's entry,
 * `info` the entry's class. Reads nothing that the slab's owner writes to. */
HAK_INLINE bool hak_slab_is_start(uintptr_t index, const hak_sc_info_t *info, const void *address) {
    uint32_t inside = (uint32_t)(uintptr_t)address % HAK_UNIT_BYTES;
    const hak_superslab_t *superslab = hak_pagemap_superslab_at(index, address);
    uint32_t back = hak_single_writer_load(&superslab->units_to_first[hak_slab_unit(address)]);
    return hak_sc_index(info, inside + back * HAK_UNIT_BYTES) < info->blocks;
}

/* Fatal unless a block starts at the freed address. Slabs of one unit need no superslab record. */
HAK_INLINE void hak_slab_check_start(uintptr_t index, uint32_t entry, const void *address) {
    const hak_sc_info_t *info = hak_sc_info_of_entry(entry);
    hak_require(info->units == 1 ? hak_sc_index(info, (uint16_t)(uintptr_t)address) < info->blocks
                                 : hak_slab_is_start(index, info, address),
                HAK_FATAL_INTERIOR_FREE, address);
}

/* Whether the entry is that of slabs of sampled blocks (SLAB-10). */
HAK_INLINE bool hak_slab_entry_is_sampled(uint32_t entry) {
    return (entry & HAK_KIND_MASK) == HAK_KIND_SAMPLED;
}

/* The bits, in the first word, of the row of `*count` blocks from `*index` on; takes them from it.
 */
HAK_INLINE uint64_t hak_row_take_word(uint32_t *index, uint32_t *count) {
    uint32_t inside = *index % 64, step = (uint32_t)hak_least(*count, 64 - inside);
    *index += step;
    *count -= step;
    return hak_mask(step) << inside;
}

/* Marks a row of blocks as free. false: one was marked already. */
HAK_INLINE bool hak_slab_mark(const hak_slab_t *slab, uint32_t index, uint32_t count) {
    do {
        uint64_t *word = &slab->bits[index / 64], mask = hak_row_take_word(&index, &count);
        if (HAK_UNLIKELY((*word & mask) != 0)) {
            return false;
        }
        *word |= mask;
    } while (count != 0);
    return true;
}

/* Marks one block. false: it was marked already. */
HAK_INLINE bool hak_slab_mark_one(const hak_slab_t *slab, uint32_t index) {
    uint64_t *word = &slab->bits[index / 64];
    uint64_t bits = *word;
    bool was_set = hak_cpu_set_bit(&bits, index);
    *word = bits;
    return !was_set;
}

/* The state can change now. Fatal if more blocks are free than were carved: one was freed twice. */
HAK_INLINE void slab_pass_edge(hak_owner_t *owner, hak_slab_t *slab, const void *block) {
    hak_require(slab->free_count <= slab->carved, HAK_FATAL_DOUBLE_FREE, block);
    hak_slab_note_freed(owner, slab);
}

/* `count` blocks became free in a slab of the owner; may retire it. `block` is one of them, for the
 * message. Only the first free blocks and the last change the state (SLAB-3, SLAB-4). */
HAK_INLINE void hak_slab_count_free(hak_owner_t *owner, hak_slab_t *slab, uint32_t count,
                                    const void *block) {
    uint32_t before = slab->free_count;
    HAK_ASSERT(hak_load_relaxed(&slab->owner) == owner, "SLAB-6");
    hak_single_writer_store(&slab->free_count, before + count);
    if (HAK_UNLIKELY(before == 0 || before + count >= slab->carved)) {
        slab_pass_edge(owner, slab, block);
    }
}

/* The same for one block, with one comparison. */
HAK_INLINE void hak_slab_count_one(hak_owner_t *owner, hak_slab_t *slab, const void *block) {
    uint32_t before = slab->free_count;
    HAK_ASSERT(hak_load_relaxed(&slab->owner) == owner, "SLAB-6");
    hak_single_writer_store(&slab->free_count, before + 1);
    if (HAK_UNLIKELY(before - 1 >= slab->carved_less_2)) {
        slab_pass_edge(owner, slab, block);
    }
}

#endif
