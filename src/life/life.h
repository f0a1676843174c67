/* SPDX-License-Identifier: MIT
 *
 * Process start, thread start and exit, fork: the one place where the ranks are wired together.
 * The up-calls of front/event.h are defined here. */
#ifndef HAK_LIFE_LIFE_H
#define HAK_LIFE_LIFE_H

#include "base/words.h"

/* Arranges the thread exit hook; part of process start. */
void hak_life_thread_init(void);
/* Until the second call, which takes the result of the first one, the thread has no tcache and gets
 * none: it allocates from the fallback tcache. */
uintptr_t hak_life_detour_begin(void);
void hak_life_detour_end(uintptr_t tcache);
/* An event: starts the scavenger, if there shall be one and is none. */
void hak_life_scavenge(hak_tcache_t *tcache);
/* In the child of a fork. */
void hak_life_scavenger_after_fork(void);
/* The control channel and the report at exit; part of process start, and, when the C library is up,
 * of the start of the program. */
void hak_life_control_init(void);
void hak_life_control_begin(void);
/* In the child of a fork. */
void hak_life_control_after_fork(void);
/* Registers the fork handlers; part of process start. */
void hak_life_fork_init(void);
/* Finds the allocator behind ours and fills hak_underlying_allocator. */
void hak_life_underlying_init(void);
/* Hardened builds: makes data that never changes after process start read-only. */
void hak_life_seal(void);
/* Whether force_libc can be honoured: the C library's own functions can be named. */
bool hak_life_underlying_has_libc(void);

#endif
