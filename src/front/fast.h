/* SPDX-License-Identifier: MIT
 *
 * malloc and free, hit path: the file to read first, after base/words.h.
 *
 *   malloc(n)
 *     n > 2 KiB                                 -> hak_malloc_medium   bins up to 64 KiB, large
 *     the bin of table[n] is empty              -> hak_slow_malloc     no tcache yet, or refill
 *     its first block lacks the free marker     -> hak_slow_malloc     written to, or freed twice
 *     its second word is HAK_LINK_MARK          -> hak_slow_malloc     freed twice, unless the
 *                                                                      bitmap says no
 *     pop, and clear the marker
 *
 *   free(p)
 *     offset of p's bin = kind of p's entry in the page map
 *     p is no multiple of the bin's bytes       -> hak_slow_free       no start of a block; NULL,
 *                                                                      large, foreign, no tcache,
 *                                                                      first use of the class, ...
 *     its first word has the free marker        -> hak_slow_free       freed twice, unless a search
 *                                                                      says no
 *     the bin is full                           -> hak_slow_free       flush of the newest blocks
 *     push
 *
 * The upper-case helpers only shape the machine code (base/compiler.h): HAK_OPERANDS and
 * HAK_READ_AGAIN let x86-64 read from memory within an instruction, HAK_POINTER keeps one address
 * elsewhere, HAK_LIKELY lays out branches, HAK_PROBE is empty except in a test.
 *
 * A bin takes blocks of any owner's slabs: owners matter when it is flushed. Why the one compare is
 * enough (TCACHE-6): the kinds of all that no bin takes lead to words that are 0, and no address is
 * a multiple of 0 bytes. Before a thread has a tcache, its TLS word is 0 and the tcache is the zero
 * leaf of the page map: each bin is empty and takes nothing, so free never writes there.
 *
 * free finds a block that is freed twice while it has its marker, as far as a bounded search goes.
 * Others are found when the bin is flushed to the bitmaps, or when malloc hands the block out: of
 * two threads that freed a block, the second one to do so finds it.
 *
 * There is no counter, lock, atomic read-modify-write, option or debugging code here; HAK_HARDEN is
 * a constant of the build. */
#ifndef HAK_FRONT_FAST_H
#define HAK_FRONT_FAST_H

#include "front/free.h"
#include "front/malloc.h"
#include "front/quarantine.h"
#include "front/realloc.h"
#include "front/tcache.h"

/* --- where things are ------------------------------------------------------------------------- */

/* The thread's tcache; the empty one while it has none (MAP-4). */
HAK_INLINE hak_tcache_t *hak_tcache_self(uintptr_t pagemap_base) {
    return (hak_tcache_t *)(hak_tcache_offset + pagemap_base);
}

/* The same, off the hit path: begins the thread, if need be. NULL: see hak_life_thread_start. */
HAK_INLINE hak_tcache_t *hak_tcache_own(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    return HAK_LIKELY(!hak_tcache_is_empty(tcache)) ? tcache : hak_life_thread_start();
}

/* The bin at an offset in words (TCACHE-6). */
HAK_INLINE hak_bin_t *hak_bin_at(hak_tcache_t *tcache, int64_t bin_offset) {
    hak_bin_t *bin = (hak_bin_t *)((uint64_t *)tcache + bin_offset);
    HAK_POINTER(bin);
    return bin;
}

/* Offset of the bin for a size; size <= HAK_SC_SMALL_SIZE. The table lies just before the base
 * (MAP-5). */
HAK_INLINE int64_t hak_bin_offset_of(uintptr_t pagemap_base, size_t size) {
    const uint8_t *table = (const uint8_t *)pagemap_base - HAK_PAGEMAP_TABLE_BYTES;
    HAK_POINTER(table);
    int64_t bin_offset = hak_load_hot(&table[size]);
    HAK_OPERANDS_FIRST(bin_offset); /* loads it first: base + TLS word is one instruction then */
    return bin_offset;
}

/* Whether an offset is a multiple of the bytes whose hak_sc_factor this is. */
HAK_INLINE bool hak_is_multiple(uint32_t offset, uint32_t *factor) {
    uint32_t product = offset * *factor;
    HAK_READ_AGAIN(*factor);
    return product < *factor;
}

/* --- pop and push ----------------------------------------------------------------------------- */

