/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: a freed small block is held back before it is handed out again. */
#ifndef HAK_FRONT_QUARANTINE_H
#define HAK_FRONT_QUARANTINE_H

#include "front/tcache.h"

/* Gives the tcache a quarantine, and new random numbers. */
void hak_quarantine_attach(hak_tcache_t *tcache);
/* Flushes the quarantine. */
void hak_quarantine_flush(hak_tcache_t *tcache);
/* Empties it without a look at the blocks. */
void hak_quarantine_forget(hak_tcache_t *tcache);
/* Checks the blocks in the quarantine as a flush would. */
void hak_quarantine_inspect(hak_tcache_t *tcache);
/* Blocks in the quarantine; a hint for other threads' tcaches. */
uint32_t hak_quarantine_count(const hak_tcache_t *tcache, unsigned sc);
/* Puts the first blocks of a list into random order. */
hak_blocks_t hak_quarantine_shuffle(hak_tcache_t *tcache, hak_blocks_t blocks);

/* Every free of hardened builds; calls hak_slow_free for the rest. */
HAK_NOINLINE void hak_quarantine_free(void *block, hak_tcache_t *tcache,
                                      int64_t bin_offset_from_end, uintptr_t index);

#endif
