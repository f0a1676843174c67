/* SPDX-License-Identifier: MIT
 *
 * Process start, thread start and exit, fork: the one place where the ranks are wired together.
 * The up-calls of front/upcalls.h are defined here. */
#ifndef HAK_LIFE_LIFE_H
#define HAK_LIFE_LIFE_H

#include "base/words.h"

/* Arranges the thread exit hook; part of process start. */
void hak_life_thread_init(void);
/* Registers the fork handlers; part of process start. */
void hak_life_fork_init(void);
/* Finds the allocator behind ours and fills hak_next_allocator. */
void hak_life_next_init(void);
/* Whether force_libc can be honoured: the C library's own functions can be named. */
bool hak_life_next_has_libc(void);

#endif
