/* SPDX-License-Identifier: MIT
 *
 * fork() in a process with threads: every lock is taken, in the order of ranks, so the child gets
 * structures at rest. The child's only thread goes on with its tcache. */
#include "front/event.h"
#include "front/tcache.h"
#include "guard/guard.h"
#include "life/life.h"
#include "os/lock.h"
#include "os/os.h"
#include "policy/policy.h"

#include <pthread.h>

static HAK_TLS uint64_t fork_signals; /* [owner] the mask before */

/* Our handler is the last before the fork and the first behind it; no signal comes in between. */
static HAK_COLD void fork_prepare(void) {
    fork_signals = hak_os_block_signals();
    hak_lock_fork_begin();
}

static HAK_COLD void fork_parent(void) {
    hak_lock_fork_end(false);
    hak_os_restore_signals(fork_signals);
}

static HAK_COLD void fork_child(void) {
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
