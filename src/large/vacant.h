/* SPDX-License-Identifier: MIT
 *
 * A vacant range is mapped, holds no memory and belongs to no block: the kernel refused to unmap
 * it, or unmapping would have split a mapping in two (vacant.c).
 *
 * Invariants (HAK_LOCK_HUGE):
 *   VACANT-1  The entries of the first and of the last unit of a vacant range are its record's
 *             index << 8 | HAK_KIND_VACANT.
 *   VACANT-2  No vacant range ends where another begins unless their shifts differ (CACHE-3). */
#ifndef HAK_LARGE_VACANT_H
#define HAK_LARGE_VACANT_H

#include "large/huge_record.h"

enum { VACANT_LISTS = 128 }; /* of addresses of 48 bits */

extern struct vacant_state {
    uint64_t is_listed[VACANT_LISTS / 64]; /* [lock HUGE] lists that are not empty */
    size_t bytes;                          /* [atomic] of all; written under HUGE */
    size_t count;                          /* [lock HUGE] of all */
    uint32_t apart_count; /* [lock HUGE] large ones unmapped since blocks were few */
} hak_vacant_state;

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

#endif
