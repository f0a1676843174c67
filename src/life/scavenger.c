/* SPDX-License-Identifier: MIT
 *
 * The scavenger (option `scavenger`): a thread that does what events do as time passes, so that a
 * process in which nothing happens gives its memory back, too.
 *
 * An event of an allocation starts it: by then the C library is up, and no lock of ours is held.
 * Not one of a free: the C library frees under locks of its own that making a thread needs. The
 * thread that the event runs in is in the middle of an operation on its tcache, and making a thread
 * allocates: from the guest's tcache.
 *
 * It ends by itself when no thread has a tcache: main may have left by pthread_exit, and then the
 * process ends with its last thread, which runs what is registered for exit: so it has a stack of
 * the usual size, and the program's signals back. An event of a later thread starts it anew, and
 * one in the child of a fork, where it is gone. */
#include "base/atomics.h"
#include "base/check.h"
#include "base/knobs.h"
#include "front/event.h"
#include "life/life.h"
#include "os/os.h"

#include <errno.h>
#include <pthread.h>

enum { SCAVENGER_NAP_NS = HAK_EVENT_STEP_NS + 5000000 }; /* the clock is coarse */

static uint32_t scavenger_is_there; /* [atomic] or could not be started */
static uint64_t scavenger_signals;  /* [atomic] the mask of who started it */

static void *scavenger_main(void *unused) {
    (void)unused;
    uintptr_t tcache = hak_life_detour_begin(); /* for good: it would count as the program's */
    if (tcache != 0) {
        hak_tcache_detach((hak_tcache_t *)(tcache + hak_pagemap_base()));
    }
    pthread_setname_np(pthread_self(), "hakmem");
    do {
        while (hak_budget_has_threads()) {
            hak_os_sleep(SCAVENGER_NAP_NS);
            hak_event_pass_time();
        }
        hak_store_release(&scavenger_is_there, 0);
    } while (hak_budget_has_threads() && hak_swap_acquire(&scavenger_is_there, 1) == 0);
    hak_os_restore_signals(hak_load_relaxed(&scavenger_signals));
    return NULL;
}

static bool scavenger_create(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    bool is_done = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                   pthread_create(&thread, &attributes, scavenger_main, NULL) == 0;
    pthread_attr_destroy(&attributes);
    return is_done;
}

/* The program's signals are not for it: it inherits the mask. */
static HAK_COLD void scavenger_start(void) {
    int saved = errno;
    uint64_t signals = hak_os_block_signals();
    hak_store_relaxed(&scavenger_signals, signals);
    uintptr_t tcache = hak_life_detour_begin();
    bool is_done = scavenger_create();
    hak_life_detour_end(tcache);
    hak_os_restore_signals(signals);
    errno = saved;
    if (!is_done) {
        hak_warn("scavenger: no thread could be started; memory goes back as the program runs");
    }
}

void hak_life_scavenge(hak_tcache_t *tcache) {
    /* the guest's tcache is in use already, and the scavenger has none */
    bool is_right = tcache == hak_tcache_self(hak_pagemap_base()) && tcache->is_refilling;
    if (hak_load_relaxed(&hak_knobs.scavenger) && is_right &&
        hak_load_relaxed(&scavenger_is_there) == 0 &&
        hak_swap_acquire(&scavenger_is_there, 1) == 0) {
        scavenger_start();
    }
}

void hak_life_scavenger_after_fork(void) {
    hak_store_relaxed(&scavenger_is_there, 0);
}
