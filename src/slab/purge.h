/* SPDX-License-Identifier: MIT
 *
 * Purged pages of slabs: OS pages that free blocks cover whole go back to the kernel (SLAB-9). */
#ifndef HAK_SLAB_PURGE_H
#define HAK_SLAB_PURGE_H

#include "slab/slab.h"

/* A round of looks for holes, purge.c. */
typedef struct hak_holes_round {
    uint64_t due_ns;          /* [atomic] it goes on from then on */
    size_t free_bytes;        /* [lock OWNER] free in slabs that were not purged before it */
    size_t free_bytes_before; /* [lock OWNER] in the round before */
    uint32_t left;            /* [lock OWNER] slabs of the class that were not looked at */
    uint32_t purged;          /* [lock OWNER] slabs; half of those of the round before, and so on */
    uint32_t regretted;       /* [lock OWNER] slabs with holes that were needed again */
    uint8_t class_end;        /* [lock OWNER] class after that one; 0: it has not begun */
    uint8_t number;           /* [lock OWNER] of the round */
    uint8_t backoff;          /* [lock OWNER] doublings of the pause */
    uint8_t spare_class; /* [lock OWNER] class looked at next before a new peak; read as a hint */
} hak_holes_round_t;

/* Gives the holes of the next `slabs` partial slabs of a class back; returns the bytes. */
size_t hak_slab_purge_holes(hak_owner_t *owner, unsigned sc, uint32_t slabs);
/* Goes on with the owner's round, until about so much work is done; returns what was. */
uint32_t hak_slab_decay_holes(hak_owner_t *owner, uint64_t now, uint32_t work);

/* Gives the holes of all owners back. An owner is held while the kernel is called: others go
 * elsewhere meanwhile, and a fork waits for a few slabs' worth. */
size_t hak_owner_purge_holes(void);
/* What it would give back now, as far as memory is behind it; called with no lock held. */
typedef struct hak_hole {
    const char *base;
    size_t free_bytes;     /* of free blocks */
    size_t uncarved_bytes; /* behind them, where no block was made */
} hak_hole_t;
typedef void hak_hole_visit_t(const hak_hole_t *hole, void *context);
/* false: an owner is busy just then, and not all of it was visited. */
bool hak_owner_visit_holes(hak_hole_visit_t *visit, void *context);
/* As hak_owner_purge_holes, before the heap grows beyond its peak: about so many bytes, of large
 * holes only, and only as much as does not hurt. */
size_t hak_owner_spare_holes(size_t bytes);
/* A window has passed: half of what went so may go again. */
void hak_owner_forget_spared(void);
/* A step of time: those of slabs nobody used for a while go back, a few at a time. */
void hak_owner_decay_holes(void);

#endif
