/* SPDX-License-Identifier: MIT */
#include "guard/allowance.h"

#include "base/bits.h"
#include "base/counters.h"
#include "guard/slot.h"

HAK_LOCKED_STATE hak_allowance_t hak_allowance;

bool hak_allowance_draw(uint64_t random) {
    if (hak_swap_relaxed(&hak_allowance.is_drawn, 1) != 0 ||
        random % HAK_ALLOWANCE_CREDIT_ODDS != 0) {
        return false;
    }
    hak_sub_relaxed(&hak_allowance.spent_ns, HAK_ALLOWANCE_CREDIT_NS);
    return true;
}

/* A bucket that is full only then is empty. */
static uint64_t allowance_empty_ns(uint64_t now) {
    return now + (uint64_t)HAK_ALLOWANCE_BLOCKS * HAK_ALLOWANCE_GAP_NS;
}

/* Begins anew if the clock went back, as where a process is restored on another machine. A thread
 * that was interrupted since its look at the clock may do so, too: what was left is lost then. */
static uint64_t allowance_age(uint64_t now) {
    uint64_t begin = hak_load_relaxed(&hak_allowance.begin_ns);
    uint64_t full = hak_load_relaxed(&hak_allowance.full_ns), empty = allowance_empty_ns(now);
    bool is_back = begin != 0 && (now < begin || full > empty + HAK_ALLOWANCE_GAP_NS);
    if (begin != 0 && !is_back) {
        return now - begin;
    }
    if (hak_cas_relaxed(&hak_allowance.begin_ns, &begin, now)) {
        hak_store_relaxed(&hak_allowance.full_ns, hak_least(full, empty));
        if (is_back) {
            hak_store_relaxed(&hak_allowance.spent_ns, 0);
        }
    }
    return 0;
}

static bool allowance_has_time(uint64_t age) {
    int64_t spent = (int64_t)hak_load_relaxed(&hak_allowance.spent_ns);
    return hak_load_relaxed(&hak_guard_region.base) == NULL
               ? spent < 0
               : spent + HAK_ALLOWANCE_COST_NS <= (int64_t)(age / HAK_ALLOWANCE_SHARE);
}

static bool allowance_has_page(uint64_t age) {
    size_t pages = HAK_ALLOWANCE_LEAST_PAGES + hak_log2(1 + age / HAK_ALLOWANCE_PAGE_AGE_NS);
    size_t most = hak_most(HAK_ALLOWANCE_BYTES / hak_os_page_bytes(), HAK_ALLOWANCE_LEAST_PAGES);
    uint64_t freed = hak_load_relaxed(&hak_counters.guard_free);
    uint64_t live = hak_excess(hak_load_relaxed(&hak_counters.guard_sample), freed);
    return live < hak_least(pages, most);
}

bool hak_allowance_has(uint64_t now) {
    uint64_t age = allowance_age(now);
    uint64_t full = hak_load_relaxed(&hak_allowance.full_ns);
    return full <= allowance_empty_ns(now) - HAK_ALLOWANCE_GAP_NS && allowance_has_time(age) &&
           allowance_has_page(age);
}

bool hak_allowance_take(uint64_t now, bool is_extra) {
    if (is_extra && !hak_allowance_has(now)) {
        return false;
    }
    uint64_t full = hak_load_relaxed(&hak_allowance.full_ns), empty = allowance_empty_ns(now);
    uint64_t next = hak_most(hak_least(full, empty), now) + HAK_ALLOWANCE_GAP_NS;
    bool is_taken = hak_cas_relaxed(&hak_allowance.full_ns, &full, hak_least(next, empty));
    return is_taken || !is_extra;
}

void hak_allowance_spend(void) {
    hak_add_relaxed(&hak_allowance.spent_ns, HAK_ALLOWANCE_COST_NS);
}

void hak_allowance_after_fork(void) {
    hak_store_relaxed(&hak_allowance.begin_ns, 0);
    hak_store_relaxed(&hak_allowance.full_ns, UINT64_MAX);
    hak_store_relaxed(&hak_allowance.spent_ns, 0);
}
