/* SPDX-License-Identifier: MIT
 *
 * How much memory control groups leave, and what follows. Their files are read by one thread, at
 * events: each second, five times a second while little is left, at most 20 times a second when
 * what the process uses grew beyond what the last look allowed; each 64 s if there was no limit. A
 * process that never has LOOK_LEAST never opens one. */
#include "policy/policy.h"

#include "base/atomics.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "large/large.h"
#include "os/os.h"

enum {
    LOOK_LEAST = 16 << 20, /* of memory, in use or not, without which no file is opened */
    /* Of the limit, what is left free: for what grows between two looks, and for others. */
    RESERVE_PART = 16,
    RESERVE_MOST = 1 << 30,
    RESERVE_HARD_PART = 4, /* of that, which is left free whatever it costs */
    /* Of the limit, what would be left if nothing were unused. */
    TIGHT_PART = 8,
    RELAXED_PART = 4,
    /* What may go in a step of time: some milliseconds of work. */
    STEP_LEAST = 64 << 20,
    STEP_PART = 128, /* of what the process has */
    BACKOFF_UP = 2,
    BACKOFF_MOST = 6, /* halvings of that, down to 1 MiB */
};

static const uint64_t LOOK_NS = 1000u * 1000 * 1000;
static const uint64_t LOOK_TIGHT_NS = 200u * 1000 * 1000;
static const uint64_t LOOK_SOON_NS = 50u * 1000 * 1000;
static const uint64_t LOOK_SELDOM_NS = 64ull * 1000 * 1000 * 1000;
static const uint64_t STEP_NS = 100u * 1000 * 1000;

/* What the counters said at the last look. */
typedef struct pressure_counts {
    uint64_t span, huge;               /* bytes given back for room */
    uint64_t span_wanted, huge_wanted; /* bytes that were purged and are wanted again, or mapped */
} pressure_counts_t;

HAK_LOCKED_STATE struct hak_pressure {
    uint32_t is_busy;         /* [atomic] one thread at a time */
    uint64_t due_ns;          /* [atomic] of the next look */
    uint64_t soon_ns;         /* [atomic] of the next one if the bound is passed */
    uint64_t step_ns;         /* [atomic] of the next step */
    unsigned backoff;         /* [owner] of is_busy */
    pressure_counts_t before; /* [owner] of is_busy */
} hak_pressure;

static uint64_t bytes_least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Memory that is given back and wanted again before the next look helped nobody: then less may go
 * in a step. */
static void pressure_learn(void) {
    pressure_counts_t before = hak_pressure.before;
    pressure_counts_t now = {
        .span = hak_load_relaxed(&hak_counters.room_span_bytes),
        .huge = hak_load_relaxed(&hak_counters.room_huge_bytes),
        .span_wanted = hak_load_relaxed(&hak_counters.purge_regret_units) * HAK_UNIT_BYTES,
        .huge_wanted = hak_load_relaxed(&hak_counters.huge_map_bytes),
    };
    uint64_t span = now.span - before.span, huge = now.huge - before.huge;
    uint64_t regret = bytes_least(span, now.span_wanted - before.span_wanted) +
                      bytes_least(huge, now.huge_wanted - before.huge_wanted);
    if (regret > (span + huge) / 2) {
        hak_pressure.backoff =
            (unsigned)bytes_least(hak_pressure.backoff + BACKOFF_UP, BACKOFF_MOST);
    } else if (hak_pressure.backoff != 0) {
        hak_pressure.backoff--;
    }
    hak_pressure.before = now;
}

/* What the process may have from now on, and whether that needs more than giving back what is
 * unused. */
static void pressure_bound(const hak_os_memory_t *memory, const hak_footprint_t *has) {
    uint64_t limit = bytes_least(memory->limit_bytes, 1ull << 60);
    uint64_t used = bytes_least(memory->used_bytes, 1ull << 60);
    uint64_t reserve = bytes_least(limit / RESERVE_PART, RESERVE_MOST);
    uint64_t may_have = has->all_bytes + limit;
    may_have = may_have > used ? may_have - used : 0;
    uint64_t least = reserve / RESERVE_HARD_PART;
    uint64_t room = limit + has->unused_bytes + has->cached_bytes;
    room = room > used ? room - used : 0;
    bool is_tight = hak_load_relaxed(&hak_knobs.is_tight);
    is_tight = room < limit / (is_tight ? RELAXED_PART : TIGHT_PART);
    hak_store_relaxed(&hak_knobs.footprint_limit_bytes, may_have > least ? may_have - least : 0);
    hak_store_relaxed(&hak_knobs.footprint_bytes, may_have > reserve ? may_have - reserve : 0);
    hak_store_relaxed(&hak_knobs.is_tight, is_tight);
    hak_store_relaxed(&hak_knobs.limit_bytes, limit);
}

static uint64_t pressure_look(const hak_footprint_t *has) {
    hak_os_memory_t memory;
    hak_count(pressure_look);
    pressure_learn();
    if (hak_os_memory_limit(&memory)) {
        pressure_bound(&memory, has);
        return hak_load_relaxed(&hak_knobs.is_tight) ? LOOK_TIGHT_NS : LOOK_NS;
    }
    hak_store_relaxed(&hak_knobs.footprint_bytes, SIZE_MAX);
    hak_store_relaxed(&hak_knobs.footprint_limit_bytes, SIZE_MAX);
    hak_store_relaxed(&hak_knobs.is_tight, false);
    hak_store_relaxed(&hak_knobs.limit_bytes, 0);
    return LOOK_SELDOM_NS;
}

static void pressure_step(uint64_t now, const hak_footprint_t *has) {
    size_t step = STEP_LEAST + has->all_bytes / STEP_PART;
    hak_store_relaxed(&hak_pressure.step_ns, now + STEP_NS);
    hak_store_relaxed(&hak_knobs.footprint_step_bytes, step >> hak_pressure.backoff);
}

void hak_policy_press(void) {
    uint64_t now = hak_os_now_ns();
    size_t most = hak_load_relaxed(&hak_knobs.footprint_bytes);
    if (!hak_load_relaxed(&hak_knobs.cgroup) ||
        (most == SIZE_MAX && now < hak_load_relaxed(&hak_pressure.due_ns))) {
        return;
    }
    hak_footprint_t has;
    hak_large_footprint(&has);
    bool is_over = has.all_bytes > most;
    const uint64_t *due = is_over ? &hak_pressure.soon_ns : &hak_pressure.due_ns;
    bool is_due = now >= hak_load_relaxed(due);
    if ((is_due || now >= hak_load_relaxed(&hak_pressure.step_ns)) &&
        hak_swap_acquire(&hak_pressure.is_busy, 1) == 0) {
        bool is_little = most == SIZE_MAX && has.all_bytes < LOOK_LEAST;
        if (is_due) {
            uint64_t pause = is_little ? STEP_NS : pressure_look(&has);
            hak_store_relaxed(&hak_pressure.due_ns, now + pause);
            hak_store_relaxed(&hak_pressure.soon_ns, now + LOOK_SOON_NS);
        }
        pressure_step(now, &has);
        hak_store_release(&hak_pressure.is_busy, 0);
    }
    if (has.all_bytes > hak_load_relaxed(&hak_knobs.footprint_bytes)) {
        hak_large_make_room(0);
    }
}

void hak_policy_press_after_fork(void) {
    hak_store_relaxed(&hak_pressure.is_busy, 0);
}
