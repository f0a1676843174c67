/* SPDX-License-Identifier: MIT
 *
 * Owners: heaps, about one per CPU that the process may use, each the home of some threads. Only
 * the holder of its lock touches an owner and its slabs, except the queue, which every thread
 * writes.
 *
 *   OWNER-1  users is the number of tcaches of threads whose home it is. */
#ifndef HAK_SLAB_OWNER_H
#define HAK_SLAB_OWNER_H

#include "base/counters.h"
#include "os/lock.h"
#include "slab/idle_pages.h"

struct hak_owner {
    hak_slab_t *queue;    /* [atomic] slabs that received remote frees */
    uint32_t users;       /* [atomic] threads whose home it is */
    uint32_t first_entry; /* [const] its id << 8, as in page-map entries; or a kind (SLAB-10) */
    bool is_left;         /* [atomic] its last user left, and no maintenance came since */
    hak_owner_t *next;    /* [const] list of all owners */
    HAK_LINE_ALIGNED hak_owner_lock_t lock;
    hak_slab_t *ready;                 /* [lock OWNER] taken from the queue, not drained yet */
    hak_slab_t *current[HAK_SC_COUNT]; /* [lock OWNER] */
    /* [lock OWNER] slabs of the class; adopters read both counts as hints */
    uint32_t slab_count[HAK_SC_COUNT];
    hak_list_t partial[HAK_SC_COUNT];                        /* [lock OWNER] */
    uint32_t partial_count[HAK_SC_COUNT];                    /* [lock OWNER] of `partial` */
    hak_purge_pass_t purge_pass;                             /* [lock OWNER] */
    uint64_t *bits[HAK_META_MOST_LINES];                     /* [lock OWNER] unused, by lines */
    uint8_t bits_count[HAK_META_MOST_LINES];                 /* [lock OWNER] of each */
    hak_dense_t dense[HAK_SC_COUNT - HAK_SLAB_SAMPLED_FROM]; /* [lock OWNER] */
    hak_class_counters_t counters[HAK_SC_COUNT];             /* [lock OWNER] */
};

/* Initialises an owner in zeroed memory. */
void hak_owner_init(hak_owner_t *owner, uint32_t first_entry);
extern hak_owner_t *hak_owner_sampled; /* [atomic] of sampled blocks (SLAB-10); NULL: none yet */

/* The first owner, made on first use. */
hak_owner_t *hak_owner_start(void);
/* A home for one more thread: the partition's owner with the fewest users; a new one if every owner
 * has a user and the process may use more CPUs than there are owners. NULL: metadata is out, and
 * the plain partition has no owner yet. */
hak_owner_t *hak_owner_join(hak_partition_t partition);
/* A thread leaves its home. */
void hak_owner_quit(hak_owner_t *owner);
/* Locks `home`, or another owner if that stays locked; returns the locked one. */
hak_owner_t *hak_owner_lock(hak_owner_t *home);
/* A thread changes its home. */
void hak_owner_move(hak_owner_t *from, hak_owner_t *to);
/* Spins for a moment at most; false: it stayed locked. */
bool hak_owner_try_lock(hak_owner_t *owner);
void hak_owner_unlock(hak_owner_t *owner);
/* Partial slabs of a class from which on an owner with users gives one away. */
enum { HAK_SLAB_ADOPT_LEAST = 8 };
/* From which owners: idle ones, and those with at least HAK_SLAB_ADOPT_LEAST partial slabs; any of
 * some, even its last slab; any of all, as memory is out. */
typedef enum hak_adopt { HAK_ADOPT_SPARE, HAK_ADOPT_ANY, HAK_ADOPT_LAST_RESORT } hak_adopt_t;
/* Takes one slab of class `sc` with free blocks. NULL: none is found. The caller holds `owner`. */
hak_slab_t *hak_slab_adopt(hak_owner_t *owner, unsigned sc, hak_adopt_t from_which);
/* Drains `budget` owners, so that blocks freed to them become usable while their threads sleep. */
void hak_owner_maintain(unsigned budget);
/* Drains the remote frees of every owner, and retires empty slabs. */
void hak_owner_collect(void);
/* The next of all owners, in a ring; any cursor will do. */
hak_owner_t *hak_owner_next(hak_owner_t **cursor);
/* Calls visit for every owner, unlocked. */
void hak_owner_visit(void (*visit)(hak_owner_t *owner, void *context), void *context);
/* In the child of a fork, whose thread has this home. */
void hak_owner_after_fork(hak_owner_t *home);

#endif
