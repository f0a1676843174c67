/* SPDX-License-Identifier: MIT
 *
 * What goes back to the kernel, and when. What may stay unused is bounded by size and time:
 *
 *     bound = max(retain_min_bytes, in use x retain_percent / 100),
 *             and retain_learned_percent more
 *
 *   unused > 2 x bound                       purged at once
 *   unused above bound for PURGE_DELAY_NS    purged down to 3/4 of the bound: nobody needed it
 *   unused <= bound                          decays: the least that was unused in a window of
 *                                            DECAY_WINDOW_NS was needed by nobody, and is purged at
 *                                            the end of the window, down to
 *
 *     idle = max(retain_idle_bytes, in use / DECAY_SHARE, retain_wanted_bytes), at most the bound,
 *
 * but only if that is more than DECAY_STEP_TIMES what unused memory went up and down by meanwhile.
 *
 * So a load that breathes within a window makes no kernel calls. One that breathes more slowly
 * takes again what was purged, which the learner sees: it exempts that much (retain_wanted_bytes).
 *
 * The youngest superslabs go first (SPAN-5); what decays by units, what is over the bound by whole
 * superslabs. Wholly unused ones keep their addresses unless there are more than IDLE_LEAST of them
 * and more than 1/IDLE_SHARE of all. No kernel call happens under the lock: units are taken out of
 * circulation first and come back clean afterwards. */
#include "base/atomics.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "os/lock.h"
#include "os/os.h"
#include "span/pagemap.h"
#include "span/span_state.h"

static const uint64_t PURGE_DELAY_NS = 500u * 1000 * 1000;
/* Two of them, each of which ends up to a step of the events later, are a second. */
static const uint64_t DECAY_WINDOW_NS = 400u * 1000 * 1000;

enum {
    DECAY_SHARE = 32,      /* of what is in use, exempt (docs/experiments/0023-decay.md) */
    DECAY_STEP_UNITS = 16, /* less than this is not worth the calls; and less than so many times */
    DECAY_STEP_TIMES = 2,  /* what a load goes up and down by may be needed at its next peak */
};

/* The kernel refused to take anything (locked memory): no use asking on every free. */
static const uint64_t PURGE_RETRY_NS = 8u * 500 * 1000 * 1000;

size_t hak_span_retain_bytes(size_t in_use_bytes) {
    size_t least = hak_load_relaxed(&hak_knobs.retain_min_bytes);
    size_t share = in_use_bytes / 100 * hak_load_relaxed(&hak_knobs.retain_percent);
    size_t bound = share > least ? share : least;
    return bound + bound / 100 * hak_load_relaxed(&hak_knobs.retain_learned_percent);
}

size_t hak_span_idle_bytes(size_t in_use_bytes) {
    size_t bound = hak_span_retain_bytes(in_use_bytes);
    size_t idle = in_use_bytes / DECAY_SHARE;
    size_t least = hak_load_relaxed(&hak_knobs.retain_idle_bytes);
    size_t wanted = hak_load_relaxed(&hak_knobs.retain_wanted_bytes);
    return hak_least(bound, hak_most(idle, hak_most(least, wanted)));
}

static size_t span_bound(void) {
    return hak_span_retain_bytes(hak_span_state.in_use_units * HAK_UNIT_BYTES);
}

bool hak_span_is_over(void) {
    size_t unused = hak_span_state.unused_dirty_units * HAK_UNIT_BYTES;
    size_t bound = hak_load_relaxed(&hak_knobs.retain_min_bytes); /* no bound is below */
    bound = unused > bound ? span_bound() : bound;
    if (unused <= bound) {
        hak_span_state.over_since_ns = 0;
        return false;
    }
    uint64_t now = hak_os_now_ns();
    if (now < hak_span_state.retry_at_ns) {
        return false;
    }
    if (hak_span_state.over_since_ns == 0) {
        hak_span_state.over_since_ns = now;
    }
    return unused > 2 * bound || now - hak_span_state.over_since_ns > PURGE_DELAY_NS;
}

void hak_span_note_met(void) {
    if (hak_span_state.unused_dirty_units * HAK_UNIT_BYTES <= span_bound()) {
        hak_span_state.over_since_ns = 0;
    }
}

