/* SPDX-License-Identifier: MIT
 *
 * malloc and free, hit path. The file to read first.
 *
 *   malloc(n)
 *     n > 2 KiB              -> hak_slow_malloc_medium  (class by clz, bins up to 64 KiB, large)
 *     sc = table[n]
 *     bin empty              -> hak_slow_malloc         (no tcache yet; refill: outbox,
 *                                                        remote, own slab's list, fresh blocks,
 * partial, adopt, new slab; NULL) pop
 *
 *   free(p)
 *     entry = page map[p]; sc = entry ^ own tag
 *     sc is no class         -> hak_slow_free_foreign   (NULL, remote, large, foreign, no tcache:
 *                                                        all five fail this one compare)
 *     bin full               -> hak_slow_free           (the newest go back to their slabs)
 *     push
 *
 * Why one compare is enough: tags are multiples of 256 and at least 256, classes are below 44. Only
 * an entry with our own tag leaves a value below 44 behind. A thread without a tcache reads tag 0
 * and room 0 from the zero leaf (MAP-4): whatever passes the first test fails the second.
 *
 * No counter, no lock, no atomic read-modify-write, no configuration, no debugging here. */
#ifndef HAK_FRONT_FAST_H
#define HAK_FRONT_FAST_H

#include "front/slow.h"
#include "front/tcache.h"

/* fast path: begin */
/* size <= HAK_SC_SMALL_BYTES; the table lies just before the base (MAP-5) */
HAK_INLINE size_t hak_fast_sc(uintptr_t pagemap_base, size_t size) {
    const uint8_t *table = (const uint8_t *)pagemap_base - HAK_PAGEMAP_TABLE_BYTES;
    return table[(size + HAK_BLOCK_ALIGN - 1) / HAK_BLOCK_ALIGN];
}

/* NULL: the bin is empty. */
HAK_INLINE void *hak_fast_pop_class(hak_tcache_t *tcache, size_t sc) {
    hak_bin_t *bin = hak_tcache_bin(tcache, sc);
    void *block = bin->head;
    int64_t room = bin->room;
    if (HAK_LIKELY(block != NULL)) {
        HAK_PROBE();
        bin->head = hak_link_get(block);
        bin->room = room + 1;
    }
    return block;
}

/* size <= HAK_SC_SMALL_BYTES */
HAK_INLINE void *hak_fast_pop(size_t size) {
    uintptr_t base = hak_pagemap_base();
    return hak_fast_pop_class(hak_tcache_self(base), hak_fast_sc(base, size));
}

/* The bin takes the block, unless it is full. */
HAK_INLINE bool hak_fast_push(hak_tcache_t *tcache, size_t sc, void *block) {
    hak_bin_t *bin = hak_tcache_bin(tcache, sc);
    void *head = bin->head;
    uint64_t room = (uint64_t)bin->room;
    if (HAK_UNLIKELY(__builtin_sub_overflow(room, 1, &room))) {
        return false;
    }
    hak_link_set(block, head);
    bin->head = block;
    bin->room = (int64_t)room;
    return true;
}

HAK_INLINE void *hak_fast_malloc(size_t size) {
    if (HAK_UNLIKELY(size > HAK_SC_SMALL_BYTES)) {
        return hak_slow_malloc_medium(size);
    }
    void *block = hak_fast_pop(size);
    return HAK_LIKELY(block != NULL) ? block : hak_slow_malloc(size);
}

HAK_INLINE void hak_fast_free(void *block) {
    uintptr_t base = hak_pagemap_base();
    hak_pagemap_leaf_t *leaf = hak_pagemap_leaf(base, block);
    hak_tcache_t *tcache = hak_tcache_self(base);
    uint32_t sc = hak_pagemap_leaf_get(leaf, block) ^ tcache->tag;
    if (HAK_UNLIKELY(sc >= HAK_SC_COUNT)) {
        hak_slow_free_foreign(block, tcache, sc, leaf);
    } else if (HAK_UNLIKELY(!hak_fast_push(tcache, sc, block))) {
        hak_slow_free(block);
    }
}
/* fast path: end */

/* false: not a block of this thread's slabs, by its entry, or its bin is full. */
HAK_INLINE bool hak_fast_push_own(uintptr_t base, uint32_t entry, void *block) {
    hak_tcache_t *tcache = hak_tcache_self(base);
    uint32_t sc = entry ^ tcache->tag;
    return HAK_LIKELY(sc < HAK_SC_COUNT) && hak_fast_push(tcache, sc, block);
}

/* --- realloc, hit path ------------------------------------------------------------------------ */

/* Whether realloc leaves a block of a slab where it is: the new size fits, and fills more than half
 * of it or the block is small. NULL, size 0 and addresses inside a block say no. */
HAK_INLINE bool hak_fast_stays(const void *block, size_t size) {
    uintptr_t base = hak_pagemap_base();
    uint32_t entry = hak_pagemap_get(base, block);
    if (HAK_UNLIKELY(!hak_slab_is_entry(entry))) {
        return false;
    }
    unsigned sc = entry & HAK_KIND_MASK;
    size_t least = hak_sc_info[sc].keep_from;
    return size - least <= hak_sc_info[sc].bytes - least && hak_slab_is_start(base, sc, block);
}

/* --- malloc and free with a call site, which only slow paths look at ---------------------------
 */

HAK_INLINE void *hak_fast_malloc_at(size_t size, const void *site) {
    void *block = HAK_LIKELY(size <= HAK_SC_SMALL_BYTES) ? hak_fast_pop(size) : NULL;
    return HAK_LIKELY(block != NULL) ? block : hak_slow_malloc_at(size, site);
}

HAK_INLINE void hak_fast_free_at(void *block, const void *site) {
    uintptr_t base = hak_pagemap_base();
    if (HAK_UNLIKELY(!hak_fast_push_own(base, hak_pagemap_get(base, block), block))) {
        hak_slow_free_at(block, site);
    }
}

#endif
