/* SPDX-License-Identifier: MIT
 *
 * Futex lock with a rank. Locks are taken in the order of the enumeration below, which exists
 * nowhere else; audit builds check it. Fork takes all of them in this order (life/fork.c). */
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include "base/atomics.h"
#include "base/compiler.h"
#include "base/words.h"
#include "os/libc.h"

typedef enum hak_lock_rank {
    HAK_LOCK_START,    /* process start */
    HAK_LOCK_FALLBACK, /* the tcache of threads that have none */
    HAK_LOCK_REGISTRY, /* lists of tcaches and of owners */
    HAK_LOCK_OWNER,    /* an owner and its slabs; of these there are many, see below */
    HAK_LOCK_GUARD,    /* slots of the sampled guard */
    HAK_LOCK_HUGE,     /* huge records and cache */
    HAK_LOCK_SPAN,     /* superslabs and their units */
    HAK_LOCK_PAGEMAP,  /* growth of the page map */
    HAK_LOCK_META,     /* memory for metadata */
    HAK_LOCK_COUNT
} hak_lock_rank_t;

typedef struct hak_lock {
    uint32_t state; /* [atomic] 0 free, 1 taken, 2 taken with sleepers */
} hak_lock_t;

/* One lock per rank; that of HAK_LOCK_OWNER is not used. */
extern hak_lock_t hak_locks[HAK_LOCK_COUNT];

/* Locks of rank HAK_LOCK_OWNER, one an owner. They are try-lock only: on failure the
 * caller moves to another owner. A thread may try a second one while it holds one. */
typedef struct hak_owner_lock {
    uint32_t is_taken;           /* [atomic] */
    bool is_kept;                /* [atomic] a fork waited for it in vain; a hint */
    const void *forked_by;       /* [atomic] the thread whose fork holds it */
    struct hak_owner_lock *next; /* [const] list of all */
} hak_owner_lock_t;

void hak_lock_acquire(hak_lock_rank_t rank);
void hak_lock_release(hak_lock_rank_t rank);
/* By its holder: if others wait for it they get it now, and then the caller again. */
void hak_lock_pass(hak_lock_rank_t rank);
/* Adds an owner's lock to those that fork takes. The caller holds HAK_LOCK_REGISTRY. */
void hak_lock_add(hak_owner_lock_t *owner_lock);
/* false: somebody has it. */
bool hak_lock_try(hak_owner_lock_t *owner_lock);
void hak_lock_unlock(hak_owner_lock_t *owner_lock);
/* Unlocks the owners that the thread holds, and ends its unlocked updates: for tests, which survive
 * a fatal error. */
void hak_lock_unlock_owners(void);

/* [thread] This thread is in the middle of a push to a remote list, or of a purge, or has a slot of
 * the sampled guard in hand, and holds no lock: a fork in a signal handler is no clean one then. */
extern HAK_TLS uint8_t hak_in_unlocked_update;

HAK_INLINE void hak_set_unlocked_update(bool is_begin) {
    HAK_SIGNAL_FENCE(); /* a signal handler sees this order; updates nest */
    hak_in_unlocked_update = (uint8_t)(hak_in_unlocked_update + (is_begin ? 1 : -1));
    HAK_SIGNAL_FENCE();
}

/* The calling thread is in no locked section, as far as it goes: exit handlers may run in a signal
 * handler. */
bool hak_lock_holds_none(void);

/* fork: the calling thread takes every lock, in the order of ranks. Until hak_lock_fork_end it
 * holds them, and acquire and release are no-ops for it: other fork handlers of the program may
 * allocate before and after ours, whatever the order of registration. The caller has blocked
 * signals: a handler that forks meanwhile would end this fork's section.
 * An owner that stays taken for a second (a thread that met a fatal error may sit in its handler
 * for ever) is left out: the child uses other owners.
 * A thread may be inside a locked section already (a signal handler forks): it keeps those locks,
 * and waits for no other for long. */
HAK_COLD void hak_lock_fork_begin(void);
/* [thread] Of the fork under way: the thread was in no locked section and no unlocked update. If it
 * was, the child keeps that structure half changed, for good. */
extern HAK_TLS bool hak_lock_fork_is_clean;
/* In the parent; in the child, where the locks are free again: threads that slept on them are gone.
 */
HAK_COLD void hak_lock_fork_end(bool is_child);

#endif
