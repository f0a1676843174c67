/* SPDX-License-Identifier: MIT
 *
 * Three-state futex mutex: spin a little (critical sections are short), then sleep. */
#include "os/lock.h"

#include "base/atomics.h"
#include "base/check.h"
#include "os/os.h"

hak_lock_t hak_locks[HAK_LOCK_COUNT];

static HAK_TLS bool lock_is_forking; /* [owner] this thread holds every lock */

#if HAK_AUDIT
static HAK_TLS uint32_t lock_held; /* [owner] bit per rank held by this thread */
#endif

static void lock_note_acquire(hak_lock_rank_t rank) {
    (void)rank;
#if HAK_AUDIT
    HAK_ASSERT((lock_held >> rank) == 0, "LOCK-1 ranks ascend");
    lock_held |= 1u << rank;
#endif
}

static void lock_note_release(hak_lock_rank_t rank) {
    (void)rank;
#if HAK_AUDIT
    HAK_ASSERT((lock_held >> rank) & 1, "LOCK-2 released by its holder");
    lock_held &= ~(1u << rank);
#endif
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

void hak_lock_release(hak_lock_rank_t rank) {
    hak_lock_t *lock = &hak_locks[rank];
    if (HAK_UNLIKELY(lock_is_forking)) {
        return;
    }
    lock_note_release(rank);
    if (HAK_UNLIKELY(hak_swap_release(&lock->state, 0) == 2)) {
        hak_os_wake_one(&lock->state);
    }
}

void hak_lock_fork_begin(void) {
    for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
        hak_lock_acquire((hak_lock_rank_t)rank);
    }
    lock_is_forking = true;
}

void hak_lock_fork_end(bool is_child) {
    lock_is_forking = false;
    for (unsigned rank = HAK_LOCK_COUNT; rank-- > 0;) {
        if (is_child) {
            hak_store_relaxed(&hak_locks[rank].state, 1); /* no sleepers left to wake */
        }
        hak_lock_release((hak_lock_rank_t)rank);
    }
}
