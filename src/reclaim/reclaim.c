/* SPDX-License-Identifier: MIT
 *
 * The pools of unused memory, and the triggers that take bytes from them. The cheapest pool gives
 * first; the next one gives the rest. Decay by time is in target.c and slabs.c. */
#include "reclaim/reclaim.h"

#include "front/abandoned.h"
#include "front/fast.h"
#include "large/large.h"
#include "os/libc.h"
#include "os/lock.h"
#include "os/os.h"
#include "reclaim/slabs.h"
#include "span/pagemap.h"
#include "span/span.h"

enum {
    EVENT_OWNERS = 4,
    MEMORY_OUT_ATTEMPTS = 2, /* of a request */
    POLL_PAUSE_NS = 5000000, /* between two polls of the pools of a process with threads */
    /* Of a heap before a peak: below, it is mostly units of which little is touched. */
    FLUSH_LEAST_BYTES = 4 << 20,
    /* Wanted before a peak, in a heap of 48 MiB: if it is less, a flush is enough, and idle pages
     * of slabs stay, as frees of their blocks would leave the hit path. */
    FLUSH_ENOUGH_BYTES = 4 << 20,
};

static uint64_t reclaim_poll_ns; /* [atomic] no poll before it */

/* Blocks return to their slabs, and empty slabs to the unused units. */
static size_t bins_empty(hak_tcache_t *tcache) {
    if (tcache != NULL && !hak_tcache_is_empty(tcache)) {
        hak_tcache_flush(tcache);
    }
    hak_owner_collect();
    return 0;
}

static size_t units_trim(size_t keep_bytes, size_t bytes) {
    hak_footprint_t has;
    hak_large_footprint(&has);
    size_t rest = hak_excess(has.unused_bytes, bytes);
    hak_purge_plan_t plan = {.keep_bytes = hak_most(keep_bytes, rest), .is_all = true};
    return hak_target_purge(&plan, has.unused_bytes);
}

/* Kernel calls: none for bins; one per extent of the cache, per run of units, and per run of idle
 * pages in slabs, with an owner locked. */
static size_t pool_give_back(unsigned pool, const hak_reclaim_order_t *order, size_t bytes) {
    bool is_all = bytes == SIZE_MAX;
    switch (pool) {
    case HAK_POOL_BINS:
        return bins_empty(order->tcache);
    case HAK_POOL_HUGE:
        return is_all ? hak_large_trim(order->keep_bytes)
                      : hak_large_give_back(bytes, order->is_urgent);
    case HAK_POOL_UNITS:
        return is_all ? hak_span_purge(order->keep_bytes) : units_trim(order->keep_bytes, bytes);
    default:
        return hak_slabs_give_back(bytes, is_all || order->is_urgent);
    }
}

size_t hak_reclaim_order(hak_reclaim_order_t *order) {
    size_t sum = 0, wanted = order->wanted_bytes;
    for (unsigned i = 0; i < HAK_POOLS && wanted >= HAK_UNIT_BYTES; i++) { /* worth a call */
        if ((order->pools >> i & 1) != 0) {
            order->given_back[i] = pool_give_back(i, order, wanted);
            sum += order->given_back[i];
            wanted -= wanted == SIZE_MAX ? 0 : hak_least(wanted, order->given_back[i]);
        }
    }
    return sum;
}

/* The polls take locks that all CPUs share: with many threads not every event has one
 * (docs/experiments/0096-looks-at-pools.md). */
void hak_reclaim_maintain(hak_tcache_t *tcache) {
    (void)tcache;
    hak_owner_maintain(EVENT_OWNERS);
    if (!hak_is_due(&reclaim_poll_ns, hak_os_now_ns(), POLL_PAUSE_NS) && !hak_libc_is_single()) {
        return;
    }
    hak_target_spans();
    hak_target_huge();
    hak_limit_tick();
}

/* Before a new peak, which comes at most once for each step of growth: a slab that a few blocks in
 * bins keep, or that is empty and current, serves other classes
 * (docs/experiments/0131-bins-before-a-peak.md). Not in hardened builds: growth that an attacker
 * causes would empty the quarantine. */
static void bins_flush(hak_tcache_t *tcache) {
    hak_tcache_flush(tcache);
    hak_owner_t *owner = hak_tcache_lock_home(tcache);
    hak_slab_release_current(owner);
    hak_owner_unlock(owner);
}

void hak_reclaim_serve(hak_tcache_t *tcache) {
    uint32_t wanted = hak_lock_holds_none() ? hak_swap_relaxed(&hak_wanted, 0) : 0; /* a hook */
    if ((wanted & HAK_WANTED_PURGE) != 0) {
        hak_target_spans();
    }
    if ((wanted & HAK_WANTED_LIMIT) != 0) {
        hak_limit_give_back(0);
    }
    if ((wanted & HAK_WANTED_PEAK) != 0) { /* cached mappings serve no small block */
        hak_reclaim_order_t order = {.pools = 1 << HAK_POOL_HUGE | 1 << HAK_POOL_SLABS};
        order.wanted_bytes = hak_target_over_peak();
        if (!HAK_HARDEN && tcache != NULL && order.wanted_bytes != 0 &&
            hak_load_relaxed(&hak_span_peak_bytes) >= FLUSH_LEAST_BYTES) {
            bins_flush(tcache);
            order.pools &= order.wanted_bytes < FLUSH_ENOUGH_BYTES ? ~(1u << HAK_POOL_SLABS) : ~0u;
        }
        hak_reclaim_order(&order);
    }
}

/* Whether the kernel may grant a mapping of so many bytes after reclaim. Bins may hold what makes
 * superslabs whole. Where mappings are what is short, each that goes makes room. */
static bool reclaim_may_help(unsigned attempt, size_t bytes) {
    hak_span_stats_t span;
    hak_span_stats(&span);
    size_t unmappable = hak_large_unmappable() + (attempt == 0 ? span.mapped_bytes : 0);
    void *page = (void *)hak_align_up(hak_pagemap_base(),
                                      hak_os_page_bytes()); /* inside the zero leaf, 512 KiB */
    return bytes <= unmappable || hak_os_may_map(bytes - unmappable) || hak_os_lacks_mappings(page);
}

/* The first attempt makes memory cached anywhere in the process usable here, without a kernel call
 * that might be refused a moment later. The second returns unused memory, so that limits leave
 * room for memory of another shape. What neither can serve leaves the caches alone. */
bool hak_reclaim_memory_out(hak_tcache_t *tcache, unsigned attempt, size_t bytes) {
    unsigned pools = attempt == 0 ? 1 << HAK_POOL_BINS : 1 << HAK_POOL_HUGE | 1 << HAK_POOL_UNITS;
    hak_reclaim_order_t order = {.tcache = tcache, .pools = pools, .wanted_bytes = SIZE_MAX};
    bool may_help = attempt < MEMORY_OUT_ATTEMPTS && reclaim_may_help(attempt, bytes);
    if (may_help) {
        hak_reclaim_order(&order);
    }
    return may_help;
}

size_t hak_reclaim_trim(size_t keep_bytes) {
    if (!hak_lock_holds_none()) { /* a hook of the C library's functions trims */
        return 0;
    }
    hak_reclaim_order_t order = {.tcache = hak_tcache_self(hak_pagemap_base()),
                                 .pools = (1 << HAK_POOLS) - 1,
                                 .wanted_bytes = SIZE_MAX,
                                 .keep_bytes = keep_bytes};
    size_t given_back = hak_reclaim_order(&order);
    hak_pagemap_trim();
    hak_tcache_trim();
    return given_back;
}
