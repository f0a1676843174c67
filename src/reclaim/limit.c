/* SPDX-License-Identifier: MIT
 *
 * Memory limits of control groups: memory in use and unused memory together stay below a bound, so
 * unused memory goes before fresh memory is taken. One thread at a time reads the files.
 * The first read is at process start, with one thread and before a program enters a sandbox;
 * without a limit it is the last. Else a process with READ_LEAST bytes reads by time, at events:
 * each second, five times a second while little is left, and up to 20 times a second while it
 * exceeds the last bound; and by bytes, when so much memory is about to be taken that the last read
 * says little (docs/experiments/0111-bytes-before-a-limit.md). Growth outruns any clock.
 * Measured in docs/experiments/0029-cgroup-memory.md. */
#include "reclaim/reclaim.h"

#include "base/atomics.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "large/large.h"
#include "os/lock.h"
#include "os/optional.h"

enum {
    READ_LEAST = 16 << 20,     /* of memory, in use or not; with less, one read suffices */
    READ_OVER_LEAST = 2 << 20, /* unused; with less, an excess does not matter */
    /* The reserve, a part of the limit, stays free for growth between two reads and for other
     * processes; the hard part of the reserve stays free at any cost. */
    RESERVE_DIVISOR = 16,
    RESERVE_MOST = 1 << 30,
    RESERVE_HARD_DIVISOR = 4,
    /* Tight: less than this part of the limit would be free after full reclaim. */
    TIGHT_DIVISOR = 8,
    RELAXED_DIVISOR = 4,
    /* Bytes that may go until the next read: some milliseconds; each back-off halves them. */
    STEP_LEAST = 32 << 20,
    STEP_DIVISOR = 256, /* of the memory of the process */
    BACKOFF_MOST = 5,
    MISSES_MOST = 8,
    LIMIT_KEPT = 1 << 20,  /* unused units that always stay */
    LIMIT_MOST = 64 << 20, /* per call: some milliseconds */
    /* Memory taken between two reads, as soon as less than 1/NEAR_DIVISOR of the limit is left. */
    GRAIN_DIVISOR = 64,
    GRAIN_LEAST = 1 << 20,
    GRAIN_MOST = 32 << 20,
    GRAIN_OVER_DIVISOR = 4, /* of that, where all pools had too little */
    NEAR_DIVISOR = 4,
    FAR_DIVISOR = 4, /* of what may be taken until then, before the next read */
};

/* docs/experiments/0029-cgroup-memory.md */
static const uint64_t READ_NS = 10ull * HAK_EVENT_STEP_NS;
static const uint64_t READ_TIGHT_NS = 2ull * HAK_EVENT_STEP_NS;
static const uint64_t READ_OVER_NS = HAK_EVENT_STEP_NS / 2;

HAK_LOCKED_STATE hak_limit_t hak_limit;

/* Memory wanted again before the next read was purged for nothing: then the step shrinks. */
static void limit_learn(void) {
    const uint64_t given[2] = {hak_load_relaxed(&hak_counters.limit_purged_bytes),
                               hak_load_relaxed(&hak_counters.limit_purged_huge_bytes)};
    const uint64_t wanted[2] = {hak_load_relaxed(&hak_counters.purge_regret_units) * HAK_UNIT_BYTES,
                                hak_load_relaxed(&hak_counters.huge_map_bytes)};
    uint64_t all = 0, regret = 0, backoff = hak_load_relaxed(&hak_limit.backoff);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t part = hak_regret_growth(&hak_limit.given[i], given[i]);
        uint64_t again = hak_regret_growth(&hak_limit.wanted[i], wanted[i]);
        all += part;
        regret += hak_least(part, again);
    }
    hak_store_relaxed(&hak_limit.backoff,
                      hak_regret_backoff(backoff, regret > all / 2, BACKOFF_MOST));
}

/* Memory taken between two reads: near the limit a part of it, else a part of what may be taken
 * until it is near, as there may be other processes that grow alike. */
static void limit_set_allowance(uint64_t limit, uint64_t used) {
    size_t grain = hak_least(hak_most(limit / GRAIN_DIVISOR, GRAIN_LEAST), GRAIN_MOST);
    size_t far = hak_excess(limit / NEAR_DIVISOR * (NEAR_DIVISOR - 1), used) / FAR_DIVISOR;
    hak_store_relaxed(&hak_limit.grain_bytes, grain);
    hak_store_relaxed(&hak_limit.allow_bytes, hak_most(grain, far));
}

