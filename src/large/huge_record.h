/* SPDX-License-Identifier: MIT
 *
 * Records of huge blocks and of vacant ranges, named by entries of the page map; private to this
 * folder.
 *
 * A vacant range is mapped, holds no memory and belongs to no block: the kernel refused to unmap
 * it, or unmapping would have split a mapping in two (vacant.c).
 *
 * Invariants (HAK_LOCK_HUGE):
 *   VACANT-1  The entries of the first and of the last unit of a vacant range are its record's
 *             index << 8 | HAK_KIND_VACANT.
 *   VACANT-2  No vacant range ends where another begins unless their shifts differ (CACHE-3). */
#ifndef HAK_LARGE_HUGE_RECORD_H
#define HAK_LARGE_HUGE_RECORD_H

#include "large/large.h"

struct hak_huge {
    char *base;        /* [lock HUGE] NULL: unused record, or a block being moved */
    size_t bytes;      /* [atomic] mapped; only the block's user may change it, by resize */
    ptrdiff_t shift;   /* of its user, [lock HUGE] of a vacant range: CACHE-3 */
    uint32_t next;     /* [lock HUGE] list of unused records, or of vacant ranges, index + 1 */
    uint32_t previous; /* [lock HUGE] of vacant ranges, index + 1 */
    bool is_whole;     /* of its user: was copied into a single mapping, which shall stay one */
    bool is_fresh;     /* of its user: it began as untouched memory, and was not resized */
    bool is_vacant;    /* [lock HUGE] */
    bool is_zero;      /* [lock HUGE] of a vacant range */
};

enum {
    HUGE_CHUNK_LOG2 = 10,        /* records per metadata chunk */
    HUGE_CHUNKS = (1 << 14) - 1, /* so many that the index fits the page map's 24 bits */
    /* Blocks that may be mappings of their own to the kernel: an eighth of its default limit. Above
     * it no block has a guard, and memory between two blocks stays mapped, so that neighbours are
     * one mapping. Moved blocks always are mappings of their own, at most so many. */
    HUGE_APART_MOST = 1 << 13,
};
_Static_assert(HUGE_CHUNKS << HUGE_CHUNK_LOG2 < (1 << 24) - 1, "TCACHE-6: no index is 0xffffff");

extern struct huge_state {
    hak_huge_t *chunk[HUGE_CHUNKS]; /* [atomic] */
    uint32_t record_count;          /* [atomic] records ever made; written under HUGE */
    uint32_t unused;                /* [lock HUGE] index + 1 */
    size_t in_use_count;            /* [atomic] written under HUGE */
    size_t moved_count;             /* [atomic] of these, with a shift other than 0; as above */
} hak_huge_state;

static inline hak_huge_t *hak_huge_at(uint32_t index) {
    /* pairs HUGE-CHUNK */
    hak_huge_t *chunk = hak_load_acquire(&hak_huge_state.chunk[index >> HUGE_CHUNK_LOG2]);
    return &chunk[index & ((1u << HUGE_CHUNK_LOG2) - 1)];
}

static inline bool hak_huge_is_crowded(void) {
    return hak_single_writer_load(&hak_huge_state.in_use_count) > HUGE_APART_MOST;
}

/* Makes a record, its index in *index; NULL: metadata ran out. [lock HUGE] */
hak_huge_t *hak_huge_record_make(uint32_t *index);
void hak_huge_record_release(uint32_t index); /* [lock HUGE] */

/* Returns an unused mapping to the kernel, at least its memory. Without locks. */
void hak_vacant_give(char *base, size_t bytes, ptrdiff_t shift);

/* An aligned part of a vacant range; NULL: none found in a bounded search. [lock HUGE] */
char *hak_vacant_take(size_t bytes, size_t align, ptrdiff_t *shift, bool *is_zero);

/* Takes at most `bytes` of that shift's range from `base` on; returns how many. [lock HUGE] */
size_t hak_vacant_take_at(const char *base, size_t bytes, ptrdiff_t shift);

/* A new mapping; NULL: none. The surplus of its alignment becomes vacant. Without locks. */
char *hak_vacant_map(size_t bytes, size_t align);

/* Unmaps some vacant ranges, the largest first, unless the kernel refuses; while many blocks are in
 * use only until `wanted` bytes are. Returns the bytes. Takes the lock. */
size_t hak_vacant_unmap_some(size_t wanted);
/* The same for all of them; with many blocks only if that makes `wanted` bytes mappable again. */
size_t hak_vacant_unmap(size_t wanted);

/* If all records are unused, purges their memory. Takes the lock. */
void hak_huge_records_trim(void);

/* Adds to the figures of `stats`. [lock HUGE] */
void hak_vacant_stats(hak_large_stats_t *stats);

#endif
