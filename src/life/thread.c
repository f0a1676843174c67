/* SPDX-License-Identifier: MIT
 *
 * A thread gets its tcache on its first slow path and detaches it in its thread-specific
 * destructor. Later allocations, of other destructors and of the C library, use the fallback
 * tcache; frees need no tcache. */
#include "base/knobs.h"
#include "front/abandoned.h"
#include "front/attach.h"
#include "front/fast.h"
#include "front/flush.h"
#include "life/life.h"
#include "os/lock.h"

#include <errno.h>
#include <pthread.h>

enum { END_SLABS = 256 }; /* of each owner, at the end of the process */

static pthread_key_t exit_key; /* [init] */
static bool has_exit_key;      /* [init] */

/* The value only marks that a tcache exists: libraries in another namespace (dlmopen) have their
 * own key tables but share the thread's slots, so the value may be another copy's. A signal handler
 * may allocate, as it interrupts no call of ours: it would wait for locks of its own thread. */
static void thread_exit(void *value) {
    (void)value;
    hak_thread_self.has_exited = true;
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache)) {
        uint64_t signals = hak_os_block_signals();
        bool is_due = hak_tcache_detach(tcache);
        hak_os_restore_signals(signals);
        if (is_due) {
            hak_tcache_trim(); /* lets handlers in between its pieces */
        }
    }
}

void hak_life_thread_init(void) {
    int (*create)(pthread_key_t *, void (*)(void *)) = pthread_key_create;
    HAK_OPAQUE(create); /* NULL in a program that can have no threads: os/libc.h */
    has_exit_key = create != NULL && create(&exit_key, thread_exit) == 0;
}

/* What other threads freed, and waits: a block that was freed twice is found. */
static void end_merge(hak_owner_t *owner, void *unused) {
    (void)unused;
    if (hak_remote_is_pending(owner) && hak_owner_try_lock(owner)) {
        hak_remote_merge(owner, END_SLABS);
        hak_owner_unlock(owner);
    }
}

/* The thread that ends the process keeps its tcache; a signal handler may end it inside of an
 * operation. The library is initialised first, so the destructors of others have run. Signals stay
 * open, as a sandbox may kill for blocking them. A handler that allocates gets the fallback tcache
 * while lists are read, and then another owner; the child of one that forks has no tcache. */
__attribute__((destructor(101))) static void process_end(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    uintptr_t offset = hak_tcache_offset;
    if (hak_tcache_is_empty(tcache) || !hak_lock_holds_none() || hak_in_unlocked_update != 0) {
        return;
    }
    hak_thread_self.has_exited = true;
    HAK_SIGNAL_FENCE();
    hak_tcache_offset = 0;
    HAK_SIGNAL_FENCE();
    hak_tcache_inspect(tcache);
    HAK_SIGNAL_FENCE();
    hak_tcache_offset = offset;
    HAK_SIGNAL_FENCE();
    if (!tcache->is_attached) {
        hak_tcache_offset = 0;
    }
    hak_owner_visit(end_merge, NULL);
    hak_owner_t *sampled = hak_load_acquire(&hak_owner_sampled); /* pairs OWNERS */
    if (sampled != NULL) {
        end_merge(sampled, NULL);
    }
}

hak_tcache_t *hak_life_thread_attach(void) {
    hak_tcache_t *tcache = hak_tcache_attach();
    int saved = errno;
    if (tcache != NULL && has_exit_key && pthread_setspecific(exit_key, tcache) != 0) {
        (void)hak_tcache_detach(tcache); /* the thread's end would not detach it */
        tcache = NULL;
    }
    errno = saved;
    return tcache;
}
