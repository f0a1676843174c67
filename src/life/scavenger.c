/* SPDX-License-Identifier: MIT
 *
 * The scavenger (option `scavenger`): a thread that runs the events of time, so that an idle
 * process gives its memory back, too.
 *
 * An event of an allocation starts it: the C library is up by then, and no lock of ours is held.
 * Not an event of a free: the C library frees under locks that creating a thread needs. Creating a
 * thread allocates, and the event's thread is inside an operation on its tcache: the fallback
 * tcache serves it.
 *
 * It ends when the option is switched off, and when no thread has a tcache: after main left by
 * pthread_exit, the last thread to end runs the exit handlers. So it has a stack of the usual size,
 * and restores the program's signals. An event of a later thread starts it anew, also in the child
 * of a fork. */
#include "base/atomics.h"
#include "base/check.h"
#include "base/knobs.h"
#include "front/attach.h"
#include "front/budget.h"
#include "front/event.h"
#include "front/fast.h"
#include "life/life.h"
#include "os/libc.h"
#include "os/os.h"

#include <errno.h>
#include <pthread.h>

enum { SCAVENGER_NAP_NS = HAK_EVENT_STEP_NS + 5000000 }; /* a step; the clock is coarse */

static uint32_t scavenger_is_there; /* [atomic] it runs, or could not be started */
static uint64_t scavenger_signals;  /* [atomic] mask of the thread that started it */
uint64_t hak_life_scavenger_runs;   /* [atomic] */

static bool scavenger_is_wanted(void) {
    return hak_load_relaxed(&hak_knobs.scavenger) && hak_load_relaxed(&hak_budget_threads) != 0;
}

/* From now on the thread has no tcache and gets none: the fallback tcache serves it. */
static uintptr_t detour_begin(void) {
    uintptr_t tcache = hak_tcache_offset;
    hak_thread_self.has_exited = true;
    hak_tcache_offset = 0;
    return tcache;
}

static HAK_COLD void *scavenger_main(void *unused) {
    uintptr_t tcache = detour_begin(); /* for good: it would count as the program's */
    if (tcache != 0) {
        (void)hak_tcache_detach((hak_tcache_t *)(tcache + hak_pagemap_base()));
    }
    pthread_setname_np(pthread_self(), "hakmem");
    pthread_detach(pthread_self());
    do {
        while (scavenger_is_wanted()) {
            hak_os_sleep(SCAVENGER_NAP_NS);
            hak_event_pass_time();
            (void)hak_add_relaxed(&hak_life_scavenger_runs, 1);
        }
        hak_store_relaxed(&scavenger_is_there, 0);
    } while (scavenger_is_wanted() && hak_swap_relaxed(&scavenger_is_there, 1) == 0);
    hak_os_restore_signals(hak_load_relaxed(&scavenger_signals));
    return unused;
}

/* With all signals blocked: none is for it. */
static bool scavenger_start(void) {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = pthread_create;
    pthread_t thread;
    int saved = errno;
    uint64_t before = hak_os_block_signals();
    hak_store_relaxed(&scavenger_signals, before);
    uintptr_t tcache = detour_begin();
    HAK_OPAQUE(create); /* NULL in a program that can have no threads: os/libc.h */
    bool is_done = create != NULL && create(&thread, NULL, scavenger_main, NULL) == 0;
    hak_tcache_offset = tcache;
    hak_thread_self.has_exited = false;
    hak_os_restore_signals(before);
    errno = saved;
    return is_done;
}

/* Inside an allocation by the caller's own tcache the C library is up, and the fallback tcache is
 * not in use. */
void hak_life_scavenge(hak_tcache_t *tcache) {
    if (hak_load_relaxed(&hak_knobs.scavenger) && tcache == hak_tcache_self(hak_pagemap_base()) &&
        tcache->is_refilling && hak_load_relaxed(&scavenger_is_there) == 0 &&
        hak_swap_relaxed(&scavenger_is_there, 1) == 0 && !scavenger_start()) {
        hak_warn("scavenger: no thread could be started; memory goes back as the program runs");
    }
}

void hak_life_scavenger_after_fork(void) {
    hak_store_relaxed(&scavenger_is_there, 0);
}
