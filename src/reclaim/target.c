/* SPDX-License-Identifier: MIT
 *
 * How much unused memory stays. Size and time bound it:
 *
 *     bound = max(retain_min_bytes, in use x retain_percent / 100),
 *             and up to 100 % more while purged units are wanted again (regret)
 *
 *   units > 2 x bound                 purged at once
 *   units above the bound throughout  purged down to 3/4 of the bound: excess
 *     a window
 *   less                              decays: the least unused in a window was not needed, so it is
 *                                     purged at the end of the window, down to
 *
 *     idle = max(retain_idle_bytes, in use / TARGET_IDLE_DIVISOR), and at most the bound,
 *
 * but only if that is more than TARGET_STEP_TIMES the amplitude of unused units in the window.
 * Where the learner (learner.h) found a keep time that costs less than this window, units decay to
 * what it foretells to be worth keeping, in place of the least unused.
 * Freed huge blocks decay in the same way; all together they may hold
 *
 *     at any time       max(huge_cache, in use / CACHE_SHARE)
 *     for a while       2 x retain_percent of the peak in use of the last one or two windows, or
 *                       what the learner foretells to be worth keeping,
 *                       but not above CACHE_LEAST_TIMES x huge_cache + in use / CACHE_SHARE
 *
 * docs/experiments/0023-decay.md and 0004-huge-cache-counts-memory.md chose the window and the
 * size. A footprint that oscillates within a window makes no kernel calls. One that oscillates more
 * slowly takes purged units again, until the learner sees that keeping them costs less.
 *
 * When memory in use passes its peak by a step, unused memory goes back before the heap grows.
 * That happens some dozens of times in the life of a process, and never below the peak. Unused
 * memory does not count: it oscillates under a constant load
 * (docs/experiments/0030-spare-before-a-peak.md). */
#include "base/atomics.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "large/large.h"
#include "os/os.h"
#include "reclaim/learner.h"
#include "reclaim/reclaim.h"
#include "reclaim/slabs.h"

enum {
    TARGET_IDLE_DIVISOR = 32,    /* of the memory in use, exempt (docs/experiments/0023-decay.md) */
    TARGET_STEP_BYTES = 1 << 20, /* less is not worth the calls */
    TARGET_RETRY_DIVISOR = 4,    /* of refused bytes, freed since: the kernel is asked again */
    TARGET_STEP_TIMES = 2,       /* the next peak may need the amplitude */
    CACHE_SHARE = 8,             /* of huge blocks in use, kept of freed ones at any time */
    CACHE_LEAST_TIMES = 5,       /* of huge_cache, kept for a while even if nothing is in use */
    CACHE_ADDRESS_TIMES = 4,     /* addresses cached per byte of the bound */
    PEAK_SHARE = 16,             /* of the memory in use: a step, and at least this much */
    PEAK_LEAST_BYTES = 1 << 20,
};

/* [atomic] Freed huge blocks and those in use that are worth holding, by the learner. */
HAK_LOCKED_STATE size_t hak_target_huge_line;
/* After the kernel refused every purge (locked memory): so refused calls are rare. */
static const uint64_t TARGET_RETRY_NS = 10 * HAK_WINDOW_NS;

HAK_LOCKED_STATE uint64_t hak_target_window_end_ns; /* [atomic] */
/* [atomic] since when unused units exceed the bound; 0: they do not */
HAK_LOCKED_STATE uint64_t hak_target_over_since_ns;
/* [atomic] The kernel refused to purge the unused units: no purge before this time, unless more
 * bytes are unused than these, a quarter more than were refused. */
HAK_LOCKED_STATE uint64_t hak_target_retry_at_ns;
HAK_LOCKED_STATE size_t hak_target_retry_above_bytes;
/* [atomic] least unused in a window whose purge was cut short */
HAK_LOCKED_STATE size_t hak_target_cut_low_bytes = SIZE_MAX;

