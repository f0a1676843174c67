/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: freed small blocks are held back before they may be handed out again. */
#ifndef HAK_FRONT_QUARANTINE_H
#define HAK_FRONT_QUARANTINE_H

#include "front/tcache.h"

/* Gives the tcache a quarantine, and new random numbers. */
void hak_quarantine_attach(hak_tcache_t *tcache);
/* Flushes it. */
void hak_quarantine_flush(hak_tcache_t *tcache);
/* The blocks in it; of other threads a hint. */
uint32_t hak_quarantine_count(const hak_tcache_t *tcache, unsigned sc);
/* A list for a bin with its first blocks in random order. */
hak_blocks_t hak_quarantine_shuffle(hak_tcache_t *tcache, hak_blocks_t blocks);

/* Comes before hak_slow_free, for every free. */
HAK_NOINLINE void hak_quarantine_free(void *block, hak_tcache_t *tcache,
                                      int64_t bin_offset_from_end, uintptr_t index);

#endif
