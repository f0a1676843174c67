/* SPDX-License-Identifier: MIT */
#include "reclaim/reclaim.h"

#include "front/fast.h"
#include "large/large.h"
#include "span/span.h"

enum { EVENT_OWNERS = 4 };

void hak_reclaim_tend(hak_tcache_t *tcache) {
    (void)tcache;
    hak_owner_tend(EVENT_OWNERS);
    hak_target_spans();
    hak_target_huge();
    hak_regret_tick();
    hak_limit_tick();
}

void hak_reclaim_step(hak_tcache_t *tcache) {
    (void)tcache;
    hak_owner_decay_holes();
}

void hak_reclaim_serve(void) {
    uint32_t wanted = hak_swap_acquire(&hak_wanted, 0); /* pairs WANTED */
    if ((wanted & HAK_WANTED_PURGE) != 0) {
        hak_target_spans();
    }
    if ((wanted & HAK_WANTED_PEAK) != 0) { /* no small block is served from cached mappings */
        size_t bytes = hak_swap_relaxed(&hak_span_over_peak, 0);
        hak_owner_spare_holes(bytes - hak_least(bytes, hak_large_spare(bytes)));
    }
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