/* Units that were purged and are wanted again cost a page fault each: the learner's regret. */
void hak_span_note_wanted(hak_superslab_t *superslab, uint64_t units) {
    uint64_t regret = units & superslab->purged_units;
    if (regret != 0) {
        superslab->purged_units &= ~units;
        hak_count_by(purge_regret_units, hak_popcount(regret));
    }
}

HAK_LOCKED_STATE uint64_t hak_purge_visits; /* [lock SPAN] */

enum { IDLE_LEAST = 16, IDLE_SHARE = 2 };

/* One piece of work, taken under the lock. */
typedef struct purge_job {
    hak_superslab_t *superslab;
    uint64_t units; /* to purge, or all of them: to unmap */
    uint8_t split;  /* huge pages that end, bit each */
    bool is_unmap;
} purge_job_t;

/* Superslabs that are wholly unused go, clean or not. */
static bool whole_ones_go(size_t keep_units) {
    const hak_span_state_t *state = &hak_span_state;
    return keep_units == 0 ||
           (state->whole_count > IDLE_LEAST && state->whole_count > state->count / IDLE_SHARE);
}

/* The youngest superslab below `end` that has something to give back; NULL: none has. */
static hak_superslab_t *job_find(uint32_t end, bool takes_whole) {
    const hak_span_state_t *state = &hak_span_state;
    uint32_t found = hak_summary_find_last(&state->dirty, 1, end) + 1; /* 0: none */
    if (takes_whole) {
        uint32_t whole = hak_summary_find_last(&state->fit[0], HAK_SUPERSLAB_UNITS, end) + 1;
        found = whole > found ? whole : found;
    }
    return found == 0 ? NULL : state->table[found - 1];
}

/* The highest `count` of the units: the lowest are taken again first (SPAN-5). */
static uint64_t highest_units(uint64_t units, size_t count) {
    while (hak_popcount(units) > count) {
        units &= units - 1;
    }
    return units;
}

/* What goes. By size whole superslabs: few calls. By time no unit more than has to: the rest was
 * needed in this window. Unless all of it is wanted now, so many calls go to the kernel at a time,
 * those it refuses apart: the rest goes at the next free or event. */
enum { PURGE_CALLS = 256, PURGE_ENOUGH = PURGE_CALLS - HAK_SUPERSLAB_UNITS / 2 + 1 };

typedef struct purge_plan {
    size_t keep_units; /* SIZE_MAX: nothing goes */
    bool is_exact, is_all;
} purge_plan_t;

static bool job_take(purge_job_t *job, purge_plan_t plan, uint32_t *cursor) {
    size_t keep_units = plan.keep_units;
    hak_span_state_t *state = &hak_span_state;
    if (state->unused_dirty_units <= keep_units && keep_units != 0) {
        return false;
    }
    bool takes_whole = whole_ones_go(keep_units);
    hak_superslab_t *superslab = job_find(*cursor, takes_whole);
    if (superslab == NULL) {
        return false;
    }
    hak_purge_visits += HAK_FAULT;
    *cursor = superslab->index;
    uint64_t dirty = superslab->free_units & ~superslab->clean_units;
    job->superslab = superslab;
    job->is_unmap = takes_whole && superslab->free_units == ~0ull;
    if (plan.is_exact && !job->is_unmap) {
        dirty = highest_units(dirty, state->unused_dirty_units - keep_units);
    }
    job->units = job->is_unmap ? ~0ull : dirty;
    HAK_ASSERT(job->units != 0, "SPAN-10");
    state->whole_count -= superslab->free_units == ~0ull;
    superslab->free_units &= ~job->units;
    if (job->is_unmap) { /* keeps its place in the table until it is gone */
        hak_pagemap_set_superslab(superslab->base, NULL);
    }
    superslab->leaving_units |= job->units;
    hak_fit_note(superslab);
    hak_span_note_dirty(superslab);
    job->split = hak_span_note_split(superslab, job->units);
    hak_span_take_dirty(hak_popcount(dirty));
    state->high_units -= hak_popcount(dirty); /* a purge is no breath */
    return true;
}

/* A run with a locked page is refused as a whole, so its halves are tried, and theirs, down to
 * units. After so many refusals without a success all of it is taken to be locked. */
enum { PURGE_SPLITS = 8 };

