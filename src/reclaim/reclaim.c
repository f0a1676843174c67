/* SPDX-License-Identifier: MIT */
#include "reclaim/reclaim.h"

#include "large/large.h"
#include "slab/slab.h"
#include "span/span.h"

enum { EVENT_OWNERS = 4 };

void hak_reclaim_tend(hak_tcache_t *tcache) {
    (void)tcache;
    hak_owner_tend(EVENT_OWNERS);
    hak_span_purge_if_over();
    hak_large_trim_if_over();
    hak_regret_tick();
    hak_limit_tick();
}

void hak_reclaim_step(hak_tcache_t *tcache) {
    (void)tcache;
    hak_owner_decay_holes();
}

size_t hak_reclaim_trim(size_t keep_bytes) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache)) {
        hak_tcache_flush(tcache);
    }
    hak_owner_collect();
    size_t given_back = hak_large_trim(keep_bytes) + hak_owner_purge_holes();
    return given_back + hak_span_purge(keep_bytes);
}
