/* SPDX-License-Identifier: MIT
 *
 * Which partition a block is of, and the change of the thread's tcache. */
#include "front/partition.h"

#include "front/fast.h"
#include "large/large.h"

uintptr_t hak_partition_enter(hak_partition_t partition) {
    if (!HAK_HARDEN) {
        return hak_tcache_offset;
    }
    hak_tcache_t *tcache = hak_tcache_own();
    uintptr_t before = hak_tcache_offset;
    if (tcache == NULL || hak_tcache_partition(tcache) == partition) {
        return before;
    }
    tcache = hak_tcache_other(tcache);
    if (tcache != NULL) {
        hak_tcache_offset = (uintptr_t)tcache - hak_pagemap_base();
    }
    return before;
}

bool hak_partition_is_known(uint32_t entry) {
    return hak_slab_is_entry(entry) ? !hak_slab_entry_is_sampled(entry)
                                    : (entry & HAK_KIND_MASK) == HAK_KIND_LARGE;
}

hak_partition_t hak_partition_of(const void *block, uint32_t entry) {
    bool is_slab = hak_slab_is_entry(entry);
    if (!HAK_HARDEN || (!is_slab && (entry & HAK_KIND_MASK) != HAK_KIND_LARGE)) {
        return HAK_PARTITION_ANY;
    }
    if (is_slab && !hak_slab_entry_is_apart(entry)) {
        return (entry & HAK_SLAB_PLAIN_ID) != 0 ? HAK_PARTITION_PLAIN : HAK_PARTITION_ANY;
    }
    return hak_span_partition(hak_pagemap_superslab(block));
}
