/* SPDX-License-Identifier: MIT
 *
 * malloc and free, hit path: the file to read first, after base/words.h.
 *
 *   malloc(n)
 *     n > 2 KiB                  -> hak_malloc_medium      class by clz, bins up to 64 KiB, large
 *     bin at table[n] is empty   -> hak_slow_malloc        no tcache yet, or refill
 *     its first block is not marked as free, or lies in a bitmap, too: written to, or freed twice
 *                                -> hak_slow_malloc
 *     pop, and clear the mark
 *
 *   free(p)
 *     offset of p's bin from the end of the bins = page map[p] - own_entry_end
 *     not in [-100, -1]          -> hak_slow_free          NULL, remote, large, foreign, no tcache
 *     not the start of a block   -> hak_slow_free          or in a slab of several units
 *     just freed, or bin full    -> hak_slow_free          fatal; or the newest blocks are flushed
 *     push
 *
 * TCACHE-6 says why one compare excludes five cases. free must not write to the empty tcache.
 * There is no counter, lock, atomic read-modify-write, option or debugging code here. */
#ifndef HAK_FRONT_FAST_H
#define HAK_FRONT_FAST_H

#include "front/slow.h"
#include "front/tcache.h"

/* fast path: begin */
/* Where the bin for a size is; size <= HAK_SC_SMALL_SIZE. The table lies just before the base
 * (MAP-5). */
HAK_INLINE int64_t hak_bin_offset_of(uintptr_t pagemap_base, size_t size) {
    const uint8_t *table = (const uint8_t *)pagemap_base - HAK_PAGEMAP_TABLE_BYTES;
    if (!HAK_MEMORY_OPERANDS) {
        HAK_OPAQUE(table); /* one subtraction, and an address of two registers */
    }
    return table[size];
}

/* NULL: the bin is empty, or its first block is not to be handed out. */
HAK_INLINE void *hak_fast_pop_at(hak_tcache_t *tcache, int64_t bin_offset) {
    HAK_NOT_RETURNED(tcache);
    hak_bin_t *bin = hak_bin_at(tcache, 0, &bin_offset);
    void *block = bin->head;
    int32_t slots_left = bin->slots_left;
    HAK_RETURNED(block);
    if (HAK_UNLIKELY(block == NULL)) {
        return NULL;
    }
    uintptr_t word = hak_link_word(block);
    if (HAK_UNLIKELY(!hak_link_is_tagged(word) || hak_link_has_mark(block))) {
        return NULL;
    }
    HAK_PROBE();
    if (HAK_MEMORY_OPERANDS) {
        hak_store_hot(&hak_bin_at(tcache, 0, &bin_offset)->head, hak_link_next(word));
        hak_bin_at(tcache, 0, &bin_offset)->slots_left++;
    } else {
        hak_store_hot(&bin->head, hak_link_next(word));
        bin->slots_left = slots_left + 1;
    }
    hak_link_clear(block);
    if (HAK_HARDEN) {
        block = hak_harden_hand_out(block, hak_sc_info_of_entry((uint32_t)bin_offset)->bytes);
        HAK_FETCH(hak_link_next(word));
    }
    return block;
}

HAK_INLINE void *hak_fast_pop_class(hak_tcache_t *tcache, unsigned sc) {
    return hak_fast_pop_at(tcache, (int64_t)sc * HAK_KIND_PER_CLASS);
}

/* size <= HAK_SC_SMALL_SIZE */
HAK_INLINE void *hak_fast_pop(size_t size) {
    uintptr_t base = hak_pagemap_base();
    return hak_fast_pop_at(hak_tcache_self(base), hak_bin_offset_of(base, size));
}

/* The bin takes the block, unless that was freed just now, or the bin is full: its slots_left may
 * be -1 then, which hak_slow_free puts right. */
HAK_INLINE bool hak_bin_push(hak_bin_t *bin, void *block) {
    void *head = bin->head;
    if (HAK_UNLIKELY(head == block || hak_count_down(&bin->slots_left))) {
        return false;
    }
    hak_link_set(block, head);
    hak_store_hot(&bin->head, block);
    return true;
}

HAK_INLINE void *hak_fast_malloc(size_t size) {
    if (HAK_UNLIKELY(size > HAK_SC_SMALL_SIZE)) {
        return hak_malloc_medium(size);
    }
    void *block = hak_fast_pop(size);
    return HAK_LIKELY(block != NULL) ? block : hak_slow_malloc(size);
}

/* `index` is where the block's entry is in the page map. */
HAK_INLINE void hak_fast_free_entry(uintptr_t base, uintptr_t index, int64_t entry, void *block) {
    hak_tcache_t *tcache = hak_tcache_self(base);
    int64_t bin_offset_from_end = entry - tcache->own_entry_end;
    if (HAK_HARDEN) {
        hak_quarantine_free(block, tcache, bin_offset_from_end, index);
        return;
    }
    hak_bin_t *bin = hak_bin_from_end(tcache, bin_offset_from_end);
    if (HAK_UNLIKELY(!hak_offset_is_own(bin_offset_from_end) ||
                     !hak_is_multiple((uint16_t)(uintptr_t)block, &bin->size_reciprocal) ||
                     !hak_bin_push(bin, block))) {
        hak_slow_free(block, tcache, bin_offset_from_end, index);
    }
}

HAK_INLINE void hak_fast_free(void *block) {
    uintptr_t base = hak_pagemap_base();
    uintptr_t index = hak_pagemap_index(base, block);
    int64_t entry = hak_entry_signed(hak_pagemap_at(base, index));
    hak_fast_free_entry(base, index, entry, block);
}
/* fast path: end */

/* The same when the caller says what he asked for: nearly always it is the class's. */
HAK_INLINE void hak_fast_free_sized(void *block, size_t align, size_t size) {
    uintptr_t base = hak_pagemap_base();
    uintptr_t index = hak_pagemap_index(base, block);
    int64_t entry = hak_entry_signed(hak_pagemap_at(base, index));
    if (HAK_LIKELY(size <= HAK_SC_SMALL_SIZE && align <= HAK_BLOCK_ALIGN &&
                   (entry & HAK_KIND_MASK) == hak_bin_offset_of(base, size))) {
        hak_fast_free_entry(base, index, entry, block);
    } else {
        hak_slow_free_sized(block, align, size, index, entry);
    }
}

/* --- realloc, hit path ------------------------------------------------------------------------ */

/* Whether realloc leaves a block of a slab where it is: the new size fits, and fills more than half
 * of it or the block is small. NULL, size 0, addresses inside a block and blocks
 * that look free say no. */
HAK_INLINE bool hak_realloc_in_place(const void *block, size_t size) {
    uintptr_t base = hak_pagemap_base();
    uintptr_t index = hak_pagemap_index(base, block);
    uint32_t entry = hak_pagemap_at(base, index);
    if (HAK_UNLIKELY(!hak_slab_is_entry(entry))) {
        return false;
    }
    const hak_sc_info_t *info = hak_sc_info_of_entry(entry);
    size_t least = info->keep_from;
    return size - least <= hak_sc_usable(info) - least && hak_slab_is_start(index, info, block) &&
           hak_tag_fits(block) && !hak_link_looks_free(hak_link_word(block));
}

#endif
