/* SPDX-License-Identifier: MIT
 *
 * Threads of ours: none of them has a tcache, takes a signal of the program, or is seen by it. */
#ifndef HAK_LIFE_THREAD_H
#define HAK_LIFE_THREAD_H

#include "base/words.h"

#include <pthread.h>

/* Whether the caller is in the middle of an allocation through its own tcache: then the C library
 * is up, and the fallback tcache, from which making a thread allocates, is not in use. */
bool hak_life_may_start(const hak_tcache_t *tcache);
/* Starts one, with a stack of the usual size if stack_bytes is 0, or if the C library needs more
 * than that. It inherits the mask of signals: all are blocked. The caller's mask is
 * left in *signals, if that is not NULL: the last thread runs the exit handlers.
 * errno is left alone. */
bool hak_life_thread_create(void *(*run)(void *), pthread_t *thread, size_t stack_bytes,
                            uint64_t *signals);
/* First of all in such a thread. */
void hak_life_thread_begin(void);

#endif
