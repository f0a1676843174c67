/* SPDX-License-Identifier: MIT
 *
 * Blocks past the bins: from the fullest slab, and to their slab at once; and whether a block lies
 * in a slab that is to be emptied. A program that moves such blocks needs fewer slabs afterwards
 * (docs/jemalloc.md). */
#include "compat/packed.h"
#include "compat/usage.h"
#include "front/event.h"
#include "front/fast.h"
#include "front/find_free.h"
#include "hakmem/hakmem.h"

#include <errno.h>

/* The profiler samples requests of bins only. */
void *hak_compat_take(unsigned sc) {
    hak_tcache_t *tcache = hak_tcache_own();
    if (tcache == NULL || hak_load_relaxed(&hak_profile_rate) != 0) {
        return NULL;
    }
    uint32_t below = hak_compat_source_below(sc);
    hak_tcache_change(tcache, 1);
    hak_event_tick(tcache, true);
    hak_owner_t *owner = hak_tcache_lock_home(tcache);
    hak_blocks_t blocks = hak_slab_take_packed(owner, sc, below);
    hak_owner_unlock(owner);
    tcache->taken_bytes += (uint64_t)blocks.count * hak_sc_info[sc].bytes;
    if (blocks.stride != 0) {
        hak_slab_link(&blocks);
    }
    hak_wanted_serve();
    hak_tcache_change(tcache, -1);
    if (blocks.count == 0) {
        return NULL;
    }
    hak_check_mark(blocks.head);
    hak_require(hak_link_get(blocks.head) == NULL, HAK_FATAL_CORRUPT_LINK, blocks.head);
    hak_link_clear(blocks.head);
    return HAK_HARDEN ? hak_harden_hand_out(blocks.head, hak_sc_info[sc].bytes) : blocks.head;
}

/* Marks a block in the bitmap of its slab, which the owner holds. */
static void give_home(hak_owner_t *owner, hak_slab_t *slab, void *block) {
    hak_link_set(block, NULL);
    hak_link_set_mark(block, HAK_LINK_MARK);
    hak_require(hak_slab_mark_one(slab, hak_slab_index(slab, block)), HAK_FATAL_DOUBLE_FREE, block);
    hak_slab_count_one(owner, slab, block);
}

/* In hardened builds the quarantine takes it. */
void hak_compat_give(void *block) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    hak_tcache_t *tcache = hak_tcache_own();
    if (HAK_HARDEN || tcache == NULL || !hak_slab_is_entry(entry) ||
        hak_slab_entry_is_sampled(entry)) {
        hak_fast_free(block);
        return;
    }
    hak_slab_t *slab = hak_slab_of(block);
    hak_slab_check_freed(slab, block);
    hak_slow_require_used(block, entry, HAK_FATAL_DOUBLE_FREE);
    hak_tcache_change(tcache, 1);
    hak_event_tick(tcache, false);
    hak_owner_t *owner = hak_tcache_lock_home(tcache);
    bool is_home = hak_load_relaxed(&slab->owner) == owner;
    tcache->given_bytes += hak_sc_info[slab->sc].bytes;
    if (is_home) {
        give_home(owner, slab, block);
    }
    hak_owner_unlock(owner);
    if (!is_home) {
        hak_remote_send_block(slab, block, &tcache->sending);
    }
    hak_wanted_serve();
    hak_tcache_change(tcache, -1);
}

HAK_EXPORT void *hak_malloc_packed(size_t size) {
    bool is_small = size != 0 && size <= HAK_SC_MAX_SIZE;
    void *block = is_small ? hak_compat_take(hak_sc_of(size)) : NULL;
    return block != NULL ? block : hak_fast_malloc(size);
}

/* Reads what the slab's owner writes: an estimate. */
HAK_EXPORT HAK_UNORDERED int hak_should_move(const void *block) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    if (!hak_slab_is_entry(entry) || hak_slab_entry_is_sampled(entry)) {
        return false;
    }
    const hak_slab_t *slab = hak_slab_of(block);
    uint32_t below = hak_compat_source_below(hak_sc_of_entry(entry));
    return hak_slab_rank(slab) < below && hak_load_relaxed(&slab->state) != HAK_SLAB_CURRENT;
}
