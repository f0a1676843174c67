/* SPDX-License-Identifier: MIT
 *
 * Blocks above the largest size class. Two forms, told apart by the kind in the page map:
 *
 *   LARGE  up to 1 MiB: a span of whole units inside a superslab; its first unit's record is a
 *          hak_large_t. Freed spans return to the span layer.
 *   HUGE   a mapping of its own, 64 KiB aligned; its record is named by the page map entry. Freed
 *          mappings are kept in an address-ordered, coalescing cache of bounded size. Smaller
 *          blocks are huge, too, where no superslab fits into what a limit leaves.
 *
 * Invariants:
 *   LARGE-1  The entry of the first unit is HAK_KIND_LARGE; of the others HAK_KIND_LARGE_BODY.
 *   HUGE-1   The entry of the first unit is record index << 8 | HAK_KIND_HUGE; the other units of
 *            the mapping read 0.
 *   CACHE-n  stand in huge_cache.h, VACANT-n in vacant.h. */
#ifndef HAK_LARGE_LARGE_H
#define HAK_LARGE_LARGE_H

#include "span/pagemap.h"
#include "span/span.h"

enum {
    HAK_LARGE_MAX_UNITS = 16, /* above this: huge */
    /* At the end of a huge block, inaccessible; part of the record's bytes. */
    HAK_HUGE_GUARD_BYTES = HAK_HARDEN ? HAK_UNIT_BYTES : 0,
};

typedef struct hak_large_result {
    void *block; /* NULL: memory is out */
    bool is_zero;
} hak_large_result_t;

/* A block of at least `bytes` at a multiple of `align` (power of two). Any thread. */
hak_large_result_t hak_large_alloc(hak_partition_t partition, size_t bytes, size_t align);

/* Frees a block by its page-map entry, of kind LARGE or HUGE; returns its usable bytes. Any thread.
 * 0: none starts there. */
size_t hak_large_free(void *block, uint32_t entry);

/* Usable size; 0: no large block starts at the address. */
size_t hak_large_usable(const void *block, uint32_t entry);

/* Changes the size without a copy: in place, or by moving pages. Returns the block's new address;
 * NULL: only a copy can do it, or memory is out, and the block is unchanged. */
void *hak_large_resize(void *block, uint32_t entry, size_t bytes);

/* Zeroes the first `bytes` of a new block. */
void hak_large_zero(void *block, size_t bytes);

/* Returns cached mappings until at most `keep_bytes` are cached; returns the bytes. */
size_t hak_large_trim(size_t keep_bytes);

/* Returns so many resident bytes of cached mappings, or all; returns about how many. If it is
 * urgent, blocks that the hardened library holds back become unused units. */
size_t hak_large_give_back(size_t bytes, bool is_urgent);

/* Freed huge blocks, under HAK_LOCK_HUGE. */
typedef struct hak_huge_pool {
    size_t in_use_bytes;
    size_t resident_bytes;                  /* unused, and holds memory */
    size_t peak_bytes, low_bytes;           /* most in use, least resident in this window */
    size_t most_bytes;                      /* most in use since the last read */
    size_t last_peak_bytes, last_low_bytes; /* of the last window */
    uint64_t window_end_ns;
    size_t bound_bytes, bound_address_bytes; /* of resident_bytes, and of cached addresses */
} hak_huge_pool_t;

/* Reads the cache's figures, the low of the last window only once. */
void hak_large_pool(hak_huge_pool_t *pool);
/* Returns cached memory and cached addresses above these bounds. */
void hak_large_trim_to(size_t keep_bytes, size_t keep_address_bytes);

/* Hardened builds: whether freed blocks may be held back from now on (huge_quarantine.h), with a
 * full budget. */
void hak_large_quarantine_switch(bool is_on);

/* Memory of the process, as far as the core knows. */
typedef struct hak_footprint {
    size_t all_bytes;    /* in use, less purged pages of slabs, and the two below */
    size_t unused_bytes; /* free units that hold memory */
    size_t cached_bytes; /* of freed huge blocks, resident */
    size_t huge_bytes;   /* of all: of huge blocks, freed ones included */
} hak_footprint_t;
void hak_large_footprint(hak_footprint_t *footprint);

/* Whether the address lies in a huge block or in a cached mapping. Slow; for misuse. */
bool hak_large_covers(const void *address);

typedef struct hak_large_stats {
    size_t huge_in_use_bytes;
    size_t huge_cached_bytes;       /* addresses, vacant ones included */
    size_t huge_cached_dirty_bytes; /* of these, resident */
    size_t huge_count;
    size_t vacant_count; /* mapped ranges without memory and without a block */
} hak_large_stats_t;
void hak_large_stats(hak_large_stats_t *stats);
/* Addresses of cached mappings, vacant ranges, those held back, and superslabs of which every unit
 * is free. */
size_t hak_large_unmappable(void);

/* --- shared by the files of this folder ------------------------------------------------------ */
/* Before fresh memory is used. */
void hak_large_reclaim(size_t bytes);
hak_large_result_t hak_huge_alloc(size_t bytes, size_t align);
size_t hak_huge_free(void *block, uint32_t entry);
void *hak_huge_resize(void *block, uint32_t entry, size_t bytes);
/* Reserves addresses, known to the page map, for a block of that shift to move to; NULL: none, or
 * too many blocks have moved, each a mapping of its own. */
void *hak_huge_reserve(size_t bytes, ptrdiff_t shift);
/* Makes an existing mapping, its guard included, a huge block; false: metadata ran out. */
bool hak_huge_register(char *base, size_t bytes, ptrdiff_t shift);
/* Copies OS pages to zeroed memory, except those that are all zero: their copies stay untouched. */
void hak_large_copy(char *to, const char *from, size_t bytes);

#endif
