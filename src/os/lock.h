/* SPDX-License-Identifier: MIT
 *
 * Futex lock with a rank. Fork takes all locks in the order of the ranks (life/fork.c). Audit
 * builds check:
 *
 *   LOCK-1  A thread takes locks in the order of hak_lock_rank_t, the only place that defines it.
 *   LOCK-2  The thread that took a lock releases it.
 *   LOCK-3  A thread holds at most two owners: it does not get a third. */
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include "base/atomics.h"
#include "base/compiler.h"
#include "base/words.h"
#include "os/cpu.h"
#include "os/libc.h"

typedef enum hak_lock_rank {
    HAK_LOCK_START,    /* process start */
    HAK_LOCK_COMPAT,   /* figures of jemalloc's interface */
    HAK_LOCK_FALLBACK, /* the tcache of threads that have none */
    HAK_LOCK_REGISTRY, /* lists of tcaches and of owners */
    HAK_LOCK_OWNER,    /* an owner and its slabs; one lock per owner */
    HAK_LOCK_GUARD,    /* slots of the sampled guard */
    HAK_LOCK_HUGE,     /* huge records and cache */
    HAK_LOCK_SPAN,     /* superslabs and their units */
    HAK_LOCK_PAGEMAP,  /* growth of the page map */
    HAK_LOCK_META,     /* memory for metadata */
    HAK_LOCK_LEARNER,  /* what the learner saw; nothing is called under it */
    HAK_LOCK_PROFILE,  /* call sites and samples of the heap profiler */
    HAK_LOCK_COUNT
} hak_lock_rank_t;

/* --- what each lock costs ----------------------------------------------------------------------
 *
 * In builds with HAK_CONTENTION, for `./hakmem lab contention`; nothing in others.
 * bench/contention.c prints it at the end of the process. */
typedef struct hak_contention {
    uint64_t taken;   /* [its lock] */
    uint64_t held;    /* [its lock] ticks from taken to released */
    uint64_t since;   /* [its lock] ticks when it was taken */
    uint64_t refused; /* [atomic] times that it was not free */
    uint64_t waited;  /* [atomic] ticks until it was */
} hak_contention_t;

HAK_INLINE uint64_t hak_contention_now(void) {
    return HAK_CONTENTION ? hak_cpu_ticks() : 0;
}

/* By the thread that took it. */
HAK_INLINE void hak_contention_taken(hak_contention_t *count) {
    if (HAK_CONTENTION) {
        count->taken++;
        count->since = hak_cpu_ticks();
    }
}

/* It was not free at `since`; a try-lock gives up at once. */
HAK_INLINE void hak_contention_refused(hak_contention_t *count, uint64_t since) {
    if (HAK_CONTENTION) {
        hak_add_relaxed(&count->refused, 1);
        hak_add_relaxed(&count->waited, hak_cpu_ticks() - since);
    }
}

/* By its holder, just before the release. */
HAK_INLINE void hak_contention_freed(hak_contention_t *count) {
    if (HAK_CONTENTION) {
        count->held += hak_cpu_ticks() - count->since;
    }
}

/* --- locks -------------------------------------------------------------------------------------
 */

typedef struct hak_lock {
    uint32_t state; /* [atomic] 0 free, 1 taken, 2 taken with sleepers */
    hak_contention_t count[HAK_CONTENTION];
} hak_lock_t;

/* One lock per rank; the one of HAK_LOCK_OWNER is unused. */
extern hak_lock_t hak_locks[HAK_LOCK_COUNT];

/* Locks of rank HAK_LOCK_OWNER, one per owner. Try-lock only: on failure the caller moves to
 * another owner. A thread that holds one may try a second. */
typedef struct hak_owner_lock {
    uint32_t is_taken;           /* [atomic] */
    bool has_refused_fork;       /* [atomic] a fork waited in vain; a hint */
    const void *forked_by;       /* [atomic] the thread whose fork holds it */
    struct hak_owner_lock *next; /* [const] list of all */
    hak_contention_t count[HAK_CONTENTION];
} hak_owner_lock_t;

extern hak_owner_lock_t *hak_owner_locks; /* [atomic] newest first; never shrinks */

void hak_lock_acquire(hak_lock_rank_t rank);
void hak_lock_release(hak_lock_rank_t rank);
/* By its holder: lets waiters have the lock, and takes it again. */
void hak_lock_pass(hak_lock_rank_t rank);
/* Adds an owner's lock to those that fork takes. The caller holds HAK_LOCK_REGISTRY. */
void hak_lock_add(hak_owner_lock_t *owner_lock);
/* false: it is taken, or the thread has two. */
bool hak_lock_try(hak_owner_lock_t *owner_lock);
void hak_lock_unlock(hak_owner_lock_t *owner_lock);
/* For tests that survive a fatal error: unlocks the thread's owners, ends its unlocked updates. */
void hak_lock_unlock_owners(void);

/* [thread] Not 0: in a message to another owner, a change of units, a purge, or between two steps
 * on a slot of the sampled guard, without a lock: a fork in a signal handler is not clean then. */
extern HAK_TLS uint8_t hak_in_unlocked_update;

HAK_INLINE void hak_set_unlocked_update(bool is_begin) {
    HAK_SIGNAL_FENCE(); /* a signal handler sees this order; updates nest */
    hak_in_unlocked_update = (uint8_t)(hak_in_unlocked_update + (is_begin ? 1 : -1));
    HAK_SIGNAL_FENCE();
}

/* Whether the calling thread is in a section of the rank, as seen by its signal handlers. */
bool hak_lock_holds(hak_lock_rank_t rank);
/* Whether the calling thread is in no locked section: exit handlers may run in a signal handler. */
bool hak_lock_holds_none(void);
/* Whether it may allocate: it is in no locked section, or in one of an owner (LOCK-3). */
bool hak_lock_holds_owners_at_most(void);

/* fork: takes every lock, in the order of ranks. Until hak_lock_fork_end the thread holds them, and
 * acquire and release are no-ops for it: other fork handlers of the program may allocate before and
 * after ours, in any order of registration. The caller has blocked signals: a handler that forks
 * meanwhile would end this section. An owner that stays locked for a second (a thread that met a
 * fatal error may sit in its handler for ever) is left out: the child uses other owners. A thread
 * that forks in a signal handler, inside a locked section, keeps its locks and waits only briefly
 * for others. With `may_fail` others do so, too: false, with no lock taken, as the holder of one
 * may wait in such a handler for what the caller holds. */
HAK_COLD bool hak_lock_fork_begin(bool may_fail);
/* [thread] The fork in progress began in no locked section and no unlocked update. Else the child
 * keeps that structure half changed, for good. */
extern HAK_TLS bool hak_lock_fork_is_clean;
/* In a fork: whether a thread that is gone in the child keeps the lock there, or any of an owner.
 */
HAK_COLD bool hak_lock_fork_lacks(const hak_owner_lock_t *owner_lock);
HAK_COLD bool hak_lock_fork_lacks_any(void);
/* Ends the section, in the parent and in the child, whose locks have no sleepers any more. */
HAK_COLD void hak_lock_fork_end(bool is_child);

#endif
