/* SPDX-License-Identifier: MIT
 *
 * How an empty bin is filled. */
#ifndef HAK_FRONT_REFILL_H
#define HAK_FRONT_REFILL_H

#include "front/hooks.h"

/* Refills an empty bin and returns a block, perhaps a guarded one; NULL: memory is out. */
HAK_NOINLINE void *hak_slow_refill(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request);

#endif
