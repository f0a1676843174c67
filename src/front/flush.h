/* SPDX-License-Identifier: MIT
 *
 * How free blocks leave a thread: to slabs of the home, in messages to other owners. */
#ifndef HAK_FRONT_FLUSH_H
#define HAK_FRONT_FLUSH_H

#include "front/tcache.h"

/* Flushes the first `count` blocks of a list of class `sc`: marks each in the bitmap of its slab,
 * or in the remote one if the slab is another owner's. Returns the rest of the list. */
void *hak_tcache_flush_blocks(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks);
/* Flushes a list of exactly `count` blocks; fatal if it is longer. */
void hak_tcache_flush_list(hak_tcache_t *tcache, unsigned sc, hak_blocks_t blocks);
/* Checks the blocks in the bins of the calling thread as a flush would, 8 192 of them at most, and
 * its quarantine. Changes nothing and takes no lock. */
HAK_COLD void hak_tcache_inspect(hak_tcache_t *tcache);

#endif
