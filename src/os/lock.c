/* SPDX-License-Identifier: MIT
 *
 * Three-state futex mutex: spin a little (critical sections are short), then sleep. */
#include "os/lock.h"

#include "base/atomics.h"
#include "base/check.h"
#include "os/os.h"

hak_lock_t hak_locks[HAK_LOCK_COUNT];
HAK_LOCKED_STATE hak_owner_lock_t *hak_owner_locks; /* [atomic] newest first; never shrinks */

HAK_TLS uint8_t hak_in_unlocked_update;
HAK_TLS bool hak_lock_fork_is_clean;
static HAK_TLS struct lock_own {
    hak_owner_lock_t *owner, *before; /* locks of owners held, or about to be */
    uint16_t held;                    /* bit per rank held, or about to be */
    uint16_t waiting;                 /* bit of the rank in `held` still waited for */
    uint16_t forked;                  /* bit per rank taken by hak_lock_fork_begin */
    bool is_forking;                  /* between begin and end of its fork */
} lock_own;                           /* [thread] */

_Static_assert(HAK_LOCK_COUNT <= 16, "a bit per rank");

/* Takes a free lock of any kind. */
static bool lock_take(uint32_t *state) {
    uint32_t expected = 0;
    return hak_cas_acquire(state, &expected, 1); /* pairs LOCK */
}

/* Spins before sleeping: a locked section lasts some dozens of them. */
enum { LOCK_SPINS = 100 };

static HAK_NOINLINE void lock_acquire_contended(hak_lock_t *lock) {
    for (unsigned spin = 0; spin < LOCK_SPINS; spin++) {
        if (hak_load_relaxed(&lock->state) == 0 && lock_take(&lock->state)) {
            return;
        }
        hak_os_relax();
    }
    while (hak_swap_acquire(&lock->state, 2) != 0) { /* pairs LOCK */
        hak_os_wait(&lock->state, 2);
    }
}

void hak_lock_acquire(hak_lock_rank_t rank) {
    hak_lock_t *lock = &hak_locks[rank];
    if (HAK_UNLIKELY(lock_own.is_forking)) {
        return;
    }
    HAK_ASSERT((lock_own.held >> rank) == 0, "LOCK-1 ranks ascend");
    lock_own.held |= (uint16_t)(1u << rank);
    if (HAK_UNLIKELY(!lock_take(&lock->state))) {
        uint64_t since = hak_contention_now();
        lock_own.waiting = (uint16_t)(1u << rank);
        lock_acquire_contended(lock);
        lock_own.waiting = 0;
        hak_contention_refused(lock->count, since);
    }
    hak_contention_taken(lock->count);
}

static void lock_free(hak_lock_t *lock) {
    if (HAK_UNLIKELY(hak_swap_release(&lock->state, 0) == 2)) { /* pairs LOCK */
        hak_os_wake_one(&lock->state);
    }
}

void hak_lock_release(hak_lock_rank_t rank) {
    if (HAK_UNLIKELY(lock_own.is_forking)) {
        return;
    }
    hak_contention_freed(hak_locks[rank].count);
    lock_free(&hak_locks[rank]);
    HAK_ASSERT((lock_own.held >> rank) & 1, "LOCK-2 released by its holder");
    lock_own.held &= (uint16_t) ~(1u << rank);
}

static const uint64_t LOCK_PASS_NS = 50000; /* for a sleeper to wake up and take the lock */

void hak_lock_pass(hak_lock_rank_t rank) {
    if (!lock_own.is_forking && hak_load_relaxed(&hak_locks[rank].state) == 2) {
        hak_lock_release(rank);
        hak_os_sleep(LOCK_PASS_NS);
        hak_lock_acquire(rank);
    }
}

/* --- locks of owners -------------------------------------------------------------------------- */

void hak_lock_add(hak_owner_lock_t *owner_lock) {
    owner_lock->next = hak_load_relaxed(&hak_owner_locks);
    hak_store_release(&hak_owner_locks, owner_lock); /* pairs OWNER-LOCKS */
}

