/* SPDX-License-Identifier: MIT
 *
 * Records of huge blocks and of vacant ranges, named by entries of the page map; private to this
 * folder. */
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

/* The record of that index; whether there are too many blocks for mappings of their own. */
hak_huge_t *hak_huge_at(uint32_t index);
bool hak_huge_is_crowded(void);

/* Makes a record, its index in *index; NULL: metadata ran out. [lock HUGE] */
hak_huge_t *hak_huge_record_make(uint32_t *index);
void hak_huge_record_release(uint32_t index); /* [lock HUGE] */

#endif
