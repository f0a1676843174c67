/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: a freed small block is held back before it is handed out again. */
#ifndef HAK_FRONT_QUARANTINE_H
#define HAK_FRONT_QUARANTINE_H

#include "front/tcache.h"

enum { HAK_QUARANTINE_SLOTS = 32 }; /* of each class at most */

struct hak_quarantine {
    uint64_t random;             /* [thread] state of the generator */
    uint64_t earned_ns;          /* [thread] when the budget last grew */
    int64_t clear_left;          /* [thread] the budget, in bytes of blocks */
    uint32_t refills;            /* [thread] since it was used up */
    uint8_t slots[HAK_SC_COUNT]; /* [thread] used, of each class */
    uint8_t next[HAK_SC_COUNT];  /* [thread] slot whose block leaves next, prefetched */
    uintptr_t slot[HAK_SC_COUNT][HAK_QUARANTINE_SLOTS]; /* [thread] read by statistics; 0: empty */
};

/* Gives the tcache a quarantine, and new random numbers. */
void hak_quarantine_attach(hak_tcache_t *tcache);

/* The next four are called only where hak_quarantine_of gives one. Flushes the quarantine. */
void hak_quarantine_flush(hak_tcache_t *tcache);
/* Checks the blocks in the quarantine as a flush would. */
void hak_quarantine_inspect(hak_tcache_t *tcache);
/* Blocks in the quarantine; a hint for other threads' tcaches. */
uint32_t hak_quarantine_count(const hak_tcache_t *tcache, unsigned sc);
/* Puts the first blocks of a list into random order. */
hak_blocks_t hak_quarantine_shuffle(hak_tcache_t *tcache, hak_blocks_t blocks);

/* Every free of hardened builds; calls hak_slow_free for the rest. */
HAK_NOINLINE void hak_quarantine_free(void *block, hak_tcache_t *tcache, uintptr_t index);

/* The partition of a block with this entry; ANY: the block has none, or a mapping of its own. */
hak_partition_t hak_partition_of(const void *block, uint32_t entry);

#endif