/* NULL: the bin is empty, or its first block is not to be handed out. */
HAK_INLINE void *hak_bin_pop(hak_tcache_t *tcache, int64_t bin_offset) {
    hak_bin_t *bin = hak_bin_at(tcache, bin_offset);
    void *block = bin->head;
    if (HAK_UNLIKELY(block == NULL)) {
        return NULL;
    }
    uintptr_t word = hak_link_word(block);
    if (HAK_UNLIKELY(!hak_link_has_free_marker(word) || hak_link_has_mark(block))) {
        return NULL;
    }
    HAK_PROBE();
    HAK_OPERANDS(bin_offset);
    bin = hak_bin_at(tcache, bin_offset);
    hak_store_hot(&bin->head, hak_link_next(word));
    HAK_OPERANDS(bin_offset);
    bin = hak_bin_at(tcache, bin_offset);
    bin->slots_left++;
    hak_link_clear(block);
    if (HAK_HARDEN) {
        HAK_FETCH(hak_link_next(word));
        block = hak_harden_hand_out(block, hak_sc_info_of_kind((uint64_t)bin_offset)->bytes);
    }
    return block;
}

/* false: the bin is full, and slots_left is negative until hak_slow_free. */
HAK_INLINE bool hak_bin_push(hak_bin_t *bin, void *block) {
    if (HAK_UNLIKELY(--bin->slots_left < 0)) {
        return false;
    }
    hak_link_set(block, bin->head);
    hak_store_hot(&bin->head, block);
    return true;
}

/* --- malloc and free -------------------------------------------------------------------------- */

/* size <= HAK_SC_SMALL_SIZE */
HAK_INLINE void *hak_fast_pop(size_t size) {
    uintptr_t base = hak_pagemap_base();
    int64_t bin_offset = hak_bin_offset_of(base, size);
    return hak_bin_pop(hak_tcache_self(base), bin_offset);
}

HAK_INLINE void *hak_fast_malloc(size_t size) {
    if (HAK_UNLIKELY(size > HAK_SC_SMALL_SIZE)) {
        return hak_malloc_medium(size);
    }
    void *block = hak_fast_pop(size);
    return HAK_LIKELY(block != NULL) ? block : hak_slow_malloc(size);
}

/* `index` is the place of the block's entry in the page map. */
HAK_INLINE void hak_fast_free_kind(uintptr_t base, uintptr_t index, int64_t kind, void *block) {
    HAK_FETCH(block); /* it is read before it is written: another CPU's would come in two steps */
    hak_tcache_t *tcache = hak_tcache_self(base);
    hak_bin_t *bin = hak_bin_at(tcache, kind);
    if (HAK_HARDEN) {
        hak_quarantine_free(block, tcache, index);
    } else if (HAK_UNLIKELY(!hak_is_multiple((uint16_t)(uintptr_t)block, &bin->size_reciprocal) ||
                            hak_link_has_free_marker(hak_link_word(block)) ||
                            !hak_bin_push(bin, block))) {
        hak_slow_free(block, tcache, index);
    }
}

HAK_INLINE void hak_fast_free(void *block) {
    uintptr_t base = hak_pagemap_base();
    uintptr_t index = hak_pagemap_index(base, block);
    hak_fast_free_kind(base, index, hak_pagemap_kind_at(base, index), block);
}

/* --- the same for other functions of the family ----------------------------------------------- */

HAK_INLINE void *hak_fast_pop_class(hak_tcache_t *tcache, unsigned sc) {
    return hak_bin_pop(tcache, hak_sc_kind(sc));
}

/* The same when the caller says the size that was asked for: nearly always it is the class's. */
HAK_INLINE void hak_fast_free_sized(void *block, size_t align, size_t size) {
    uintptr_t base = hak_pagemap_base();
    uintptr_t index = hak_pagemap_index(base, block);
    int64_t kind = hak_pagemap_kind_at(base, index);
    if (HAK_LIKELY(size <= HAK_SC_SMALL_SIZE && align <= HAK_BLOCK_ALIGN &&
                   kind == hak_bin_offset_of(base, size))) {
        hak_fast_free_kind(base, index, kind, block);
    } else {
        hak_slow_free_sized(block, align, size, index);
    }
}

/* --- realloc, hit path ------------------------------------------------------------------------ */

/* Whether realloc leaves a block of a slab where it is: the new size fits, and fills more than half
 * of it or the block is small. False for NULL, size 0, addresses inside a block, blocks that look
 * free and those of slabs that are apart. */
HAK_INLINE bool hak_realloc_in_place(const void *block, size_t size) {
    uintptr_t base = hak_pagemap_base();
    uintptr_t index = hak_pagemap_index(base, block);
    uint32_t entry = hak_pagemap_at(base, index);
    if (HAK_UNLIKELY(!hak_slab_is_ordinary(entry))) {
        return false;
    }
    const hak_sc_info_t *info = hak_sc_info_of_kind(entry & HAK_KIND_MASK);
    size_t least = info->keep_from;
    return size - least <= hak_sc_usable(info) - least && hak_slab_is_start(index, info, block) &&
           hak_tag_fits(block) && !hak_link_has_free_marker(hak_link_word(block));
}

#endif
