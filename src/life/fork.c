/* SPDX-License-Identifier: MIT
 *
 * fork() in a process with threads: every lock is taken, in the order of ranks, so the child gets
 * structures at rest. The child's only thread goes on with its tcache.
 *
 * The C library's fork takes the lock of its list of streams behind our handlers, before the locks
 * of its own malloc: who has it, as in fflush(NULL), waits for streams, and who has locked one of
 * those may allocate. So we take that lock before ours, too; it is recursive. Others it holds
 * across no allocation (glibc 2.17 to 2.42: name service), but for the one of the list of handlers,
 * under which that list grows: docs/worst-cases.md. */
#include "front/event.h"
#include "front/tcache.h"
#include "guard/guard.h"
#include "life/life.h"
#include "os/lock.h"
#include "os/os.h"
#include "policy/policy.h"

#include <pthread.h>

/* Of glibc; NULL elsewhere. */
extern void _IO_list_lock(void) HAK_WEAK;
extern void _IO_list_unlock(void) HAK_WEAK;
extern void _IO_list_resetlock(void) HAK_WEAK;

static HAK_TLS uint64_t fork_signals; /* [owner] the mask before */
static bool fork_has_streams;         /* [lock of the streams] the fork under way took it */
static bool fork_has_threads;         /* [owner] of all our locks */
bool hak_life_fork_left_threads;
static uint8_t fork_children; /* [atomic] of how many forks the process is the child; wraps */

/* Signals can come while it waits, as in the C library: who has the lock may wait for the handler
 * of one. That handler may fork, and its child go on here: there the lock is free, as the C library
 * resets it. A process with one thread is left alone: nobody else has the lock, and the C library
 * does not reset it then. */
static void fork_take_streams(void) {
    uint8_t children = fork_children;
    bool is_taken = _IO_list_lock != NULL && !hak_lock_is_single();
    if (is_taken) {
        _IO_list_lock();
    }
    fork_signals = hak_os_block_signals();
    if (is_taken && children != fork_children) {
        _IO_list_resetlock();
        is_taken = false;
    }
    fork_has_streams = is_taken;
}

/* Our handler is the last before the fork and the first behind it; no signal comes in between. */
static HAK_COLD void fork_prepare(void) {
    fork_take_streams();
    hak_lock_fork_begin();
    fork_has_threads = !hak_lock_is_single();
}

static HAK_COLD void fork_parent(void) {
    hak_lock_fork_end(false);
    if (fork_has_streams) {
        _IO_list_unlock();
    }
    hak_os_restore_signals(fork_signals);
}

static HAK_COLD void fork_child(void) {
    fork_children++;
    hak_life_fork_left_threads = hak_life_fork_left_threads || fork_has_threads;
    if (fork_has_streams) {
        _IO_list_resetlock(); /* before 2.32 it may not know of threads that ended */
    }
    hak_tcache_after_fork(hak_lock_fork_is_clean);
    hak_guard_after_fork(hak_lock_fork_is_clean);
    hak_policy_after_fork();
    hak_life_scavenger_after_fork();
    hak_life_control_after_fork();
    hak_event_after_fork();
    hak_lock_fork_end(true);
    hak_os_restore_signals(fork_signals);
}

void hak_life_fork_init(void) {
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}
