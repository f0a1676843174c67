/* SPDX-License-Identifier: MIT
 *
 * Futex lock with a rank. Locks are taken in the order of the enumeration below, which exists
 * nowhere else; audit builds check it. Fork takes all of them in this order (life/fork.c). */
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include "base/compiler.h"
#include "base/words.h"

typedef enum hak_lock_rank {
    HAK_LOCK_START,    /* process start */
    HAK_LOCK_GUEST,    /* the tcache of threads that have none */
    HAK_LOCK_REGISTRY, /* list of tcaches, parked owners */
    HAK_LOCK_HUGE,     /* huge records and cache */
    HAK_LOCK_SPAN,     /* superslabs and their units */
    HAK_LOCK_PAGEMAP,  /* growth of the page map */
    HAK_LOCK_META,     /* memory for metadata */
    HAK_LOCK_COUNT
} hak_lock_rank_t;

typedef struct hak_lock {
    uint32_t state; /* [atomic] 0 free, 1 taken, 2 taken with sleepers */
} hak_lock_t;

/* One lock per rank. */
extern hak_lock_t hak_locks[HAK_LOCK_COUNT];

void hak_lock_acquire(hak_lock_rank_t rank);
void hak_lock_release(hak_lock_rank_t rank);
/* fork: the calling thread takes every lock, in the order of ranks. Until hak_lock_fork_end it
 * holds them all, and acquire and release are no-ops for it: other fork handlers of the program may
 * allocate before and after ours, whatever the order of registration. */
/* Returns false if the thread was inside a locked section already (a signal handler forks): it
 * keeps those locks, and what they protect is in the middle of a change. */
bool hak_lock_fork_begin(void);
/* In the parent, and in the child, where the locks are free again: whoever slept on them is gone.
 */
void hak_lock_fork_end(bool is_child);

#endif