/* Sets the bounds of the process from now on, and whether it is tight. */
static void limit_set(const hak_os_memory_t *memory, const hak_footprint_t *has) {
    uint64_t limit = hak_least(memory->limit_bytes, 1ull << 60);
    uint64_t used = hak_least(memory->used_bytes, 1ull << 60);
    uint64_t reserve = hak_least(limit / RESERVE_DIVISOR, RESERVE_MOST);
    uint64_t may_have = hak_excess(has->all_bytes + limit, used);
    uint64_t room = hak_excess(limit + has->unused_bytes + has->cached_bytes, used);
    uint64_t part = hak_load_relaxed(&hak_knobs.is_tight) ? RELAXED_DIVISOR : TIGHT_DIVISOR;
    size_t step = STEP_LEAST + has->all_bytes / STEP_DIVISOR;
    step >>= hak_load_relaxed(&hak_limit.backoff);
    hak_store_relaxed(&hak_knobs.limit_step_bytes, step);
    hak_store_relaxed(&hak_knobs.limit_hard_bytes,
                      hak_excess(may_have, reserve / RESERVE_HARD_DIVISOR));
    hak_store_relaxed(&hak_knobs.limit_soft_bytes, hak_excess(may_have, reserve));
    hak_store_relaxed(&hak_knobs.is_tight, room < limit / part);
    hak_store_relaxed(&hak_knobs.limit_bytes, limit);
    limit_set_allowance(limit, used);
}

/* Returns the pause before the next read. */
static uint64_t limit_read(const hak_footprint_t *has) {
    hak_os_memory_t memory;
    hak_count(limit_reads);
    limit_learn();
    if (hak_os_memory_limit(&memory)) {
        hak_store_relaxed(&hak_limit.misses, 0);
        limit_set(&memory, has);
        return hak_load_relaxed(&hak_knobs.is_tight) ? READ_TIGHT_NS : READ_NS;
    }
    bool had_limit =
        hak_load_relaxed(&hak_knobs.limit_bytes) != 0 || hak_load_relaxed(&hak_limit.misses) != 0;
    if (had_limit && hak_add_relaxed(&hak_limit.misses, 1) + 1 < MISSES_MOST) {
        return READ_NS; /* unreadable just now, perhaps because memory is out */
    }
    hak_store_relaxed(&hak_knobs.limit_soft_bytes, SIZE_MAX);
    hak_store_relaxed(&hak_knobs.is_tight, false);
    hak_store_relaxed(&hak_knobs.limit_bytes, 0);
    /* Another thread, with other descriptors, may be able to read. */
    return had_limit ? READ_NS : UINT64_MAX;
}

/* Whether so much memory was taken since the last read that this thread shall read. */
static bool limit_is_due(const hak_footprint_t *has, size_t held) {
    size_t due = hak_load_relaxed(&hak_limit.due_bytes);
    return held >= due && has->all_bytes >= READ_LEAST &&
           hak_load_relaxed(&hak_knobs.limit_soft_bytes) != SIZE_MAX &&
           hak_cas_relaxed(&hak_limit.due_bytes, &due, SIZE_MAX);
}

/* Sets when memory taken is looked at next, which a read by time does not put off. `held`: of the
 * process, now. */
static void limit_mark(const hak_footprint_t *has, size_t held, bool is_new) {
    size_t soft = hak_load_relaxed(&hak_knobs.limit_soft_bytes), next = SIZE_MAX;
    if (soft != SIZE_MAX) {
        bool is_over = hak_load_relaxed(&hak_limit.press_bytes) != 0;
        size_t over = hak_load_relaxed(&hak_limit.grain_bytes) / GRAIN_OVER_DIVISOR;
        size_t due = held + (is_over ? over : hak_load_relaxed(&hak_limit.allow_bytes));
        due = is_new ? due : hak_least(due, hak_load_relaxed(&hak_limit.due_bytes));
        hak_store_relaxed(&hak_limit.due_bytes, due);
        next = hak_excess(held < soft ? hak_least(due, soft) : due, has->huge_bytes);
    }
    hak_store_relaxed(&hak_span_limit_bytes, next);
}

/* Bytes that may go now. Above the limit each page fault of the program waits for the kernel, so
 * that excess, up to LIMIT_MOST, goes at once if unused memory covers it. Else, and below the
 * limit, only a step goes: the rest at least saves faults. */
static size_t limit_excess(const hak_footprint_t *has, size_t wanted, size_t step) {
    size_t limit = hak_load_relaxed(&hak_knobs.limit_hard_bytes);
    size_t soft = hak_least(wanted - hak_load_relaxed(&hak_knobs.limit_soft_bytes), step);
    size_t hard = hak_excess(wanted, limit);
    hard = hard <= has->unused_bytes + has->cached_bytes ? hak_least(hard, LIMIT_MOST) : 0;
    return soft > hard ? soft : hard;
}

static size_t limit_order(hak_reclaim_order_t *order) {
    size_t given = hak_reclaim_order(order);
    hak_count_by(limit_purged_huge_bytes, order->given_back[HAK_POOL_HUGE]);
    hak_count_by(limit_purged_bytes, order->given_back[HAK_POOL_UNITS]);
    return given;
}

/* After a read: what is too much, and `ahead` of it, goes from all pools. If they have too little,
 * they are left alone until there is more memory than now. Returns the bytes. */
