/* SPDX-License-Identifier: MIT
 *
 * Size <-> size class: 16-byte steps up to 128 B, then four classes per doubling up to 64 KiB.
 * A request wastes at most 20 % of its block above 128 B. Every class is a multiple of 16 B, so
 * blocks are 16-byte aligned; a block of a power-of-two class is aligned to its size, because
 * slabs start at multiples of 64 KiB and have no header (SLAB-2). */
#ifndef HAK_SLAB_SIZECLASS_H
#define HAK_SLAB_SIZECLASS_H

#include "base/bits.h"
#include "slab/sizeclass_table.h"
#include "span/pagemap.h"

typedef struct hak_sc_info {
    uint32_t bytes;      /* of a block */
    uint16_t units;      /* of a slab */
    uint16_t blocks;     /* of a slab */
    uint32_t reciprocal; /* ceil(2^32 / (bytes / 8)): multiple test without division */
} hak_sc_info_t;

extern const hak_sc_info_t hak_sc_info[HAK_SC_COUNT];
extern const uint8_t hak_sc_small[HAK_SC_SMALL_BYTES / HAK_BLOCK_ALIGN + 1];

/* Copies the table for small sizes to where the hit path reads it (MAP-5); before that it reads
 * class 0 there, which no tcache can serve yet. */
void hak_sc_init(void);

/* size <= HAK_SC_SMALL_BYTES, at any time */
HAK_INLINE unsigned hak_sc_of_small(size_t size) {
    return hak_sc_small[(size + HAK_BLOCK_ALIGN - 1) / HAK_BLOCK_ALIGN];
}

/* HAK_SC_SMALL_BYTES < size <= HAK_SC_MAX_BYTES (right from 129 B on) */
HAK_INLINE unsigned hak_sc_of_medium(size_t size) {
    size_t last = size - 1;
    unsigned log2 = hak_log2(last);
    return (unsigned)((last >> (log2 - 2)) & 3) + (log2 - 7) * 4 + 8;
}

/* size <= HAK_SC_MAX_BYTES */
HAK_INLINE unsigned hak_sc_of(size_t size) {
    return size <= HAK_SC_SMALL_BYTES ? hak_sc_of_small(size) : hak_sc_of_medium(size);
}

/* The smallest class whose blocks hold `size` bytes at multiples of `align` (a power of two of at
 * most 64 KiB); HAK_SC_COUNT if there is none. */
unsigned hak_sc_of_aligned(size_t size, size_t align);

/* Whether `offset` (below 2^19, the largest slab) is a multiple of the class's block size. Exact:
 * with n = offset / 8 < 2^16 and r the reciprocal, n x r mod 2^32 < r only for multiples, because
 * the rounding error of r adds up to less than 2^16 while r >= 2^19. */
HAK_INLINE bool hak_sc_is_multiple(uint32_t reciprocal, uint32_t offset) {
    return (offset & 7) == 0 && (uint32_t)(offset / 8 * reciprocal) < reciprocal;
}

#endif
