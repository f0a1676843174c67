/* SPDX-License-Identifier: MIT
 *
 * A signal for a thread that waits for a lock. */
#ifndef HAK_TEST_UNIT_LOCK_WAITER_H
#define HAK_TEST_UNIT_LOCK_WAITER_H

#include "os/lock.h"
#include "unit/unit.h"

/* The caller holds the lock, for which the thread will wait. It is signalled then, the lock
 * released, and the thread joined. The kernel calls the handler of a signal that is not blocked
 * before the thread goes on. */
static inline void unit_signal_waiter(hak_lock_rank_t lock, pthread_t thread, int signal) {
    while (hak_load_relaxed(&hak_locks[lock].state) != 2) {
        sched_yield();
    }
    pthread_kill(thread, signal);
    hak_lock_release(lock);
    pthread_join(thread, NULL);
}

#endif
