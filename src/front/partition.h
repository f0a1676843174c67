/* SPDX-License-Identifier: MIT
 *
 * Hardened builds: the calling thread serves a request or a free of another partition (TCACHE-10).
 * Its TLS word leads to the other tcache meanwhile, so every function of the family works for
 * either partition. In other builds there is one partition, and nothing changes. */
#ifndef HAK_FRONT_PARTITION_H
#define HAK_FRONT_PARTITION_H

#include "front/tcache.h"

/* Enters a partition; leave it with the result. Threads without a tcache, at their very end, enter
 * nothing, nor do others while metadata is out: their requests are served by the other partition.
 */
HAK_NOINLINE uintptr_t hak_partition_enter(hak_partition_t partition);
/* The same for a request with a token; of a type with pointers it enters nothing: 0. */
HAK_INLINE uintptr_t hak_partition_enter_plain(bool is_plain) {
    return HAK_HARDEN && is_plain ? hak_partition_enter(HAK_PARTITION_PLAIN) : 0;
}
HAK_INLINE void hak_partition_leave(uintptr_t before) {
    if (HAK_HARDEN && before != 0) { /* else the request made the thread's first tcache, too */
        hak_tcache_offset = before;
    }
}

/* The partition of a block with this entry; ANY: the block has none, or a mapping of its own. */
hak_partition_t hak_partition_of(const void *block, uint32_t entry);
/* Whether the entry tells the partition; false: realloc decides by the calling thread. */
bool hak_partition_is_known(uint32_t entry);

#endif
