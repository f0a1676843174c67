/* SPDX-License-Identifier: MIT
 *
 * What slow paths do with a tcache: begin a bin, flush bins, lock the home, enter a partition; the
 * fallback tcache, and reads of all. attach.c makes and ends them. */
#include "front/fast.h"

#include "base/knobs.h"
#include "front/abandoned.h"
#include "front/budget.h"
#include "front/flush.h"
#include "os/lock.h"
#include "os/os.h"

#include <string.h>

HAK_TLS uintptr_t hak_tcache_offset;
HAK_TLS struct hak_thread_self hak_thread_self;

HAK_LOCKED_STATE hak_tcache_t *hak_all_tcaches;                       /* [atomic] newest first */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) hak_tcache_t hak_tcache_fallback; /* [lock FALLBACK] */
static HAK_LARGE_STATE(4) HAK_LINE_ALIGNED hak_bin_side_t tcache_fallback_far[HAK_SIDES_FAR];

void hak_bin_first_use(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    tcache->begun |= 1ull << sc;
    side->capacity = hak_bin_first_capacity(tcache, sc);
    side->total = side->capacity;
    side->want = (uint16_t)hak_most((size_t)side->capacity / 2, 1);
    tcache->bin[sc].slots_left = side->total;
    tcache->bin[sc].size_reciprocal = hak_sc_factor(&hak_sc_info[sc]);
}

void hak_bin_end(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    side->capacity = side->total = side->want = side->idle = 0;
    side->overflows = 0;
    side->has_sent = false;
    tcache->bin[sc].slots_left = 0;
    tcache->bin[sc].size_reciprocal = 0;
}

void hak_bin_flush(hak_tcache_t *tcache, unsigned sc) {
    hak_bin_t *bin = &tcache->bin[sc];
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    /* else more blocks came out than went in */
    hak_require(bin->slots_left <= side->total, HAK_FATAL_DOUBLE_FREE, bin->head);
    hak_blocks_t blocks = {.head = bin->head, .count = (uint32_t)(side->total - bin->slots_left)};
    hak_store_hot(&bin->head, NULL);
    bin->slots_left = hak_bin_capacity(side);
    side->total = bin->slots_left;
    hak_tcache_flush_list(tcache, sc, blocks);
}

void hak_bins_flush(hak_tcache_t *tcache) {
    if (hak_quarantine_of(tcache) != NULL) {
        hak_quarantine_flush(tcache);
    }
    for (uint64_t begun = tcache->begun; begun != 0; begun &= begun - 1) {
        hak_bin_flush(tcache, hak_ctz(begun));
    }
}

void hak_tcache_flush(hak_tcache_t *tcache) {
    hak_tcache_change(tcache, 1);
    for (hak_tcache_t *t = tcache; t != NULL; t = hak_tcache_behind(t, tcache)) {
        hak_bins_flush(t);
    }
    hak_tcache_change(tcache, -1);
}

uintptr_t hak_partition_enter(hak_partition_t partition) {
    hak_tcache_t *tcache = HAK_HARDEN ? hak_tcache_own() : NULL;
    uintptr_t before = hak_tcache_offset;
    if (tcache == NULL || hak_tcache_partition(tcache) == partition) {
        return before;
    }
    if (HAK_UNLIKELY(tcache->second == NULL)) {
        (void)hak_life_thread_start(); /* makes it */
    }
    if (HAK_LIKELY(tcache->second != NULL)) {
        hak_tcache_offset = (uintptr_t)tcache->second - hak_pagemap_base();
    }
    return before;
}

hak_owner_t *hak_tcache_lock_home(hak_tcache_t *tcache) {
    hak_owner_t *owner = hak_owner_lock(tcache->home);
    if (HAK_UNLIKELY(owner != tcache->home)) {
        if (tcache != &hak_tcache_fallback) { /* the fallback is no user of its home */
            hak_owner_move(tcache->home, owner);
        }
        hak_tcache_set_home(tcache, owner);
    }
    return owner;
}