/* Purges the run in pieces of so many units, each one call. */
static uint64_t run_purge(hak_superslab_t *superslab, uint64_t run, unsigned piece,
                          unsigned *splits) {
    uint64_t done = 0;
    while (run != 0) {
        unsigned first = hak_ctz(run);
        uint64_t part = run & hak_mask(piece) << first;
        unsigned length = hak_popcount(part);
        hak_count(purge_calls);
        if (hak_os_purge(superslab->base + (size_t)first * HAK_UNIT_BYTES,
                         (size_t)length * HAK_UNIT_BYTES)) {
            done |= part;
            hak_count_by(purge_units, length);
            *splits = PURGE_SPLITS;
        } else if (piece < HAK_SUPERSLAB_UNITS && --*splits == 0) {
            break;
        }
        run &= ~part;
    }
    return done;
}

static uint64_t lowest_run(uint64_t units) {
    unsigned first = hak_ctz(units);
    uint64_t rest = ~(units >> first);
    return hak_mask(rest == 0 ? HAK_SUPERSLAB_UNITS : hak_ctz(rest)) << first;
}

/* Returns the units that read as zero now. */
static uint64_t superslab_purge(hak_superslab_t *superslab, uint64_t units, unsigned *splits) {
    uint64_t done = 0;
    for (unsigned piece = HAK_SUPERSLAB_UNITS; piece != 0; piece /= 2) {
        for (uint64_t left = units & ~done; left != 0;) {
            uint64_t run = lowest_run(left);
            bool is_new = piece == HAK_SUPERSLAB_UNITS;
            if (is_new || (hak_popcount(run) > piece && *splits != 0)) {
                done |= run_purge(superslab, run, piece, splits);
            }
            left &= ~run;
        }
    }
    return done;
}

/* Its mapping is gone, or about to be. */
static void superslab_forget(hak_superslab_t *superslab) {
    hak_span_state_t *state = &hak_span_state;
    state->table[superslab->index] = NULL;
    hak_summary_set(&state->vacant, superslab->index, 1);
    state->count--;
    state->huge_page_count -= hak_popcount(superslab->huge_pages);
    superslab->next = state->spare;
    state->spare = superslab;
}

/* Units that were about to go are unused again. */
static void superslab_take_back(hak_superslab_t *superslab, uint64_t units) {
    superslab->free_units |= units;
    superslab->leaving_units &= ~units;
    hak_span_state.whole_count += superslab->free_units == ~0ull;
    hak_span_add_dirty(hak_popcount(units & ~superslab->clean_units));
    hak_fit_note(superslab);
    hak_span_note_dirty(superslab);
}

static size_t job_run(const purge_job_t *job, unsigned *splits) {
    hak_superslab_t *superslab = job->superslab;
    bool is_gone = job->is_unmap &&
                   hak_os_unmap(superslab->base, HAK_SUPERSLAB_BYTES + hak_span_guard_bytes());
    hak_span_split(superslab, job->split);
    uint64_t done = is_gone ? job->units : superslab_purge(superslab, job->units, splits);
    if (done != job->units) { /* before anybody has the units */
        hak_span_note_holes(superslab, done);
    }
    hak_lock_acquire(HAK_LOCK_SPAN);
    if (is_gone) {
        superslab_forget(superslab);
        hak_count(superslab_unmap);
    } else {
        if (job->is_unmap) {
            hak_pagemap_set_superslab(superslab->base, superslab);
        }
        superslab->clean_units |= done;
        superslab->purged_units |= done;
        superslab_take_back(superslab, job->units);
    }
    hak_lock_release(HAK_LOCK_SPAN);
    return hak_popcount(done) * (size_t)HAK_UNIT_BYTES;
}

static size_t span_purge(purge_plan_t plan) {
    hak_span_state_t *state = &hak_span_state;
    size_t given_back = 0;
    hak_set_unlocked_update(true);
    hak_lock_acquire(HAK_LOCK_SPAN);
    uint32_t cursor = state->end;
    unsigned splits = PURGE_SPLITS, calls = 0;
    purge_job_t job;
    while ((calls < PURGE_ENOUGH || plan.is_all) && job_take(&job, plan, &cursor)) {
        hak_lock_release(HAK_LOCK_SPAN);
        size_t bytes = job_run(&job, &splits);
        calls += bytes != 0 ? hak_popcount(job.units & ~(job.units << 1)) : 0;
        given_back += bytes;
        hak_lock_acquire(HAK_LOCK_SPAN);
        cursor = (uint32_t)hak_least(cursor, state->end);
    }
    if (plan.is_exact && calls >= PURGE_ENOUGH) {
        state->window_end_ns = 0; /* the window did not need the rest either */
        state->low_units -= hak_least(state->low_units, state->transient_units);
    }
    hak_lock_release(HAK_LOCK_SPAN);
    hak_set_unlocked_update(false);
    return given_back;
}

