/* SPDX-License-Identifier: MIT
 *
 * How free blocks leave a thread: to slabs of the home, by outbox or message to other owners. */
#ifndef HAK_FRONT_FLUSH_H
#define HAK_FRONT_FLUSH_H

#include "front/tcache.h"

/* Flushes the first `count` blocks of a list of class `sc`: marks each in the bitmap of its slab,
 * or in the remote one if the slab is another owner's. Returns the rest of the list. */
void *hak_tcache_flush_blocks(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks);
/* Flushes a list of exactly `count` blocks; fatal if it is longer. */
void hak_tcache_flush_list(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks);
/* Checks the blocks in the bins and outboxes of the calling thread as a flush would, 8 192 of them
 * at most, and its quarantine. Changes nothing and takes no lock. */
HAK_COLD void hak_tcache_inspect(hak_tcache_t *tcache);

/* Blocks an outbox takes until it is flushed: a quarter of the bytes that all outboxes may hold. */
int32_t hak_outbox_capacity(unsigned sc);
/* Flushes all outboxes. */
void hak_outbox_flush(hak_tcache_t *tcache);
/* An outbox is full, or all together hold too much: flushes it, and others if needed. */
void hak_outbox_shrink(hak_tcache_t *tcache, unsigned sc);
/* Takes the outbox of class `sc` for reuse by this thread; count == 0: it holds too few blocks. */
hak_blocks_t hak_outbox_recycle(hak_tcache_t *tcache, unsigned sc);

#endif
