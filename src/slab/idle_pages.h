/* SPDX-License-Identifier: MIT
 *
 * Idle pages of slabs: OS pages that free blocks cover whole. They go back to the kernel in runs
 * (SLAB-9); reclaim/slabs.c decides when, and which. */
#ifndef HAK_SLAB_IDLE_PAGES_H
#define HAK_SLAB_IDLE_PAGES_H

#include "slab/slab.h"

/* The pass of reclaim/slabs.c over the partial slabs of an owner. */
typedef struct hak_purge_pass {
    uint64_t due_ns;          /* [atomic] the pass continues from then on */
    size_t free_bytes;        /* [lock OWNER] free in slabs not purged before this pass */
    size_t free_bytes_before; /* [lock OWNER] in the pass before */
    uint32_t left;            /* [lock OWNER] slabs of the class still to visit */
    uint32_t purged;          /* [lock OWNER] slabs; each pass halves the sum of earlier ones */
    uint32_t regretted;       /* [lock OWNER] slabs with purged pages, refilled from since */
    uint8_t class_end;        /* [lock OWNER] one above the class in progress; 0: not begun */
    uint8_t number;           /* [lock OWNER] of the pass */
    uint8_t backoff;          /* [lock OWNER] doublings of the pause */
    uint8_t peak_class; /* [lock OWNER] class to visit next before a new peak; read as a hint */
} hak_purge_pass_t;

enum {
    HAK_SLAB_SECTION = 8,    /* slabs visited per hold of the lock: a fork waits for it */
    HAK_SLAB_CALL_WORK = 32, /* of a call; unit: a visit of a slab */
};

typedef struct hak_slab_purged {
    size_t bytes;       /* of the runs purged */
    size_t fresh_bytes; /* of these, not purged before: memory gained */
    uint32_t calls;
    uint32_t refused; /* of these */
    uint32_t work;
} hak_slab_purged_t;
/* Purges runs of idle pages of `least` bytes or more; 1: all of them. The owner is held. */
hak_slab_purged_t hak_slab_purge(hak_slab_t *slab, size_t least);
/* Whether no block came or went since the last visit. The owner is held. */
bool hak_slab_is_idle(const hak_slab_t *slab);
/* Moves the class's first partial slab, which exists, to the end of the list. The owner is held. */
hak_slab_t *hak_slab_in_turn(hak_owner_t *owner, unsigned sc);

#endif
