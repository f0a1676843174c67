/* SPDX-License-Identifier: MIT
 *
 * Three-state futex mutex: spin a little (critical sections are short), then sleep. */
#include "os/lock.h"

#include "base/atomics.h"
#include "base/check.h"
#include "os/os.h"

hak_lock_t hak_locks[HAK_LOCK_COUNT];

static HAK_TLS bool lock_is_forking; /* [owner] this thread holds every lock */
static HAK_TLS uint8_t lock_held;    /* [owner] bit per rank held, or about to be, by this thread */
static HAK_TLS uint8_t lock_forked;  /* [owner] bit per rank that hak_lock_fork_begin took */

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

void hak_lock_release(hak_lock_rank_t rank) {
    hak_lock_t *lock = &hak_locks[rank];
    if (HAK_UNLIKELY(lock_is_forking)) {
        return;
    }
    if (HAK_UNLIKELY(hak_swap_release(&lock->state, 0) == 2)) {
        hak_os_wake_one(&lock->state);
    }
    lock_note_release(rank);
}

/* A signal handler may fork while this very thread holds a lock: it keeps what it has. */
bool hak_lock_fork_begin(void) {
    uint8_t before = lock_held;
    for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
        if ((before >> rank & 1) == 0) {
            lock_held = 0; /* ranks ascend among those taken here */
            hak_lock_acquire((hak_lock_rank_t)rank);
        }
    }
    lock_forked = (uint8_t)~before;
    lock_held = before;
    lock_is_forking = true;
    return before == 0;
}

void hak_lock_fork_end(bool is_child) {
    uint8_t before = lock_held;
    lock_is_forking = false;
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