static size_t idle_bytes(size_t in_use_bytes) {
    return hak_most(in_use_bytes / TARGET_IDLE_DIVISOR,
                    hak_load_relaxed(&hak_knobs.retain_idle_bytes));
}

size_t hak_target_idle_bytes(size_t in_use_bytes) {
    return hak_least(hak_retain_bytes(in_use_bytes), idle_bytes(in_use_bytes));
}

/* Bytes that stay at the end of a window; SIZE_MAX: all. */
static size_t decay_keep(const hak_pool_t *pool, size_t idle) {
    size_t step = TARGET_STEP_BYTES + (pool->high_bytes - pool->low_bytes) * TARGET_STEP_TIMES;
    size_t excess = hak_excess(pool->low_bytes, idle);
    return excess > step ? pool->resident_bytes - excess : SIZE_MAX;
}

/* Bytes that stay if so many are worth keeping, and at least `idle`; SIZE_MAX: all. */
static size_t learned_keep(size_t resident_bytes, size_t learned, size_t idle) {
    size_t kept = hak_most(learned, idle);
    bool exceeds = hak_excess(resident_bytes, kept) > TARGET_STEP_BYTES;
    return exceeds ? kept : SIZE_MAX;
}

static bool spans_exceed(const hak_pool_t *pool, size_t bound, uint64_t now) {
    uint64_t since = hak_load_relaxed(&hak_target_over_since_ns);
    bool is_new = since == 0 || pool->dip_bytes <= bound; /* the load took the excess meanwhile */
    since = pool->resident_bytes <= bound ? 0 : is_new ? now : since;
    hak_store_relaxed(&hak_target_over_since_ns, since);
    return pool->resident_bytes > 2 * bound ||
           (since != 0 && now > since && now - since > HAK_WINDOW_NS);
}

enum {
    REGRET_DIVISOR = 4, /* of the units purged in a window, wanted again: regretted */
    REGRET_LEAST = 4,   /* units: a few happen by chance */
    REGRET_UP = 25,     /* percent of the bound, for each such window */
    REGRET_DOWN = 4,    /* for each other one */
    REGRET_MOST = 100,
};

HAK_LOCKED_STATE uint64_t hak_target_purged_units;    /* [atomic] counters a window ago */
HAK_LOCKED_STATE uint64_t hak_target_refaulted_units; /* [atomic] */

/* Each window: for a footprint that oscillates beyond the bound, which no keep time helps. */
static void regret_learn(void) {
    uint64_t purged = hak_load_relaxed(&hak_counters.purge_units);
    uint64_t again = hak_load_relaxed(&hak_counters.purge_regret_units);
    size_t percent = hak_load_relaxed(&hak_knobs.retain_learned_percent);
    purged = hak_regret_growth(&hak_target_purged_units, purged);
    again = hak_regret_growth(&hak_target_refaulted_units, again);
    bool learns = hak_load_relaxed(&hak_knobs.learn) == HAK_LEARN_ON;
    percent = learns && again > hak_most(purged / REGRET_DIVISOR, REGRET_LEAST)
                  ? hak_least(percent + REGRET_UP, REGRET_MOST)
                  : hak_excess(percent, REGRET_DOWN);
    hak_store_relaxed(&hak_knobs.retain_learned_percent, percent);
}

