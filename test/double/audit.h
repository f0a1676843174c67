/* SPDX-License-Identifier: MIT
 *
 * Audit: walks whole structures and checks the numbered invariants. Only while no other thread
 * allocates. */
#ifndef HAK_TEST_DOUBLE_AUDIT_H
#define HAK_TEST_DOUBLE_AUDIT_H

#include "base/words.h"

typedef struct hak_audit {
    const char *broken; /* number of the first broken invariant, NULL: all hold */
    const void *where;
    size_t slabs;              /* walked */
    size_t free_blocks;        /* walked on slabs' lists */
    size_t cached_blocks;      /* walked in bins */
    size_t unused_dirty_units; /* of all superslabs */
    size_t purged_bytes;       /* of all slabs */
} hak_audit_t;

/* true if every invariant holds. */
bool hak_audit_walk(hak_audit_t *audit);

/* What the spans know of each superslab, and sums of it, against the superslabs: NULL, or the
 * number of the invariant that does not hold. */
const char *hak_audit_summaries(void);

#endif
