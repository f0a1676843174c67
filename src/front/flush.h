/* SPDX-License-Identifier: MIT
 *
 * How free blocks leave a thread: each goes back to its slab if that belongs to the home, or by an
 * outbox or a batch to the owner of its slab. */
#ifndef HAK_FRONT_FLUSH_H
#define HAK_FRONT_FLUSH_H

#include "front/tcache.h"

/* Flushes the first `count` blocks of a list of class `sc`: marks each in the bitmap of its slab,
 * or sends it in a batch to the slab's owner. Returns the rest of the list. */
void *hak_tcache_flush_blocks(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks);
/* The same for a list that ends there; fatal if it does not. */
void hak_tcache_flush_list(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks);

/* Blocks an outbox takes until it is flushed: a quarter of the bytes that all may hold. */
int32_t hak_outbox_capacity(unsigned sc);
/* Flushes all outboxes. */
void hak_outbox_flush(hak_tcache_t *tcache);
/* An outbox is full, or all together hold too much: flushes it, and others if needed. */
void hak_outbox_shrink(hak_tcache_t *tcache, unsigned sc);
/* Blocks of class `sc` waiting in the outbox, for use in this thread; count == 0: too few. */
hak_blocks_t hak_outbox_recycle(hak_tcache_t *tcache, unsigned sc);

#endif
