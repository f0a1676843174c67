/* SPDX-License-Identifier: MIT
 *
 * Three-state futex mutex: spin a little (critical sections are short), then sleep. */
#include "os/lock.h"

#include "base/atomics.h"
#include "base/check.h"
#include "os/os.h"

hak_lock_t hak_locks[HAK_LOCK_COUNT];
HAK_LOCKED_STATE hak_owner_lock_t *hak_owner_locks; /* [lock REGISTRY] newest first */

/* The C library's: no other thread exists, and none can appear but through this one. NULL where it
 * does not tell. */
extern char __libc_single_threaded HAK_WEAK;

static HAK_TLS bool lock_is_forking; /* [owner] this thread holds every lock */
static HAK_TLS uint8_t lock_held;    /* [owner] bit per rank held, or about to be, by this thread */
static HAK_TLS uint8_t lock_forked;  /* [owner] bit per rank that hak_lock_fork_begin took */
/* [owner] locks of owners held, or about to be, by this thread */
static HAK_TLS hak_owner_lock_t *lock_owner_held[2];

_Static_assert(HAK_LOCK_COUNT <= 8, "a bit per rank");

static void lock_note_acquire(hak_lock_rank_t rank) {
    HAK_ASSERT((lock_held >> rank) == 0, "LOCK-1 ranks ascend");
    lock_held |= (uint8_t)(1u << rank);
}

static void lock_note_release(hak_lock_rank_t rank) {
    HAK_ASSERT((lock_held >> rank) & 1, "LOCK-2 released by its holder");
    lock_held &= (uint8_t) ~(1u << rank);
}

/* Spins before sleeping; the sections protected are about as long as a few dozen of these. */
enum { LOCK_SPINS = 100 };

static HAK_NOINLINE void lock_acquire_contended(hak_lock_t *lock) {
    for (unsigned spin = 0; spin < LOCK_SPINS; spin++) {
        uint32_t expected = 0;
        if (hak_load_relaxed(&lock->state) == 0 && hak_cas_acquire(&lock->state, &expected, 1)) {
            return;
        }
        hak_os_relax();
    }
    while (hak_swap_acquire(&lock->state, 2) != 0) {
        hak_os_wait(&lock->state, 2);
    }
}

void hak_lock_acquire(hak_lock_rank_t rank) {
    hak_lock_t *lock = &hak_locks[rank];
    uint32_t expected = 0;
    if (HAK_UNLIKELY(lock_is_forking)) {
        return;
    }
    lock_note_acquire(rank);
    if (HAK_UNLIKELY(!hak_cas_acquire(&lock->state, &expected, 1))) {
        lock_acquire_contended(lock);
    }
}

static void lock_free(hak_lock_t *lock) {
    if (HAK_UNLIKELY(hak_swap_release(&lock->state, 0) == 2)) {
        hak_os_wake_one(&lock->state);
    }
}

void hak_lock_release(hak_lock_rank_t rank) {
    if (HAK_UNLIKELY(lock_is_forking)) {
        return;
    }
    lock_free(&hak_locks[rank]);
    lock_note_release(rank);
}

/* --- locks of owners -------------------------------------------------------------------------- */

void hak_lock_add(hak_owner_lock_t *owner_lock) {
    owner_lock->next = hak_owner_locks;
    hak_owner_locks = owner_lock;
}

/* What follows is noted before the lock is taken, and forgotten after it is free: a signal handler
 * that forks in between must not wait for it. */
static void lock_note_owner(hak_owner_lock_t *owner_lock) {
    HAK_ASSERT(lock_held >> (HAK_LOCK_OWNER + 1) == 0, "LOCK-1 ranks ascend");
    HAK_ASSERT(lock_owner_held[1] == NULL, "LOCK-3 two owners at most");
    lock_owner_held[1] = lock_owner_held[0];
    lock_owner_held[0] = owner_lock;
}

static void lock_forget_owner(const hak_owner_lock_t *owner_lock) {
    HAK_ASSERT(lock_owner_held[0] == owner_lock, "LOCK-2 released by its holder");
    (void)owner_lock;
    lock_owner_held[0] = lock_owner_held[1];
    lock_owner_held[1] = NULL;
}

/* A process with one thread needs no atomic operations. A second thread starts after the store, by
 * whatever pthread_create orders. */