static size_t limit_press(size_t held, size_t ahead) {
    size_t excess = hak_excess(held, hak_load_relaxed(&hak_knobs.limit_soft_bytes));
    hak_reclaim_order_t order = {.pools = (1 << HAK_POOLS) - 1,
                                 .keep_bytes = HAK_UNIT_BYTES, /* 0 would unmap superslabs */
                                 .wanted_bytes = hak_least(excess + ahead, LIMIT_MOST),
                                 .is_urgent = true};
    size_t given = limit_order(&order), grain = hak_load_relaxed(&hak_limit.grain_bytes);
    bool is_enough = given >= order.wanted_bytes;
    hak_store_relaxed(&hak_limit.press_bytes, is_enough ? 0 : held + grain / GRAIN_OVER_DIVISOR);
    (void)hak_add_relaxed(&hak_event_flush_round, !is_enough); /* they have given by then */
    return given;
}

static size_t limit_step(const hak_footprint_t *has, size_t held) {
    size_t step = hak_load_relaxed(&hak_knobs.limit_step_bytes);
    hak_reclaim_order_t order = {.pools = 1 << HAK_POOL_HUGE | 1 << HAK_POOL_UNITS,
                                 .keep_bytes = LIMIT_KEPT,
                                 .wanted_bytes = limit_excess(has, held, step)};
    size_t given = limit_order(&order);
    hak_store_relaxed(&hak_knobs.limit_step_bytes, hak_excess(step, given));
    return given;
}

/* Why the files were read just now. */
typedef enum limit_reason { READ_NONE, READ_BY_TIME, READ_BY_BYTES } limit_reason_t;

/* `bytes` are about to be taken. As long as no more is taken, cheap pools suffice up to the hard
 * bound. */
static void limit_apply(const hak_footprint_t *has, size_t bytes, limit_reason_t reason) {
    size_t held = has->all_bytes + bytes, given = 0;
    size_t soft = hak_load_relaxed(&hak_knobs.limit_soft_bytes);
    size_t hard = hak_load_relaxed(&hak_knobs.limit_hard_bytes);
    bool is_pressed = reason != READ_NONE && held > (reason == READ_BY_TIME ? hard : soft) &&
                      held >= hak_load_relaxed(&hak_limit.press_bytes);
    if (is_pressed) {
        size_t ahead = reason == READ_BY_BYTES ? hak_load_relaxed(&hak_limit.grain_bytes) : 0;
        given = limit_press(held, ahead);
    } else if (held > soft) {
        given = limit_step(has, held);
    } else if (reason != READ_NONE) {
        hak_store_relaxed(&hak_limit.press_bytes, 0);
    }
    limit_mark(has, hak_excess(held, given), reason == READ_BY_BYTES);
}

void hak_limit_give_back(size_t bytes) {
    hak_footprint_t has;
    if (!hak_lock_holds_none()) { /* a hook of the C library's functions allocates */
        return;
    }
    hak_large_footprint(&has);
    limit_reason_t reason = limit_is_due(&has, has.all_bytes + bytes) ? READ_BY_BYTES : READ_NONE;
    if (reason != READ_NONE) {
        (void)limit_read(&has);
    }
    limit_apply(&has, bytes, reason);
}

/* The first read, without the clock, whose first use costs two page faults. */
HAK_COLD void hak_limit_start(void) {
    static const hak_footprint_t nothing;
    if (hak_load_relaxed(&hak_knobs.cgroup)) {
        hak_store_relaxed(&hak_limit.pause_ns, limit_read(&nothing));
        limit_mark(&nothing, 0, true);
    }
}

HAK_COLD void hak_limit_tick(void) {
    size_t most = hak_load_relaxed(&hak_knobs.limit_soft_bytes);
    uint64_t last = hak_load_relaxed(&hak_limit.read_ns);
    uint64_t pause = hak_load_relaxed(&hak_limit.pause_ns), now = hak_os_now_ns();
    if (!hak_load_relaxed(&hak_knobs.cgroup) || (most == SIZE_MAX && now - last < pause)) {
        return;
    }
    hak_footprint_t has;
    hak_large_footprint(&has);
    bool exceeds_limit =
        has.all_bytes > most && has.unused_bytes + has.cached_bytes > READ_OVER_LEAST;
    pause = exceeds_limit ? READ_OVER_NS : pause;
    limit_reason_t reason = limit_is_due(&has, has.all_bytes) ? READ_BY_BYTES : READ_NONE;
    if (now - last >= pause && hak_cas_relaxed(&hak_limit.read_ns, &last, now)) {
        bool is_little = most != SIZE_MAX && has.all_bytes < READ_LEAST;
        hak_store_relaxed(&hak_limit.pause_ns, READ_TIGHT_NS);
        reason = is_little || reason != READ_NONE ? reason : READ_BY_TIME;
    }
    if (reason != READ_NONE) {
        hak_store_relaxed(&hak_limit.pause_ns, limit_read(&has));
    }
    limit_apply(&has, 0, reason);
}
