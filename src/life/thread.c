/* SPDX-License-Identifier: MIT
 *
 * A thread gets its tcache on its first slow path and gives it up in the last round of its
 * thread-specific destructors, so that other destructors still find it. What the C library frees
 * after that goes through the guest tcache. */
#include "base/knobs.h"
#include "front/event.h"
#include "front/tcache.h"
#include "life/life.h"

#include <pthread.h>

/* POSIX promises at least 4 rounds of destructors; ours renews itself to run in the last. Under
 * ThreadSanitizer, whose own state is gone by then, in the last but one. */
enum { EXIT_ROUNDS = HAK_TSAN ? 3 : 4 };

static pthread_key_t exit_key; /* [init] */
static bool has_exit_key;      /* [init] */

static HAK_TLS uint8_t exit_rounds; /* [owner] destructor rounds seen; EXIT_ROUNDS: it is over */

/* The value only says that there is one: libraries loaded into another namespace (dlmopen) have key
 * tables of their own but share the slots of the thread, so it may be that of another copy of us.
 */
static void thread_exit(void *value) {
    if (++exit_rounds < EXIT_ROUNDS && pthread_setspecific(exit_key, value) == 0) {
        return;
    }
    exit_rounds = EXIT_ROUNDS;
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache)) {
        hak_tcache_detach(tcache);
    }
}

void hak_life_thread_init(void) {
    has_exit_key = pthread_key_create(&exit_key, thread_exit) == 0;
}

hak_tcache_t *hak_life_thread_start(void) {
    hak_life_process_start();
    if (hak_load_relaxed(&hak_knobs.force_libc) || exit_rounds == EXIT_ROUNDS) {
        return NULL;
    }
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache)) {
        return tcache; /* process start allocated on the way */
    }
    tcache = hak_tcache_attach();
    if (tcache != NULL && has_exit_key) {
        pthread_setspecific(exit_key, tcache);
    }
    return tcache;
}
