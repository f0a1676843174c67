/* SPDX-License-Identifier: MIT
 *
 * How much unused memory stays. Size and time bound it:
 *
 *     bound = max(retain_min_bytes, in use x retain_percent / 100),
 *             and retain_learned_percent more
 *
 *   units > 2 x bound                 purged at once
 *   units above the bound throughout  purged down to 3/4 of the bound: nobody needed them
 *     a window
 *   less                              decays: nobody needed the least that was unused in a window,
 *                                     so it is purged at the end of the window, down to
 *
 *     idle = max(retain_idle_bytes, in use / TARGET_IDLE_PART),
 *            units also retain_wanted_bytes, and at most the bound,
 *
 * but only if that is more than TARGET_STEP_TIMES the amplitude of unused units in the window. The
 * bound of the huge cache, which a free must know, is computed there (large/huge_cache.c).
 *
 * A footprint that oscillates within a window makes no kernel calls. One that oscillates more
 * slowly takes purged units again; the learner (regret.c) sees that, and sets retain_wanted_bytes.
 */
#include "base/atomics.h"
#include "base/knobs.h"
#include "large/large.h"
#include "os/os.h"
#include "reclaim/reclaim.h"
#include "slab/purge.h"

enum {
    TARGET_IDLE_PART = 32,       /* of the memory in use, exempt (docs/experiments/0023-decay.md) */
    TARGET_STEP_BYTES = 1 << 20, /* less is not worth the calls */
    TARGET_STEP_TIMES = 2,       /* a load may need its amplitude at its next peak */
};

HAK_LOCKED_STATE uint64_t hak_target_window_end_ns; /* [atomic] */
/* [atomic] unused units have exceeded the bound since; 0: they do not */
HAK_LOCKED_STATE uint64_t hak_target_over_since_ns;
HAK_LOCKED_STATE uint64_t
    hak_target_retry_at_ns; /* [atomic] a purge gave nothing back: not before */
/* [atomic] least unused in a window whose purge was cut short */
HAK_LOCKED_STATE size_t hak_target_cut_low_bytes = SIZE_MAX;

static size_t idle_bytes(size_t in_use_bytes) {
    return hak_most(in_use_bytes / TARGET_IDLE_PART,
                    hak_load_relaxed(&hak_knobs.retain_idle_bytes));
}

size_t hak_target_idle_bytes(size_t in_use_bytes) {
    size_t wanted = hak_load_relaxed(&hak_knobs.retain_wanted_bytes);
    return hak_least(hak_retain_bytes(in_use_bytes), hak_most(idle_bytes(in_use_bytes), wanted));
}

/* What stays at the end of a window; SIZE_MAX: all of it. */
static size_t decay_keep(const hak_pool_t *pool, size_t idle) {
    size_t step = TARGET_STEP_BYTES + (pool->high_bytes - pool->low_bytes) * TARGET_STEP_TIMES;
    size_t excess = pool->low_bytes - hak_least(pool->low_bytes, idle);
    return excess > step ? pool->resident_bytes - excess : SIZE_MAX;
}

static bool spans_exceed(const hak_pool_t *pool, size_t bound, uint64_t now) {
    uint64_t since = hak_load_relaxed(&hak_target_over_since_ns);
    bool is_new = since == 0 || pool->dip_bytes <= bound; /* the excess was needed after all */
    since = pool->resident_bytes <= bound ? 0 : is_new ? now : since;
    hak_store_relaxed(&hak_target_over_since_ns, since);
    return pool->resident_bytes > 2 * bound || (since != 0 && now - since > HAK_WINDOW_NS);
}

/* By size whole superslabs go: few calls. By time no unit more than has to: the window needed the
 * rest. */
static hak_purge_plan_t spans_plan(hak_pool_t *pool, bool is_turn, uint64_t now) {
    size_t bound = hak_retain_bytes(pool->in_use_bytes), keep = SIZE_MAX;
    bool exceeds_bound = spans_exceed(pool, bound, now);
    if (is_turn) {
        hak_owner_forget_spared();
        size_t cut_low = hak_load_relaxed(&hak_target_cut_low_bytes);
        hak_store_relaxed(&hak_target_cut_low_bytes, SIZE_MAX);
        pool->low_bytes = hak_least(pool->low_bytes, cut_low);
        keep = decay_keep(pool, hak_target_idle_bytes(pool->in_use_bytes));
        keep = hak_most(keep, HAK_UNIT_BYTES); /* 0 would unmap */
    }
    keep = exceeds_bound ? hak_least(keep, bound / 4 * 3) : keep;
    return (hak_purge_plan_t){.keep_bytes = keep, .is_exact = !exceeds_bound};
}

void hak_target_spans(void) {
    uint64_t now = hak_os_now_ns(), end = hak_load_relaxed(&hak_target_window_end_ns);
    bool is_turn =
        now >= end && hak_cas_relaxed(&hak_target_window_end_ns, &end, now + HAK_WINDOW_NS);
    hak_pool_t pool;
    hak_span_pool(&pool, is_turn);
    hak_purge_plan_t plan = spans_plan(&pool, is_turn, now);
    if (plan.keep_bytes == SIZE_MAX || now < hak_load_relaxed(&hak_target_retry_at_ns)) {
        return;
    }
    size_t given_back = hak_span_purge_by(&plan);
    if (plan.is_exact && plan.is_cut) { /* the window did not need the rest either */
        size_t low = pool.low_bytes - hak_least(pool.low_bytes, given_back);
        hak_store_relaxed(&hak_target_cut_low_bytes, low);
        hak_store_relaxed(&hak_target_window_end_ns, 0);
    } else if (given_back == 0) {
        hak_span_pool(&pool, false);
        if (pool.resident_bytes > plan.keep_bytes) { /* nobody took it meanwhile */
            hak_store_relaxed(&hak_target_retry_at_ns, now + HAK_RETRY_NS);
        }
    }
}

void hak_target_huge(void) {
    hak_pool_t pool;
    size_t bound = hak_large_pool(&pool);
    hak_large_trim_to(hak_least(bound, decay_keep(&pool, idle_bytes(pool.in_use_bytes))), bound);
}
