/* SPDX-License-Identifier: MIT
 *
 * fork() in a process with threads: every lock is taken, in the order of ranks, so the child gets
 * structures at rest. The child's only thread goes on with its tcache. */
#include "front/tcache.h"
#include "life/life.h"
#include "os/lock.h"

#include <pthread.h>

static void fork_prepare(void) {
    for (unsigned rank = 0; rank < HAK_LOCK_COUNT; rank++) {
        hak_lock_acquire((hak_lock_rank_t)rank);
    }
}

static void fork_parent(void) {
    for (unsigned rank = HAK_LOCK_COUNT; rank-- > 0;) {
        hak_lock_release((hak_lock_rank_t)rank);
    }
}

static void fork_child(void) {
    hak_tcache_after_fork();
    for (unsigned rank = HAK_LOCK_COUNT; rank-- > 0;) {
        hak_lock_reset((hak_lock_rank_t)rank);
    }
}

void hak_life_fork_init(void) {
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}
