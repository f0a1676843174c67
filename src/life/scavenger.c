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
#include "front/budget.h"
#include "front/event.h"
#include "front/fast.h"
#include "life/life.h"
#include "life/thread.h"
#include "os/os.h"

enum { SCAVENGER_NAP_NS = HAK_EVENT_STEP_NS + 5000000 }; /* a step; the clock is coarse */

static uint32_t scavenger_is_there; /* [atomic] it runs, or could not be started */
static uint64_t scavenger_signals;  /* [atomic] mask of the thread that started it */

static bool scavenger_is_wanted(void) {
    return hak_load_relaxed(&hak_knobs.scavenger) && hak_budget_has_threads();
}

static HAK_COLD void *scavenger_main(void *unused) {
    hak_life_thread_begin();
    pthread_detach(pthread_self());
    do {
        while (scavenger_is_wanted()) {
            hak_os_sleep(SCAVENGER_NAP_NS);
            hak_event_pass_time();
        }
        hak_store_relaxed(&scavenger_is_there, 0);
    } while (scavenger_is_wanted() && hak_swap_relaxed(&scavenger_is_there, 1) == 0);
    hak_os_restore_signals(hak_load_relaxed(&scavenger_signals));
    return unused;
}

void hak_life_scavenge(hak_tcache_t *tcache) {
    if (hak_load_relaxed(&hak_knobs.scavenger) && hak_life_may_start(tcache) &&
        hak_load_relaxed(&scavenger_is_there) == 0 &&
        hak_swap_relaxed(&scavenger_is_there, 1) == 0 &&
        !hak_life_thread_create(scavenger_main, &scavenger_signals)) {
        hak_warn("scavenger: no thread could be started; memory goes back as the program runs");
    }
}

void hak_life_scavenger_after_fork(void) {
    hak_store_relaxed(&scavenger_is_there, 0);
}
