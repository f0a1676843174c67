/* SPDX-License-Identifier: MIT
 *
 * Address -> entry of its 64 KiB unit.
 *
 *   address   63      48 47          32 31           16 15            0
 *             |  ignored |  root index  |  leaf index   |  inside unit |
 *
 *   entry     31                              8 7                 0
 *             |  owner id, or huge record idx  | class*2 + 2, kind |
 *
 * Invariants:
 *   MAP-1  A unit without a part of a live block reads 0, but for the ends of vacant ranges
 *          (large/huge_record.h), an owner's empty current slab (SLAB-3), guards (large/guarded.c,
 *          guard/) and size-0 places. An address never mapped reads 0.
 *   MAP-2  All units of a slab carry the same entry: owner id << 8 | size class * 2 + 2. While it
 *          has purged pages, or if it is of sampled blocks (SLAB-9, SLAB-10), the low byte is the
 *          kind for that, and the next one has what the low byte would have.
 *   MAP-3  The root holds distances from the shared zero leaf; 0 is that leaf itself, which is
 *          never written. So a look-up needs no test for an absent leaf, and works before any
 *          start-up code. Distances are counted in entries: added to the index of an entry in its
 *          leaf, they give its index from the zero leaf.
 *   MAP-4  The zero leaf lies at offset 0 and doubles as the empty tcache (front/tcache.h): all
 *          bins empty, no class begun: a thread whose TLS word is still 0 takes the cold exits.
 *   MAP-5  Everything the hit paths read lies relative to the zero leaf's address, which they keep
 *          in one register: the size-class table before it, the tcache, leaves and root after.
 *   MAP-6  The entry of a unit outside superslabs changes only under HAK_LOCK_HUGE, or under
 *          HAK_LOCK_GUARD, the superslab of an address only under HAK_LOCK_SPAN. So a holder of all
 *          three may purge an OS page of a leaf that reads as zero and maps no superslab.
 *   MAP-7  Before a part of a leaf is written to, `hak_pagemap_written` says so, for all leaves
 *          whose roots share a word, under the locks of MAP-6; for a superslab's units when it
 *          comes. So a trim reads, and makes resident, no part that nobody wrote to. */
#ifndef HAK_SPAN_PAGEMAP_H
#define HAK_SPAN_PAGEMAP_H

#include "base/atomics.h"
#include "base/bits.h"

enum {
    HAK_PAGEMAP_LEAF_LOG2 = 32, /* address bits one leaf covers */
    HAK_PAGEMAP_LEAF_UNITS = 1 << (HAK_PAGEMAP_LEAF_LOG2 - HAK_UNIT_LOG2),
    HAK_PAGEMAP_LEAF_SUPERSLABS = 1 << (HAK_PAGEMAP_LEAF_LOG2 - HAK_SUPERSLAB_LOG2),
    HAK_PAGEMAP_ROOTS = 1 << (48 - HAK_PAGEMAP_LEAF_LOG2),
};

/* Kinds share the low byte with size classes, which stay below 0x80. Each is the offset, in words,
 * of a bin of a tcache, or of one that takes nothing (TCACHE-9). */
enum {
    HAK_KIND_MASK = 0xff,
    HAK_KIND_PER_CLASS = 2,     /* class 1 is kind 4: slab/sizeclass.h says why */
    HAK_KIND_LARGE = 0xf0,      /* first unit of a large block */
    HAK_KIND_LARGE_BODY = 0xf1, /* its other units */
    HAK_KIND_HUGE = 0xf2,       /* first unit of a huge block; record index above */
    HAK_KIND_GUARD = 0xf3,      /* every unit of the sampled guard's region; nothing above */
    HAK_KIND_VACANT = 0xf4,     /* an end of a vacant range, not a block's; record index above */
    HAK_KIND_ZERO_SIZE = 0xf8,  /* every unit of a region of blocks of size 0; its index above */
    HAK_KIND_DETOUR = 0xfa,     /* no unit's: what the table of sizes has while all are sampled */
    HAK_KIND_PURGED = 0xfc,     /* a slab with purged pages (SLAB-9); its class above */
    HAK_KIND_SAMPLED = 0xfe,    /* a slab of sampled blocks (SLAB-10); its class above */
};

typedef struct hak_pagemap_leaf {
    uint32_t entry[HAK_PAGEMAP_LEAF_UNITS];                  /* [atomic] */
    hak_superslab_t *superslab[HAK_PAGEMAP_LEAF_SUPERSLABS]; /* [atomic] */
} hak_pagemap_leaf_t;

enum { HAK_PAGEMAP_TABLE_BYTES = 2112 }; /* one for each size up to 2 KiB, in whole lines */