/* By size whole superslabs go: few calls. By time only the excess units: the load used the rest. */
static hak_purge_plan_t spans_plan(hak_pool_t *pool, bool is_turn, size_t learned, uint64_t now) {
    size_t bound = hak_retain_bytes(pool->in_use_bytes), keep = SIZE_MAX;
    bool exceeds_bound = spans_exceed(pool, bound, now);
    if (is_turn) {
        regret_learn();
        size_t cut_low = hak_load_relaxed(&hak_target_cut_low_bytes);
        if (cut_low == SIZE_MAX) { /* else the turn of the last purge goes on */
            size_t half = hak_load_relaxed(&hak_slabs_given_back) / 2;
            hak_add_relaxed(&hak_slabs_given_back, (size_t)0 - half);
        }
        hak_store_relaxed(&hak_target_cut_low_bytes, SIZE_MAX);
        pool->low_bytes = hak_least(pool->low_bytes, cut_low);
        keep = decay_keep(pool, hak_target_idle_bytes(pool->in_use_bytes));
    }
    if (learned != SIZE_MAX) {
        size_t idle = hak_target_idle_bytes(pool->in_use_bytes);
        keep = learned_keep(pool->resident_bytes, learned, idle);
    }
    keep = hak_most(keep, HAK_UNIT_BYTES); /* 0 would unmap superslabs */
    keep = exceeds_bound ? hak_least(keep, bound / 4 * 3) : keep;
    return (hak_purge_plan_t){.keep_bytes = keep, .is_exact = !exceeds_bound};
}

size_t hak_target_purge(hak_purge_plan_t *plan, size_t unused_bytes) {
    uint64_t now = hak_os_now_ns();
    if (now < hak_load_relaxed(&hak_target_retry_at_ns) &&
        unused_bytes <= hak_load_relaxed(&hak_target_retry_above_bytes)) {
        return 0;
    }
    size_t given_back = hak_span_purge_by(plan);
    if (given_back == 0 && plan->is_refused) {
        hak_store_relaxed(&hak_target_retry_above_bytes,
                          unused_bytes + unused_bytes / TARGET_RETRY_DIVISOR);
        hak_store_relaxed(&hak_target_retry_at_ns, now + TARGET_RETRY_NS);
    }
    return given_back;
}

static size_t spans_learn(const hak_pool_t *pool, uint64_t now) {
    size_t idle = hak_target_idle_bytes(pool->in_use_bytes);
    size_t bound = hak_least(hak_retain_bytes(pool->in_use_bytes), SIZE_MAX / 2);
    uint64_t wanted_again = hak_load_relaxed(&hak_counters.purge_regret_units);
    hak_learner_reading_t reading = {
        .now_ns = now,
        .in_use_bytes = pool->in_use_bytes,
        .most_bytes = pool->in_use_bytes + hak_excess(pool->resident_bytes, pool->dip_bytes),
        .idle_bytes = hak_excess(pool->resident_bytes, idle),
        .stay_bytes = idle,
        .bound_bytes = bound,
        .hard_bytes = 2 * bound,
        .cut_bytes = bound / 4 * 3,
        .taken_bytes = wanted_again * HAK_UNIT_BYTES,
    };
    return hak_learner_maintain(HAK_LEARNER_UNITS, &reading);
}

void hak_target_spans(void) {
    uint64_t now = hak_os_now_ns();
    bool is_turn = hak_is_due(&hak_target_window_end_ns, now, HAK_WINDOW_NS);
    hak_pool_t pool;
    hak_span_pool(&pool, is_turn);
    hak_purge_plan_t plan = spans_plan(&pool, is_turn, spans_learn(&pool, now), now);
    size_t given_back =
        plan.keep_bytes != SIZE_MAX ? hak_target_purge(&plan, pool.resident_bytes) : 0;
    if (plan.is_exact && plan.is_cut) { /* the rest was not needed in the window either */
        size_t low = hak_excess(pool.low_bytes, given_back);
        hak_store_relaxed(&hak_target_cut_low_bytes, low);
        hak_store_relaxed(&hak_target_window_end_ns, 0);
    }
}

size_t hak_target_over_peak(void) {
    hak_span_stats_t spans;
    hak_span_stats(&spans);
    size_t held = hak_excess(spans.in_use_bytes, hak_load_relaxed(&hak_span_purged_bytes));
    size_t before = hak_load_relaxed(&hak_span_peak_bytes);
    if (held <= before) { /* another thread was here */
        return 0;
    }
    size_t peak = held + held / PEAK_SHARE + PEAK_LEAST_BYTES;
    hak_store_relaxed(&hak_span_peak_bytes, peak);
    return peak - before;
}