static void lock_forget_owner(void) {
    lock_own.owner = lock_own.before;
    lock_own.before = NULL;
}

/* One thread needs no atomic operations: pthread_create orders the store before a second thread. */
static bool lock_try(uint32_t *is_taken) {
    if (hak_libc_is_single() && hak_load_relaxed(is_taken) == 0) {
        hak_store_relaxed(is_taken, 1);
        return true;
    }
    return lock_take(is_taken);
}

/* Whether this thread is forking and its fork holds the lock. */
static bool lock_is_passed(const hak_owner_lock_t *owner_lock) {
    return lock_own.is_forking && hak_load_relaxed(&owner_lock->forked_by) == &lock_own.forked;
}

/* A thread records an owner's lock before it takes it, and forgets it after the release: a signal
 * handler that forks in between must not wait for it. */
bool hak_lock_try(hak_owner_lock_t *owner_lock) {
    HAK_ASSERT(lock_own.held >> (HAK_LOCK_OWNER + 1) == 0 || lock_own.is_forking, "LOCK-1");
    if (HAK_UNLIKELY(lock_own.before != NULL)) {
        return lock_is_passed(owner_lock);
    }
    lock_own.before = lock_own.owner;
    lock_own.owner = owner_lock;
    HAK_SIGNAL_FENCE();
    if (HAK_UNLIKELY(!lock_try(&owner_lock->is_taken))) {
        lock_forget_owner();
        hak_contention_refused(owner_lock->count, hak_contention_now());
        return lock_is_passed(owner_lock);
    }
    HAK_SIGNAL_FENCE();
    hak_contention_taken(owner_lock->count);
    return true;
}

void hak_lock_unlock(hak_owner_lock_t *owner_lock) {
    if (HAK_UNLIKELY(lock_is_passed(owner_lock))) {
        return;
    }
    HAK_ASSERT(lock_own.owner == owner_lock, "LOCK-2 released by its holder");
    hak_contention_freed(owner_lock->count);
    hak_store_release(&owner_lock->is_taken, 0); /* pairs LOCK */
    HAK_SIGNAL_FENCE();
    lock_forget_owner();
}

void hak_lock_unlock_owners(void) {
    hak_in_unlocked_update = 0;
    while (lock_own.owner != NULL) {
        hak_lock_unlock(lock_own.owner);
    }
}

bool hak_lock_holds(hak_lock_rank_t rank) {
    return (lock_own.held & ~lock_own.waiting) >> rank & 1;
}

bool hak_lock_holds_owners_at_most(void) {
    return lock_own.held == 0;
}

bool hak_lock_holds_none(void) {
    return hak_lock_holds_owners_at_most() && lock_own.owner == NULL;
}

/* --- fork ------------------------------------------------------------------------------------- */

enum {
    FORK_NAPS = 10000,       /* about a second, for an owner or the fallback tcache */
    FORK_HANDLER_NAPS = 100, /* for any lock, inside a section */
};
static const uint64_t FORK_NAP_NS = 100000;

static bool lock_fork_take(uint32_t *state, unsigned naps) {
    for (unsigned i = 0; !lock_take(state); i++) {
        if (i >= LOCK_SPINS + naps) {
            return false;
        }
        if (i < LOCK_SPINS) {
            hak_os_relax();
        } else {
            hak_os_sleep(FORK_NAP_NS);
        }
    }
    return true;
}

/* Two threads may fork: forked_by names the thread that took a lock, and alone releases it. */
static void lock_fork_owners(unsigned naps) {
    /* pairs OWNER-LOCKS */
    for (hak_owner_lock_t *l = hak_load_acquire(&hak_owner_locks); l != NULL; l = l->next) {
        unsigned patience = hak_load_relaxed(&l->has_refused_fork) ? FORK_HANDLER_NAPS : naps;
        if (l == lock_own.owner || l == lock_own.before) {
            continue;
        }
        bool is_taken = lock_fork_take(&l->is_taken, patience);
        hak_store_relaxed(&l->has_refused_fork, !is_taken);
        if (is_taken) {
            hak_store_relaxed(&l->forked_by, &lock_own.forked);
        }
    }
}

