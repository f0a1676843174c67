/* SPDX-License-Identifier: MIT
 *
 * Our own thread: without a tcache, with all signals blocked, invisible to the program. */
#ifndef HAK_LIFE_THREAD_H
#define HAK_LIFE_THREAD_H

#include "base/words.h"

#include <pthread.h>

/* Whether the caller is inside an allocation by its own tcache: then the C library is up, and the
 * fallback tcache, which serves the creation of a thread, is not in use. */
bool hak_life_may_start(const hak_tcache_t *tcache);
/* Starts a thread with all signals blocked; *signals gets the caller's mask, for a last thread that
 * runs the exit handlers. errno is left alone. */
bool hak_life_thread_create(void *(*run)(void *), uint64_t *signals);
/* The first call of such a thread. */
void hak_life_thread_begin(void);

#endif
