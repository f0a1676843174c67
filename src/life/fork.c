/* SPDX-License-Identifier: MIT
 *
 * fork() in a process with threads: takes every lock, in the order of ranks, so the child gets
 * structures at rest. The child's only thread keeps its tcache.
 *
 * The C library's fork locks its list of streams after our handlers, and before its own malloc. A
 * holder of that lock, as in fflush(NULL), waits for streams, and a holder of a stream may
 * allocate. So we take the lock of the list before ours; it is recursive. The C library holds no
 * other lock across an allocation (glibc 2.17 to 2.42: name service), except the one of the list of
 * handlers, under which that list grows: docs/worst-cases.md.
 *
 * A static program of musl gets our locks where its fork would take those of musl's malloc: behind
 * the list of streams. */
#include "front/abandoned.h"
#include "front/event.h"
#include "guard/guard.h"
#include "life/life.h"
#include "os/libc.h"
#include "os/lock.h"
#include "os/optional.h"
#include "profile/profile.h"
#include "reclaim/reclaim.h"

#include "base/knobs.h"

static HAK_TLS uint64_t fork_signals; /* [thread] the mask before the fork */
static bool fork_has_streams;         /* [atomic] the fork in progress took the streams' lock */
static bool fork_has_threads;         /* [holder] of all our locks */
static bool fork_lacks_locks;         /* [lock of musl's handlers] hak_libc_fork_locks is to come */
static uint8_t fork_children;         /* depth of forks; written by a child's only thread; wraps */

/* Signals stay open while the thread waits, as in the C library: the holder of the lock may wait
 * for a signal's handler. That handler may fork, and the child return to here, where the lock is
 * free, as the C library resets it. A process with one thread does not take the lock: no other
 * thread holds it, and the C library does not reset it then. */
static bool fork_take_streams(void) {
    uint8_t children = fork_children;
    bool is_taken = hak_libc_lock_streams != NULL && !hak_libc_is_single();
    if (is_taken) {
        hak_libc_lock_streams();
    }
    fork_signals = hak_os_block_signals();
    if (is_taken && children != fork_children) {
        hak_libc_reset_streams();
        is_taken = false;
    }
    hak_store_relaxed(&fork_has_streams, is_taken);
    return is_taken;
}

static HAK_COLD bool fork_lock(bool may_fail) {
    if (!hak_lock_fork_begin(may_fail)) {
        return false;
    }
    fork_has_threads = !hak_libc_is_single();
    fork_lacks_locks = false;
    return true;
}

static HAK_COLD void fork_lock_last(int step) {
    if (step < 0 && fork_lacks_locks) {
        fork_lock(false);
    }
}

__typeof__(fork_lock_last) hak_libc_fork_locks __attribute__((cold, alias("fork_lock_last")));

static const uint64_t FORK_PAUSE_NS = 1000000; /* for another to get the lock of the streams */

/* Our handler is the last before the fork and the first after it; no signal comes in between. A
 * thread in one of our sections may be in a signal handler that forks, and wait for the streams:
 * a fork that took those and waits for our locks lets go of them now and then. */
static HAK_COLD void fork_prepare(void) {
    for (;;) {
        bool has_streams = fork_take_streams();
        if (hak_libc_has_fork_locks(fork_lock_last)) {
            fork_lacks_locks = true;
            return;
        }
        if (fork_lock(has_streams)) {
            return;
        }
        hak_libc_unlock_streams();
        hak_os_restore_signals(fork_signals);
        hak_os_sleep(FORK_PAUSE_NS);
    }
}

/* musl asks for no locks in a process of one thread. */
static HAK_COLD void fork_lock_if_lacking(void) {
    if (fork_lacks_locks) {
        fork_lock(false);
    }
}

static HAK_COLD void fork_parent(void) {
    fork_lock_if_lacking();
    hak_lock_fork_end(false);
    if (hak_load_relaxed(&fork_has_streams)) {
        hak_libc_unlock_streams();
    }
    hak_os_restore_signals(fork_signals);
}

static HAK_COLD void fork_child(void) {
    fork_lock_if_lacking();
    fork_children++;
    hak_libc_left_threads = hak_libc_left_threads || fork_has_threads;
    if (hak_load_relaxed(&fork_has_streams)) {
        hak_libc_reset_streams(); /* before 2.32 it may not count threads that ended */
    }
    hak_tcache_after_fork(hak_lock_fork_is_clean);
    hak_guard_after_fork(hak_lock_fork_is_clean);
    hak_profile_after_fork(hak_lock_fork_is_clean);
    hak_life_scavenger_after_fork();
    hak_life_mail_after_fork();
    if (hak_load_relaxed(&hak_knobs.observable)) {
        hak_os_let_observe();
    }
    hak_target_after_fork();
    hak_event_after_fork();
    hak_lock_fork_end(true);
    hak_os_restore_signals(fork_signals);
}

void hak_life_fork_init(void) {
    hak_libc_at_fork(fork_prepare, fork_parent, fork_child);
}
