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

/* POSIX promises at least 4 rounds of destructors; ours renews itself to run in the last. */
enum { EXIT_ROUNDS = 4 };

static pthread_key_t exit_key; /* [init] */
static bool has_exit_key;      /* [init] */

static HAK_TLS uint8_t exit_rounds; /* [owner] destructor rounds seen; EXIT_ROUNDS: it is over */

static void thread_exit(void *tcache) {
    if (++exit_rounds < EXIT_ROUNDS && pthread_setspecific(exit_key, tcache) == 0) {
        return;
    }
    exit_rounds = EXIT_ROUNDS;
    hak_tcache_detach(tcache);
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
