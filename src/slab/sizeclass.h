/* SPDX-License-Identifier: MIT
 *
 * Size <-> size class: 16-byte steps up to 128 B, then four classes per doubling up to 64 KiB, and
 * from 1 KiB on a fifth just above the power of two, for 2^k bytes and a header
 * (docs/experiments/0031-class-for-headers.md). Above 128 B at most 20 % of a block is waste. Every
 * class is a multiple of 16 B, so blocks are 16-byte aligned; a power-of-two block is aligned to
 * its size, as slabs start at multiples of 64 KiB and have no header (SLAB-2). */
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
    uint16_t keep_from; /* the least size for which realloc leaves a block in place */
    uint8_t log2;       /* of the other factor */
} hak_sc_info_t;

/* Hit paths read a class as the offset of its bin in a tcache, in words: in the table for small
 * sizes and in page-map entries. x86-64 and aarch64 scale such an index for free. 0 is no class's:
 * it is the kind of a unit without an entry. */
enum { HAK_SC_PLACES = HAK_SC_COUNT * HAK_KIND_PER_CLASS };

/* In hardened builds a block ends in a canary (harden.h): a size is less than the block's bytes. */
enum {
    HAK_CANARY_BYTES = HAK_HARDEN ? 8 : 0,
    HAK_SC_SMALL_SIZE = HAK_SC_SMALL_BYTES - HAK_CANARY_BYTES,
    HAK_SC_MAX_SIZE = HAK_SC_MAX_BYTES - HAK_CANARY_BYTES,
};

_Static_assert(HAK_SC_PLACES < 0x80, "MAP-2: classes stay below the other kinds");

HAK_INLINE uint32_t hak_sc_kind(unsigned sc) {
    return (sc + 1) * HAK_KIND_PER_CLASS;
}

/* The page-map entry of slabs of a class; `first_entry` is their owner's, or a kind. */
HAK_INLINE uint32_t hak_sc_entry(uint32_t first_entry, unsigned sc) {
    return first_entry | hak_sc_kind(sc) << (first_entry <= HAK_KIND_MASK ? 8 : 0);
}

/* The class of a slab's entry. */
HAK_INLINE unsigned hak_sc_of_entry(uint32_t entry) {
    uint32_t kind = (entry & HAK_KIND_MASK) >= HAK_KIND_PURGED ? entry >> 8 : entry;
    return (kind & HAK_KIND_MASK) / HAK_KIND_PER_CLASS - 1;
}

extern const hak_sc_info_t hak_sc_info[HAK_SC_COUNT];

/* hak_sc_info of a class's kind, without a division. */
HAK_INLINE const hak_sc_info_t *hak_sc_info_of_kind(uint64_t kind) {
    size_t bytes = (kind - HAK_KIND_PER_CLASS) * (sizeof(hak_sc_info_t) / HAK_KIND_PER_CLASS);
    return (const hak_sc_info_t *)((const char *)hak_sc_info + bytes);
}

HAK_INLINE const hak_sc_info_t *hak_sc_info_of_entry(uint32_t entry) {
    return &hak_sc_info[hak_sc_of_entry(entry)];
}

/* The largest size a block of the class serves. */
HAK_INLINE size_t hak_sc_usable(const hak_sc_info_t *info) {
    return info->bytes - HAK_CANARY_BYTES;
}

extern const uint8_t hak_sc_small[HAK_SC_SMALL_BYTES / HAK_BLOCK_ALIGN + 1];

/* Fills the table of bin offsets by size that the hit path reads (MAP-5); until then it reads 0,
 * the offset of no class's bin. One byte for each size, not for 16 of them: the hit path saves an
 * addition and a shift (docs/experiments/0017-hit-path-rest.md). */
void hak_sc_init(void);
/* While it is on, the table leads every small request to an empty bin, and so to its cold exit. */
void hak_sc_detour(bool is_on);

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

/* A request for the result + 1 bytes gives a block of `size` bytes at a multiple of `align` (a
 * power of two): `size` is rounded up to a multiple of it. The classes of a doubling are 5, 6, 7
 * and 8 x 2^k, and 9 x 2^(k-1), so the class of a multiple of 2^n is one, too, and no smaller class
 * that holds `size` is. Size 0 gives SIZE_MAX, which no class holds, or in hardened builds 7; none
 * of the largest sizes gives less than itself. */
HAK_INLINE size_t hak_sc_aligned_last(size_t size, size_t align) {
    size_t most = SIZE_MAX - HAK_CANARY_BYTES;
    size_t last = (size > most ? most : size) + HAK_CANARY_BYTES - 1;
    return (last | (align - 1)) - HAK_CANARY_BYTES;
}

/* The smallest class whose blocks hold `size` bytes (at least 1) at `align`; HAK_SC_COUNT: none. */
HAK_INLINE unsigned hak_sc_of_aligned(size_t size, size_t align) {
    size_t last = hak_sc_aligned_last(size, align);
    return last < HAK_SC_MAX_SIZE ? hak_sc_of(last + 1) : (unsigned)HAK_SC_COUNT;
}

/* The index of the block that starts at `offset` bytes in a slab; `blocks` or more: none does.
 * Division without a divider: the inverse divides by the odd factor, the rotation by the power of
 * two. Both permute the 32-bit numbers and map the multiples of `bytes` to the lowest, so all
 * others end above them. */
HAK_INLINE uint32_t hak_sc_index(const hak_sc_info_t *info, uint32_t offset) {
    uint32_t n = offset * info->inverse;
    unsigned log2 = info->log2;
    return n >> log2 | n << (32 - log2);
}

/* 2^32 / bytes, rounded up: an offset in a unit is a multiple of `bytes` if its product with this,
 * modulo 2^32, is below this. 0, which nothing is below, for slabs of several units. */
HAK_INLINE uint32_t hak_sc_factor(const hak_sc_info_t *info) {
    return info->units == 1 ? UINT32_MAX / info->bytes + 1 : 0;
}

#endif