typedef struct hak_pagemap {
    uint8_t table[HAK_PAGEMAP_TABLE_BYTES];   /* [atomic] of slab/sizeclass.h: MAP-5 */
    HAK_LINE_ALIGNED hak_pagemap_leaf_t zero; /* [const] MAP-3, MAP-4 */
    uintptr_t root[HAK_PAGEMAP_ROOTS];        /* [atomic] entries from `zero` to the leaf */
} hak_pagemap_t;

_Static_assert(offsetof(hak_pagemap_t, root) ==
                   offsetof(hak_pagemap_t, zero) + sizeof(hak_pagemap_leaf_t),
               "MAP-5: the root follows the zero leaf");

extern hak_pagemap_t hak_pagemap;

/* The address of the zero leaf in a register the compiler cannot look through (MAP-5). */
HAK_INLINE uintptr_t hak_pagemap_base(void) {
    uintptr_t base = (uintptr_t)&hak_pagemap.zero;
    HAK_OPAQUE(base);
    return base;
}

/* The index of the address's entry, counted in entries from the base. */
HAK_INLINE uintptr_t hak_pagemap_index(uintptr_t base, const void *address) {
    const uintptr_t *root = (const uintptr_t *)(base + sizeof(hak_pagemap_leaf_t));
    uintptr_t unit = (uintptr_t)address >> HAK_UNIT_LOG2;
    uintptr_t inside = (uint16_t)unit;
    return inside + hak_load_hot(&root[(uint32_t)unit / HAK_PAGEMAP_LEAF_UNITS]);
}

HAK_INLINE uint32_t *hak_pagemap_entry(uintptr_t base, uintptr_t index) {
    return (uint32_t *)(base + index * sizeof(uint32_t));
}

HAK_INLINE uint32_t hak_pagemap_at(uintptr_t base, uintptr_t index) {
    return hak_load_hot(hak_pagemap_entry(base, index));
}

/* The kind alone, in the first byte of the entry. */
HAK_INLINE int64_t hak_pagemap_kind_at(uintptr_t base, uintptr_t index) {
    return hak_load_hot((const uint8_t *)hak_pagemap_entry(base, index));
}

HAK_INLINE uint32_t hak_pagemap_get(uintptr_t base, const void *address) {
    return hak_pagemap_at(base, hak_pagemap_index(base, address));
}

/* The leaf, for callers that read more than the entry. */
HAK_INLINE hak_pagemap_leaf_t *hak_pagemap_leaf(uintptr_t base, const void *address) {
    const uintptr_t *root = (const uintptr_t *)(base + sizeof(hak_pagemap_leaf_t));
    uint16_t index = (uint16_t)((uintptr_t)address >> HAK_PAGEMAP_LEAF_LOG2);
    return (hak_pagemap_leaf_t *)(base + hak_load_hot(&root[index]) * sizeof(uint32_t));
}

/* The place of the superslab that covers the address; `index` is that of the address's entry. */
HAK_INLINE hak_superslab_t *const *hak_pagemap_superslab_entry(uintptr_t base, uintptr_t index,
                                                               const void *address) {
    uintptr_t first = index - (uint16_t)((uintptr_t)address >> HAK_UNIT_LOG2);
    const hak_pagemap_leaf_t *leaf = (const void *)hak_pagemap_entry(base, first);
    return &leaf->superslab[(uint32_t)(uintptr_t)address >> HAK_SUPERSLAB_LOG2];
}

/* The superslab that covers the address, or NULL. */
HAK_INLINE hak_superslab_t *hak_pagemap_superslab_at(uintptr_t index, const void *address) {
    /* pairs PAGEMAP-2 */
    return hak_load_acquire(hak_pagemap_superslab_entry(hak_pagemap_base(), index, address));
}

HAK_INLINE hak_superslab_t *hak_pagemap_superslab(const void *address) {
    return hak_pagemap_superslab_at(hak_pagemap_index(hak_pagemap_base(), address), address);
}

/* Makes sure that every unit of the range has a leaf. false if metadata memory ran out. */
bool hak_pagemap_prepare(const void *base, size_t bytes);

/* Writes the same entry to `count` units; the range was prepared. */
void hak_pagemap_set(const void *base, size_t count, uint32_t entry);
/* The same for units of one superslab, which are noted as long as it is there (MAP-7). */
void hak_pagemap_set_units(const void *base, size_t count, uint32_t entry);
/* Makes a unit's entry 0, of all threads that try the first only; false: it was not `entry`. */
HAK_INLINE bool hak_pagemap_take(const void *address, uint32_t entry) {
    uintptr_t base = hak_pagemap_base();
    return hak_cas_relaxed(hak_pagemap_entry(base, hak_pagemap_index(base, address)), &entry, 0);
}
void hak_pagemap_set_superslab(const void *base, hak_superslab_t *superslab);

/* Purges OS pages of leaves whose entries are all 0, without a look at those never written to. */
HAK_COLD void hak_pagemap_trim(void);

#endif