/* --- fallback, visits, fork ------------------------------------------------------------------- */

void hak_tcache_fallback_prepare(void) {
    if (hak_tcache_fallback.far_side == NULL) {
        hak_tcache_fallback.far_side = tcache_fallback_far;
    }
}

HAK_LOCKED_STATE uint64_t hak_fallback_signals; /* [lock FALLBACK] its holder's mask before */

hak_tcache_t *hak_tcache_fallback_lock(void) {
    uint64_t signals = hak_os_block_signals();
    hak_lock_acquire(HAK_LOCK_FALLBACK);
    hak_fallback_signals = signals;
    if (hak_tcache_fallback.first_entry == 0) {
        hak_lock_acquire(HAK_LOCK_REGISTRY);
        hak_tcache_fallback_prepare();
        hak_lock_release(HAK_LOCK_REGISTRY);
        hak_tcache_fallback.initial_bytes = HAK_BIN_INITIAL_BYTES;
        hak_tcache_set_home(&hak_tcache_fallback, hak_owner_start());
    }
    hak_count(fallback_use);
    return &hak_tcache_fallback;
}

void hak_tcache_fallback_unlock(void) {
    uint64_t signals = hak_fallback_signals;
    hak_lock_release(HAK_LOCK_FALLBACK);
    hak_os_restore_signals(signals);
}

/* The thread's hit paths write the bins meanwhile. */
HAK_UNORDERED void hak_tcache_read(hak_tcache_t *tcache, hak_tcache_view_t *view) {
    const volatile hak_tcache_t *now = tcache;
    view->first_entry = now->first_entry;
    view->drawn = now->drawn;
    view->event_step = now->event_step;
    view->second = now->second;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const volatile hak_bin_side_t *side = hak_bin_side(tcache, sc);
        int64_t cached = (int64_t)side->total - now->bin[sc].slots_left;
        view->cached[sc] = cached > 0 ? (uint32_t)cached : 0;
        view->quarantine[sc] =
            hak_quarantine_of(tcache) != NULL ? hak_quarantine_count(tcache, sc) : 0;
    }
}

/* The hit path counts nothing: what a thread allocated and freed follows from what its bins got and
 * gave back, and from what is in them. Their difference is exact; pairs that a bin served by itself
 * are in neither. Of the growth, blocks that came to the bins and stay there count for neither
 * side, nor do those that were there and left. */
void hak_tally_update(hak_tcache_t *tcache) {
    hak_tally_t *tally = tcache->tally;
    hak_tcache_view_t view;
    uint64_t cached = 0;
    hak_tcache_change(tcache, 1); /* else a signal handler that asks would count the same again */
    hak_tcache_read(tcache, &view);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        cached += ((uint64_t)view.cached[sc] + view.quarantine[sc]) * hak_sc_info[sc].bytes;
    }
    uint64_t taken = tcache->taken_bytes - tally->taken, given = tcache->given_bytes - tally->given;
    uint64_t more = hak_excess(cached, tally->cached), less = hak_excess(tally->cached, cached);
    uint64_t stays = hak_least(more, taken), leaves = hak_least(less, given);
    hak_single_writer_add(&tally->allocated, taken - stays + less - leaves);
    hak_single_writer_add(&tally->deallocated, given - leaves + more - stays);
    tally->taken = tcache->taken_bytes;
    tally->given = tcache->given_bytes;
    tally->cached = cached;
    hak_tcache_change(tcache, -1);
}

void hak_tcache_visit(bool (*visit)(hak_tcache_t *, void *), void *context) {
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    hak_tcache_fallback_prepare();
    bool goes_on = visit(&hak_tcache_fallback, context);
    /* pairs TCACHES */
    for (hak_tcache_t *t = hak_load_acquire(&hak_all_tcaches); goes_on && t != NULL; t = t->next) {
        goes_on = visit(t, context);
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
}
