/* SPDX-License-Identifier: MIT
 *
 * Size <-> size class: 16-byte steps up to 128 B, then four classes per doubling up to 64 KiB, and
 * from 1 KiB on a fifth just above the power of two, for blocks of 2^k bytes with a header
 * (docs/experiments/0031-class-for-headers.md).
 * A request wastes at most 20 % of its block above 128 B. Every class is a multiple of 16 B, so
 * blocks are 16-byte aligned; a block of a power-of-two class is aligned to its size, because
 * slabs start at multiples of 64 KiB and have no header (SLAB-2). */
#ifndef HAK_SLAB_SIZECLASS_H
#define HAK_SLAB_SIZECLASS_H

#include "base/bits.h"
#include "slab/sizeclass_table.h"
#include "span/pagemap.h"

typedef struct hak_sc_info {
    uint32_t bytes;     /* of a block */
    uint16_t units;     /* of a slab */
    uint16_t blocks;    /* of a slab */
    uint32_t inverse;   /* of the odd factor of `bytes`, modulo 2^32 */
    uint16_t keep_from; /* the least size for which realloc leaves a block where it is */
    uint8_t log2;       /* of the other factor */
} hak_sc_info_t;

/* Where a hit path reads a class, in the table for small sizes and in page-map entries, it is the
 * place of its bin in a tcache, in words: an index that x86-64 and aarch64 scale for nothing. */
enum { HAK_SC_PLACES = HAK_SC_COUNT * HAK_KIND_PER_CLASS };

/* In hardened builds a block ends in a canary (harden.h). So what is asked for, a size, is less
 * than the bytes of a block. */
enum {
    HAK_CANARY_BYTES = HAK_HARDEN ? 8 : 0,
    HAK_SC_SMALL_SIZE = HAK_SC_SMALL_BYTES - HAK_CANARY_BYTES,
    HAK_SC_MAX_SIZE = HAK_SC_MAX_BYTES - HAK_CANARY_BYTES,
};

_Static_assert(HAK_SC_PLACES <= 0x80, "MAP-2: classes stay below the other kinds");

/* The page-map entry of a class's slabs; `tag` is that of their owner. */
HAK_INLINE uint32_t hak_sc_entry(uint32_t tag, unsigned sc) {
    return tag | sc * HAK_KIND_PER_CLASS;
}

/* The class of a slab's entry. */
HAK_INLINE unsigned hak_sc_of_entry(uint32_t entry) {
    return (entry & HAK_KIND_MASK) / HAK_KIND_PER_CLASS;
}

extern const hak_sc_info_t hak_sc_info[HAK_SC_COUNT];

/* hak_sc_info of a slab's entry, without a division. */
HAK_INLINE const hak_sc_info_t *hak_sc_info_of_entry(uint32_t entry) {
    size_t bytes = (entry & HAK_KIND_MASK) * (sizeof(hak_sc_info_t) / HAK_KIND_PER_CLASS);
    return (const hak_sc_info_t *)((const char *)hak_sc_info + bytes);
}

/* The largest size a block of the class serves. */
HAK_INLINE size_t hak_sc_usable(const hak_sc_info_t *info) {
    return info->bytes - HAK_CANARY_BYTES;
}

extern const uint8_t hak_sc_small[HAK_SC_SMALL_BYTES / HAK_BLOCK_ALIGN + 1];

/* Writes the place of each small size to where the hit path reads it (MAP-5); before that it reads
 * class 0 there, which no tcache can serve yet. One byte for each size, not for 16 of them: the hit
 * path saves an addition and a shift (docs/experiments/0017-hit-path-rest.md). */
void hak_sc_init(void);

/* size <= HAK_SC_SMALL_SIZE, at any time */
HAK_INLINE unsigned hak_sc_of_small(size_t size) {
    return hak_sc_small[(size + HAK_CANARY_BYTES + HAK_BLOCK_ALIGN - 1) / HAK_BLOCK_ALIGN];
}

/* HAK_SC_SMALL_SIZE < size <= HAK_SC_MAX_SIZE (valid for blocks from 1025 B on) */
HAK_INLINE unsigned hak_sc_of_medium(size_t size) {
    size_t last = size + HAK_CANARY_BYTES - 1;
    unsigned log2 = hak_log2(last);
    unsigned eighths = (unsigned)(last >> (log2 - 3)); /* 8 to 15; 8: the class of 9 / 8 */
    return (eighths - 6) / 2 - (eighths == 8) + log2 * 5 - 30;
}

/* size <= HAK_SC_MAX_SIZE */
HAK_INLINE unsigned hak_sc_of(size_t size) {
    return size <= HAK_SC_SMALL_SIZE ? hak_sc_of_small(size) : hak_sc_of_medium(size);
}

/* The number of bytes, less one, to ask for in place of `size` so that the block lies at a multiple
 * of `align` (a power of two). That is `size` rounded up to a multiple of it: the classes of a
 * doubling are 5, 6, 7 and 8 x 2^k, and 9 x 2^(k-1), so the class of a multiple of 2^n is itself
 * one, and no smaller class is one that holds `size`. Size 0 gives SIZE_MAX, which no class holds,
 * or in hardened builds 7, and none of the largest sizes less than itself. */
HAK_INLINE size_t hak_sc_aligned_last(size_t size, size_t align) {
    size_t most = SIZE_MAX - HAK_CANARY_BYTES;
    size_t last = (HAK_HARDEN && size > most ? most : size) + HAK_CANARY_BYTES - 1;
    return (last | (align - 1)) - HAK_CANARY_BYTES;
}

/* The smallest class whose blocks hold `size` bytes (at least one) at multiples of `align`;
 * HAK_SC_COUNT if there is none. */
HAK_INLINE unsigned hak_sc_of_aligned(size_t size, size_t align) {
    size_t last = hak_sc_aligned_last(size, align);
    return last < HAK_SC_MAX_SIZE ? hak_sc_of(last + 1) : (unsigned)HAK_SC_COUNT;
}

/* Which block of a slab starts at `offset` bytes; `blocks` of the class or more: none does.
 * Division without a divider: the inverse divides by the odd factor, the rotation by the power of
 * two. Both permute the 32-bit numbers, and take the multiples of `bytes` to the lowest; so
 * whatever is none ends above them. */
HAK_INLINE uint32_t hak_sc_index(const hak_sc_info_t *info, uint32_t offset) {
    uint32_t n = offset * info->inverse;
    unsigned log2 = info->log2;
    return n >> log2 | n << (32 - log2);
}

/* An offset in a unit is a multiple of the class's bytes if its product with this, modulo 2^32, is
 * below this: 2^32 / bytes, rounded up. 0, which nothing is below: slabs have several units. */
HAK_INLINE uint32_t hak_sc_factor(const hak_sc_info_t *info) {
    return info->units == 1 ? UINT32_MAX / info->bytes + 1 : 0;
}

#endif
