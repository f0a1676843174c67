/* SPDX-License-Identifier: MIT
 *
 * Purged pages of slabs: OS pages that free blocks cover whole are idle, and go back to the
 * kernel in runs (SLAB-9). reclaim/slabs.c decides when, and which. */
#ifndef HAK_SLAB_PURGE_H
#define HAK_SLAB_PURGE_H

#include "slab/slab.h"

/* The pass of reclaim/slabs.c over the partial slabs of an owner. */
typedef struct hak_purge_pass {
    uint64_t due_ns;          /* [atomic] it goes on from then on */
    size_t free_bytes;        /* [lock OWNER] free in slabs that were not purged before it */
    size_t free_bytes_before; /* [lock OWNER] in the pass before */
    uint32_t left;            /* [lock OWNER] slabs of the class that were not looked at */
    uint32_t purged;          /* [lock OWNER] slabs; half of those of the pass before, and so on */
    uint32_t regretted;       /* [lock OWNER] slabs with purged pages that were needed again */
    uint8_t class_end;        /* [lock OWNER] class after that one; 0: it has not begun */
    uint8_t number;           /* [lock OWNER] of the pass */
    uint8_t backoff;          /* [lock OWNER] doublings of the pause */
    uint8_t peak_class; /* [lock OWNER] class looked at next before a new peak; read as a hint */
} hak_purge_pass_t;

enum {
    HAK_SLAB_SECTION = 8,    /* slabs looked at in one hold of the lock: a fork waits for it */
    HAK_SLAB_CALL_WORK = 32, /* work is counted in looks at a slab, or at a block of a list */
};

typedef struct hak_slab_purged {
    size_t bytes;       /* of purged pages */
    size_t fresh_bytes; /* of these, not purged before */
    uint32_t calls;
    uint32_t refused; /* of these */
    uint32_t work;
} hak_slab_purged_t;
/* Purges runs of idle pages of `least` bytes or more; 1: all of them. The owner is held. */
hak_slab_purged_t hak_slab_purge(hak_slab_t *slab, size_t least);
/* Whether no block came or went since the last look. The owner is held. */
bool hak_slab_is_idle(const hak_slab_t *slab);
/* The first partial slab of a class that has one. It goes to the end of the list, so that the first
 * is always the next one. The owner is held. */
hak_slab_t *hak_slab_in_turn(hak_owner_t *owner, unsigned sc);

/* What malloc_trim would give back of slabs, as far as memory is behind it; called with no lock
 * held. */
typedef struct hak_idle_pages {
    const char *base;
    size_t free_bytes;     /* of free blocks */
    size_t uncarved_bytes; /* behind them, where no block was made */
} hak_idle_pages_t;
typedef void hak_idle_visit_t(const hak_idle_pages_t *idle, void *context);
/* false: an owner is busy just then, and not all of it was visited. */
bool hak_owner_visit_idle(hak_idle_visit_t *visit, void *context);

#endif