HAK_INLINE bool lock_is_single(void) {
    return &__libc_single_threaded != NULL && hak_load_relaxed(&__libc_single_threaded) != 0;
}

static bool lock_try(hak_lock_t *lock) {
    uint32_t expected = 0;
    if (lock_is_single() && hak_load_relaxed(&lock->state) == 0) {
        hak_store_relaxed(&lock->state, 1);
        return true;
    }
    return hak_cas_acquire(&lock->state, &expected, 1);
}

bool hak_lock_try(hak_owner_lock_t *owner_lock) {
    if (HAK_UNLIKELY(lock_is_forking)) {
        return true;
    }
    lock_note_owner(owner_lock);
    if (HAK_UNLIKELY(!lock_try(&owner_lock->lock))) {
        lock_forget_owner(owner_lock);
        return false;
    }
    return true;
}

void hak_lock_wait(hak_owner_lock_t *owner_lock) {
    if (HAK_UNLIKELY(lock_is_forking)) {
        return;
    }
    lock_note_owner(owner_lock);
    if (!lock_try(&owner_lock->lock)) {
        lock_acquire_contended(&owner_lock->lock);
    }
}

void hak_lock_leave(hak_owner_lock_t *owner_lock) {
    if (HAK_UNLIKELY(lock_is_forking)) {
        return;
    }
    if (lock_is_single()) {
        hak_store_relaxed(&owner_lock->lock.state, 0);
    } else {
        lock_free(&owner_lock->lock);
    }
    lock_forget_owner(owner_lock);
}

void hak_lock_leave_owners(void) {
    while (lock_owner_held[0] != NULL) {
        hak_lock_leave(lock_owner_held[0]);
    }
}

/* --- fork --------------------------------------------------------------------------------------
 */

static bool lock_is_held_owner(const hak_owner_lock_t *owner_lock) {
    return owner_lock == lock_owner_held[0] || owner_lock == lock_owner_held[1];
}

/* From inside a locked section nothing may be waited for long: who has it may be about to fork as
 * well, and wait for ours. What stays taken is passed over by the child, as by everybody. */
static bool lock_fork_try(hak_lock_t *lock) {
    for (unsigned i = 0; i < LOCK_SPINS; i++) {
        uint32_t expected = 0;
        if (hak_cas_acquire(&lock->state, &expected, 1)) {
            return true;
        }
        hak_os_yield();
    }
    return false;
}

static void lock_fork_owners(bool is_clean) {
    for (hak_owner_lock_t *l = hak_owner_locks; l != NULL; l = l->next) {
        l->is_forked = true;
        if (is_clean) {
            lock_acquire_contended(&l->lock);
        } else {
            l->is_forked = !lock_is_held_owner(l) && lock_fork_try(&l->lock);
        }
    }
}

/* A signal handler may fork while this very thread holds a lock: it keeps what it has. */
bool hak_lock_fork_begin(void) {
    uint8_t before = lock_held;
    bool is_clean = before == 0 && lock_owner_held[0] == NULL;
    for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
        if ((before >> rank & 1) == 0) {
            lock_held = 0; /* ranks ascend among those taken here */
            hak_lock_acquire((hak_lock_rank_t)rank);
        }
        if (rank == HAK_LOCK_OWNER) {
            lock_fork_owners(is_clean);
        }
    }
    lock_forked = (uint8_t)~before;
    lock_held = before;
    lock_is_forking = true;
    return is_clean;
}

void hak_lock_fork_end(bool is_child) {
    uint8_t before = lock_held;
    lock_is_forking = false;
    for (hak_owner_lock_t *l = hak_owner_locks; l != NULL; l = l->next) {
        if (l->is_forked) {
            if (is_child) {
                hak_store_relaxed(&l->lock.state, 1);
            }
            lock_free(&l->lock);
        }
    }
    for (unsigned rank = HAK_LOCK_COUNT; rank-- > 0;) {
        if ((lock_forked >> rank & 1) != 0) {
            if (is_child) {
                hak_store_relaxed(&hak_locks[rank].state, 1); /* no sleepers left to wake */
            }
            lock_held = (uint8_t)(1u << rank);
            hak_lock_release((hak_lock_rank_t)rank);
        }
    }
    lock_held = before;
}
