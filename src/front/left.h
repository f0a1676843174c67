/* SPDX-License-Identifier: MIT
 *
 * Tcaches that a fork left in the child. */
#ifndef HAK_FRONT_LEFT_H
#define HAK_FRONT_LEFT_H

#include "front/tcache.h"

/* [lock REGISTRY] by class: blocks of those that serve again. */
extern uint32_t hak_tcache_lost[HAK_SC_COUNT];

/* Empties one; its blocks are lost. [lock REGISTRY] */
HAK_COLD void hak_tcache_forget(hak_tcache_t *tcache);
/* In the child of a fork: every other tcache belongs to a thread that is gone. Unless `is_clean`,
 * the caller's structures may be in the middle of a change. */
HAK_COLD void hak_tcache_after_fork(bool is_clean);

#endif
