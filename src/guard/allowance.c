/* SPDX-License-Identifier: MIT */
#include "guard/allowance.h"

#include "base/bits.h"
#include "base/counters.h"
#include "guard/slot.h"

HAK_LOCKED_STATE uint64_t hak_allowance_full_ns = UINT64_MAX;

/* A bucket that is full only then is empty. */
static uint64_t empty_ns(uint64_t now) {
    return now + (uint64_t)HAK_ALLOWANCE_BLOCKS * HAK_ALLOWANCE_GAP_NS;
}

bool hak_allowance_has(uint64_t now) {
    uint64_t full = hak_load_relaxed(&hak_allowance_full_ns);
    uint64_t freed = hak_load_relaxed(&hak_counters.guard_free);
    uint64_t live = hak_excess(hak_load_relaxed(&hak_counters.guard_sample), freed);
    size_t most = hak_most(HAK_ALLOWANCE_BYTES / hak_os_page_bytes(), HAK_ALLOWANCE_LEAST_PAGES);
    bool has_region = hak_load_relaxed(&hak_guard_region.base) != NULL;
    if (full > empty_ns(now)) { /* it is new, or the clock went back */
        (void)hak_cas_relaxed(&hak_allowance_full_ns, &full, empty_ns(now));
        return false;
    }
    return has_region && live < most && full <= empty_ns(now) - HAK_ALLOWANCE_GAP_NS;
}

bool hak_allowance_take(uint64_t now, bool is_extra) {
    bool has = hak_allowance_has(now);
    uint64_t full = hak_load_relaxed(&hak_allowance_full_ns);
    uint64_t next = hak_most(full, now) + HAK_ALLOWANCE_GAP_NS;
    if (is_extra && !has) {
        return false;
    }
    return hak_cas_relaxed(&hak_allowance_full_ns, &full, hak_least(next, empty_ns(now))) ||
           !is_extra;
}