static void huge_turn(hak_huge_pool_t *pool) {
    uint64_t now = hak_os_now_ns();
    if (now >= pool->window_end_ns) {
        bool is_long_ago = now - pool->window_end_ns >= HAK_WINDOW_NS;
        pool->last_peak_bytes = is_long_ago ? pool->in_use_bytes : pool->peak_bytes;
        if (is_long_ago) {
            hak_store_relaxed(&hak_target_huge_line, 0);
        }
        pool->peak_bytes = pool->in_use_bytes;
        pool->last_low_bytes = pool->low_bytes;
        pool->low_bytes = pool->resident_bytes;
        pool->window_end_ns = now + HAK_WINDOW_NS;
    }
}

/* Even for a while: see above. */
static size_t huge_most(size_t in_use_bytes) {
    size_t least = CACHE_LEAST_TIMES * hak_load_relaxed(&hak_knobs.huge_cache_bytes);
    return least + in_use_bytes / CACHE_SHARE;
}

/* Every free of a huge block calls it, so that an excess goes at once: a program that rarely frees,
 * and does nothing else, may reach no event for long. */
void hak_target_huge_bound(hak_huge_pool_t *pool) {
    huge_turn(pool);
    size_t least = hak_load_relaxed(&hak_knobs.huge_cache_bytes);
    size_t percent = 2 * hak_load_relaxed(&hak_knobs.retain_percent);
    size_t share = pool->in_use_bytes / CACHE_SHARE, most = huge_most(pool->in_use_bytes);
    size_t peak = hak_most(pool->peak_bytes, pool->last_peak_bytes);
    size_t recent = peak / 100 * percent + peak % 100 * percent / 100;
    bool learns = hak_load_relaxed(&hak_knobs.learn) == HAK_LEARN_ON;
    size_t line = learns ? hak_load_relaxed(&hak_target_huge_line) : 0;
    recent = hak_most(recent, hak_excess(line, pool->in_use_bytes));
    pool->bound_bytes = hak_most(hak_most(least, share), hak_least(recent, most));
    pool->bound_address_bytes = CACHE_ADDRESS_TIMES * pool->bound_bytes;
}

static size_t huge_learn(const hak_huge_pool_t *pool) {
    size_t idle = idle_bytes(pool->in_use_bytes), most = huge_most(pool->in_use_bytes);
    hak_learner_reading_t reading = {
        .now_ns = hak_os_now_ns(),
        .in_use_bytes = pool->in_use_bytes,
        .most_bytes = pool->most_bytes,
        .idle_bytes = hak_excess(pool->resident_bytes, idle),
        .stay_bytes = idle,
        .bound_bytes = most,
        .hard_bytes = most,
        .cut_bytes = most,
        .taken_bytes = hak_load_relaxed(&hak_counters.huge_map_bytes),
    };
    return hak_learner_maintain(HAK_LEARNER_HUGE, &reading);
}

/* The amplitude counts as 0: half of a mapping taken in a window need not be there in the next. */
void hak_target_huge(void) {
    hak_huge_pool_t huge;
    hak_large_pool(&huge);
    size_t low = hak_least(huge.low_bytes, huge.last_low_bytes);
    hak_pool_t pool = {huge.in_use_bytes, huge.resident_bytes, low, low, low};
    size_t idle = idle_bytes(pool.in_use_bytes), learned = huge_learn(&huge);
    if (learned != HAK_LEARNER_ALL) {
        hak_store_relaxed(&hak_target_huge_line,
                          learned == SIZE_MAX ? 0 : huge.in_use_bytes + learned);
    }
    size_t keep = learned == SIZE_MAX ? decay_keep(&pool, idle)
                                      : learned_keep(pool.resident_bytes, learned, idle);
    hak_large_trim_to(hak_least(huge.bound_bytes, keep), huge.bound_address_bytes);
}

void hak_target_after_fork(void) {
    hak_learner_reset();
    hak_store_relaxed(&hak_target_huge_line, 0);
}