/* The holder of the fallback tcache's may meet a fatal error in a refill. */
static bool lock_fork_rank(hak_lock_rank_t rank, bool is_clean, bool may_fail) {
    if (!is_clean || rank == HAK_LOCK_FALLBACK) {
        return lock_fork_take(&hak_locks[rank].state, is_clean ? FORK_NAPS : FORK_HANDLER_NAPS);
    }
    if (may_fail) {
        return lock_fork_take(&hak_locks[rank].state, FORK_HANDLER_NAPS);
    }
    lock_own.held = 0; /* ranks ascend among those taken here */
    hak_lock_acquire(rank);
    return true;
}

/* A signal handler may fork while its own thread holds locks: it keeps them, and waits only briefly
 * for others, whose holder may be forking as well, and waiting for ours. */
bool hak_lock_fork_begin(bool may_fail) {
    uint16_t before = lock_own.held;
    uint16_t own = before & (uint16_t)~lock_own.waiting;
    bool is_clean = before == 0 && lock_own.owner == NULL, is_begun = true;
    uint16_t forked = 0;
    for (unsigned rank = 0; is_begun && rank < HAK_LOCK_COUNT; rank++) {
        if ((own >> rank & 1) == 0 && lock_fork_rank((hak_lock_rank_t)rank, is_clean, may_fail)) {
            forked |= (uint16_t)(1u << rank);
        } else {
            is_begun = !is_clean || !may_fail || rank == HAK_LOCK_FALLBACK;
        }
        if (rank == HAK_LOCK_OWNER && is_begun) {
            lock_fork_owners(is_clean ? FORK_NAPS : FORK_HANDLER_NAPS);
        }
    }
    lock_own.forked = forked;
    lock_own.held = before;
    lock_own.is_forking = true;
    hak_lock_fork_is_clean = is_clean && hak_in_unlocked_update == 0;
    if (!is_begun) {
        hak_lock_fork_end(false);
    }
    return is_begun;
}

bool hak_lock_fork_lacks(const hak_owner_lock_t *owner_lock) {
    return hak_load_relaxed(&owner_lock->is_taken) != 0 &&
           hak_load_relaxed(&owner_lock->forked_by) != &lock_own.forked;
}

bool hak_lock_fork_lacks_any(void) {
    /* pairs OWNER-LOCKS */
    for (hak_owner_lock_t *l = hak_load_acquire(&hak_owner_locks); l != NULL; l = l->next) {
        if (hak_lock_fork_lacks(l)) {
            return true;
        }
    }
    return false;
}

/* In the child, locks of other threads become free: those are gone, and the fork was not clean. */
void hak_lock_fork_end(bool is_child) {
    uint16_t own = lock_own.held & (uint16_t)~lock_own.waiting;
    lock_own.is_forking = false;
    /* pairs OWNER-LOCKS */
    for (hak_owner_lock_t *l = hak_load_acquire(&hak_owner_locks); l != NULL; l = l->next) {
        if (hak_load_relaxed(&l->forked_by) == &lock_own.forked) {
            hak_store_relaxed(&l->forked_by, NULL);
            hak_store_release(&l->is_taken, 0); /* pairs LOCK */
        }
    }
    for (unsigned rank = HAK_LOCK_COUNT; rank-- > 0;) {
        if ((lock_own.forked >> rank & 1) != 0 || (is_child && (own >> rank & 1) == 0)) {
            if (is_child) {
                hak_store_relaxed(&hak_locks[rank].state, 1); /* no sleepers left to wake */
            }
            lock_free(&hak_locks[rank]);
        }
    }
}
