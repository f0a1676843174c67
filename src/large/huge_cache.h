/* SPDX-License-Identifier: MIT
 *
 * The cache of freed huge mappings; private to this folder. Unused extents go back to the kernel
 * (reclaim/target.c decides when).
 *
 * Invariants (HAK_LOCK_HUGE):
 *   CACHE-1  extents are sorted, disjoint, and not adjacent unless their shifts differ; their sum
 *            is cached_bytes
 *   CACHE-2  0 < dirty <= bytes for every extent; their sum is resident_bytes
 *   CACHE-3  an extent, and a block, has one shift: by how much mremap has moved its pages from
 *            the addresses they were mapped at. The kernel never makes one mapping of two that
 *            differ in it, and does not move two mappings at once, so they are not joined here. */
#ifndef HAK_LARGE_HUGE_CACHE_H
#define HAK_LARGE_HUGE_CACHE_H

#include "large/large.h"

typedef struct huge_extent {
    char *base;
    size_t bytes;
    size_t dirty;    /* bytes the kernel is thought to hold */
    ptrdiff_t shift; /* CACHE-3 */
    bool is_known;   /* the kernel was asked about all of it */
} huge_extent_t;

extern huge_extent_t hak_huge_extents[]; /* [lock HUGE] */
extern struct hak_huge_cache {
    unsigned extent_count; /* [lock HUGE] */
    size_t cached_bytes;   /* [lock HUGE] CACHE-1 */
    hak_huge_pool_t pool;  /* [lock HUGE] its resident_bytes: CACHE-2 */
    size_t sampled_bytes;  /* [lock HUGE] of freed blocks whose memory was fresh; fades */
    size_t written_bytes;  /* [lock HUGE] of these */
} hak_huge_cache;

/* An aligned part of a cached mapping, perhaps not zero, and its shift; NULL: none. [lock HUGE] */
char *hak_huge_cache_take(size_t bytes, size_t align, ptrdiff_t *shift);

/* Whether hak_huge_cache_take would succeed now: a hint. Takes the lock. */
bool hak_huge_cache_fits(size_t bytes);

/* Takes at most `bytes` of that shift's extent from `base` on; returns how many. [lock HUGE] */
size_t hak_huge_cache_take_at(const char *base, size_t bytes, ptrdiff_t shift);

/* Adds a freed mapping, and gives back the excess; without locks. `was_fresh`: it was a block whose
 * memory had been untouched, so what is resident was written to. */
void hak_huge_cache_give(char *base, size_t bytes, ptrdiff_t shift, bool was_fresh);

/* Bytes in use grew by `added` and shrank by `removed`. [lock HUGE] */
void hak_huge_cache_note_use(size_t added, size_t removed);

#endif