static void superslab_after_fork(hak_superslab_t *superslab, void *context) {
    (void)context;
    uint64_t units = superslab->leaving_units;
    if (units != 0 && hak_pagemap_superslab(superslab->base) != superslab) {
        superslab_forget(superslab); /* what lies there now, nobody knows */
    } else if (units != 0) {
        superslab->clean_units &= ~units; /* some of them may read as zero */
        superslab_take_back(superslab, units);
    }
}

void hak_span_after_fork(void) {
    hak_span_visit(superslab_after_fork, NULL);
}

size_t hak_span_purge(size_t keep_bytes) {
    return span_purge((purge_plan_t){.keep_units = keep_bytes / HAK_UNIT_BYTES, .is_all = true});
}

/* Units that may stay unused; what nobody needed in a window that ends goes. [lock SPAN] */
static size_t decay_keep(uint64_t now) {
    hak_span_state_t *state = &hak_span_state;
    size_t low = state->low_units, high = state->high_units;
    if (now < state->window_end_ns) {
        return SIZE_MAX;
    }
    state->window_end_ns = now + DECAY_WINDOW_NS;
    state->transient_units = state->unused_dirty_units - low;
    state->low_units = state->high_units = state->unused_dirty_units;
    size_t idle = hak_span_idle_bytes(state->in_use_units * HAK_UNIT_BYTES) / HAK_UNIT_BYTES;
    size_t step = DECAY_STEP_UNITS + (high - low) * DECAY_STEP_TIMES;
    if (now < state->retry_at_ns || low <= idle + step) {
        return SIZE_MAX;
    }
    return hak_most(state->unused_dirty_units - (low - idle), 1); /* 0 would unmap */
}

static purge_plan_t purge_plan(uint64_t now) {
    size_t decay = decay_keep(now);
    bool is_over = hak_span_is_over();
    size_t most = is_over ? span_bound() / 4 * 3 / HAK_UNIT_BYTES : SIZE_MAX;
    return (purge_plan_t){.keep_units = hak_least(most, decay), .is_exact = !is_over};
}

void hak_span_purge_if_over(void) {
    uint64_t now = hak_os_now_ns();
    hak_lock_acquire(HAK_LOCK_SPAN);
    purge_plan_t plan = purge_plan(now);
    hak_lock_release(HAK_LOCK_SPAN);
    if (plan.keep_units != SIZE_MAX && span_purge(plan) == 0) {
        hak_lock_acquire(HAK_LOCK_SPAN);
        if (hak_span_state.unused_dirty_units > plan.keep_units) { /* nobody took it meanwhile */
            hak_span_state.retry_at_ns = now + PURGE_RETRY_NS;
        }
        hak_lock_release(HAK_LOCK_SPAN);
    }
}

/* --- the peak -----------------------------------------------------------------------------------
 *
 * When more is in use than ever, by a step, what can be spared goes before the heap grows on. That
 * happens some dozens of times in the life of a process; a load that stays below its peak is left
 * alone. What is unused does not count: it goes up and down in a load that always uses the same
 * (docs/experiments/0030-spare-before-a-peak.md). */

enum { PEAK_SHARE = 16, PEAK_LEAST_UNITS = 16 };

/* Every refill reads the second. */
HAK_LOCKED_STATE HAK_LINE_ALIGNED size_t hak_span_hole_bytes; /* [atomic] */
HAK_LOCKED_STATE HAK_LINE_ALIGNED size_t hak_span_over_peak;  /* [atomic] */

HAK_COLD void hak_span_note_grown(void) {
    hak_span_state_t *state = &hak_span_state;
    size_t holes = hak_load_relaxed(&hak_span_hole_bytes) / HAK_UNIT_BYTES;
    size_t units = state->in_use_units > holes ? state->in_use_units - holes : 0;
    if (units > state->peak_units) {
        size_t peak = units + units / PEAK_SHARE + PEAK_LEAST_UNITS;
        hak_store_relaxed(&hak_span_over_peak, (peak - state->peak_units) * HAK_UNIT_BYTES);
        state->peak_units = peak;
    }
}
