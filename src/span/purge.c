/* SPDX-License-Identifier: MIT
 *
 * Purges unused units; reclaim/ decides when, and how much stays. The youngest superslabs go first
 * (SPAN-5). Unused superslabs stay mapped unless they are more than IDLE_LEAST and more than
 * 1/IDLE_SHARE of all. No kernel call happens under the lock: units leave circulation first and
 * come back clean. */
#include "base/check.h"
#include "base/counters.h"
#include "os/lock.h"
#include "os/os.h"
#include "span/pagemap.h"
#include "span/span_state.h"

HAK_LOCKED_STATE uint64_t hak_purge_visits; /* [lock SPAN] */

enum { IDLE_LEAST = 16, IDLE_SHARE = 2 };

/* One superslab's purge, chosen under the lock. */
typedef struct purge_job {
    hak_superslab_t *superslab;
    uint64_t units; /* to purge; all of them: to unmap */
    uint8_t split;  /* a bit per huge page that ends */
    bool is_unmap;
} purge_job_t;

/* Whether unused superslabs are unmapped, clean or not. */
static bool whole_ones_go(size_t keep_units) {
    const hak_span_state_t *state = &hak_span_state;
    if (HAK_HARDEN && state->has_partitions) { /* SPAN-11 */
        return false;
    }
    int64_t whole_count = hak_load_relaxed(&state->whole_count);
    return keep_units == 0 || (whole_count > IDLE_LEAST && whole_count > state->count / IDLE_SHARE);
}

/* The youngest place below `end` that may have memory to purge, or be unused, and one; 0: none. */
static uint32_t job_find(uint32_t end, bool takes_whole) {
    hak_span_state_t *state = &hak_span_state;
    uint32_t found = hak_summary_find_last(&state->dirty, 1, end) + 1, whole = 0;
    if (takes_whole) {
        whole = hak_summary_find_last(&state->fit[0], HAK_SUPERSLAB_UNITS, end) + 1;
    }
    return whole > found ? whole : found;
}

/* The highest `count` units: the lowest are reused first (SPAN-5). */
static uint64_t highest_units(uint64_t units, size_t count) {
    while (hak_popcount(units) > count) {
        units &= units - 1;
    }
    return units;
}

/* Kernel calls of one purge, except refused ones, unless all memory is wanted. */
enum { PURGE_CALLS = 256, PURGE_ENOUGH = PURGE_CALLS - HAK_SUPERSLAB_UNITS / 2 + 1 };

/* Takes the units like any other thread. false: the superslab has none. */
static bool job_begin(purge_job_t *job, hak_superslab_t *superslab, size_t most_units,
                      bool takes_whole) {
    uint64_t before = takes_whole ? ~0ull : hak_load_relaxed(&superslab->free_units);
    job->superslab = superslab;
    job->is_unmap =
        takes_whole && hak_cas_acquire(&superslab->free_units, &before, 0); /* pairs UNITS */
    job->units = ~0ull;
    if (!job->is_unmap) {
        uint64_t dirty = before & ~hak_load_relaxed(&superslab->clean_units);
        job->units = highest_units(dirty, most_units);
        before = hak_and_acquire(&superslab->free_units, ~job->units); /* pairs UNITS */
        job->units &= before;
    }
    bool is_begun = job->units != 0;
    (void)hak_sub_relaxed(&hak_span_state.whole_count, is_begun && before == ~0ull);
    return is_begun;
}

static bool job_take(purge_job_t *job, const hak_purge_plan_t *plan, uint32_t *cursor) {
    size_t keep_units = plan->keep_bytes / HAK_UNIT_BYTES, unused;
    hak_span_state_t *state = &hak_span_state;
    hak_superslab_t *superslab = NULL;
    for (unsigned visits = 1; superslab == NULL; visits++) {
        if (visits % HAK_SPAN_VISIT_BATCH == 0) { /* all in vain */
            hak_lock_pass(HAK_LOCK_SPAN);
        }
        unused = hak_span_unused(hak_span_counts());
        bool takes_whole = whole_ones_go(keep_units), is_enough = unused <= keep_units;
        uint32_t found = is_enough && keep_units != 0 ? 0 : job_find(*cursor, takes_whole);
        if (found == 0) {
            return false;
        }
        hak_purge_visits += HAK_FAULT;
        *cursor = found - 1;
        superslab = state->table[*cursor];
        size_t most_units = plan->is_exact ? unused - keep_units : SIZE_MAX;
        if (superslab == NULL || !job_begin(job, superslab, most_units, takes_whole)) {
            hak_fit_settle(*cursor);
            superslab = NULL;
        }
    }
    if (job->is_unmap) { /* stays in the table until it is unmapped */
        hak_pagemap_set_superslab(superslab->base, NULL);
    }
    size_t dirty = hak_popcount(job->units & ~hak_load_relaxed(&superslab->clean_units));
    superslab->leaving_units |= job->units;
    job->split = hak_span_note_split(superslab, job->units);
    (void)hak_span_count_taken(0, dirty);
    /* a purge is no part of the amplitude */
    hak_store_relaxed(&state->high_units, hak_excess(hak_load_relaxed(&state->high_units), dirty));
    (void)hak_span_count_given(0, 0); /* SPAN-7: others may have given meanwhile */
    return true;
}

/* The kernel refuses a run with a locked page as a whole, so its halves are tried, and theirs, down
 * to units. After so many refusals without a success all of it counts as locked. */
enum { PURGE_SPLITS = 8 };

/* Purges the run in pieces of so many units, a call each. */
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
    hak_store_relaxed(&state->table[superslab->index], NULL);
    hak_summary_raise(&state->vacant, superslab->index, 1);
    hak_single_writer_add(&state->count, -1u);
    state->huge_page_count -= hak_popcount(superslab->huge_pages);
    superslab->next = state->unused;
    state->unused = superslab;
}

/* Units whose purge is over become unused again. */
static void superslab_take_back(hak_superslab_t *superslab, uint64_t units) {
    unsigned dirty = hak_popcount(units & ~hak_load_relaxed(&superslab->clean_units));
    superslab->leaving_units &= ~units;
    (void)hak_span_count_given(0, dirty);
    uint64_t free = hak_or_acquire_release(&superslab->free_units, units) | units; /* pairs UNITS */
    (void)hak_add_relaxed(&hak_span_state.whole_count, free == ~0ull);
    hak_fit_promise(superslab->index, hak_span_partition(superslab), hak_longest_run(free, ~0ull),
                    free, dirty != 0);
    hak_fit_settle(superslab->index); /* what was promised before */
}

static size_t job_run(const purge_job_t *job, unsigned *splits) {
    hak_superslab_t *superslab = job->superslab;
    bool is_gone = job->is_unmap &&
                   hak_os_unmap(superslab->base, HAK_SUPERSLAB_BYTES + hak_span_guard_bytes());
    uint64_t done = is_gone ? job->units : superslab_purge(superslab, job->units, splits);
    hak_span_split(superslab, job->split);
    if (done != job->units) { /* before any thread can take the units */
        hak_span_note_purged(superslab, done);
    }
    hak_lock_acquire(HAK_LOCK_SPAN);
    if (is_gone) {
        superslab_forget(superslab);
        hak_count(superslab_unmap);
    } else {
        if (job->is_unmap) {
            hak_pagemap_set_superslab(superslab->base, superslab);
        }
        (void)hak_or_relaxed(&superslab->clean_units, done);
        (void)hak_or_relaxed(&superslab->purged_units, done);
        superslab_take_back(superslab, job->units);
    }
    hak_lock_release(HAK_LOCK_SPAN);
    return hak_popcount(done) * (size_t)HAK_UNIT_BYTES;
}

size_t hak_span_purge_by(hak_purge_plan_t *plan) {
    hak_span_state_t *state = &hak_span_state;
    size_t given_back = 0;
    hak_set_unlocked_update(true);
    hak_lock_acquire(HAK_LOCK_SPAN);
    uint32_t cursor = state->end;
    unsigned splits = PURGE_SPLITS, calls = 0;
    purge_job_t job;
    while ((calls < PURGE_ENOUGH || plan->is_all) && job_take(&job, plan, &cursor)) {
        hak_lock_release(HAK_LOCK_SPAN);
        size_t bytes = job_run(&job, &splits);
        plan->is_refused |= bytes == 0;
        calls += bytes != 0 ? hak_popcount(job.units & ~(job.units << 1)) : 0;
        given_back += bytes;
        hak_lock_acquire(HAK_LOCK_SPAN);
        cursor = (uint32_t)hak_least(cursor, state->end);
    }
    plan->is_cut = calls >= PURGE_ENOUGH;
    hak_lock_release(HAK_LOCK_SPAN);
    hak_set_unlocked_update(false);
    return given_back;
}

/* Writes to a record only where it must: a store copies an OS page. */
static void superslab_after_fork(hak_superslab_t *superslab, void *context) {
    hak_span_state_t *state = context;
    uint64_t leaving = superslab->leaving_units;
    if (leaving != 0 && hak_pagemap_superslab(superslab->base) != superslab) {
        superslab_forget(superslab); /* its addresses may be mapped by others now */
        return;
    }
    if (leaving != 0) {
        superslab->clean_units &= ~leaving; /* some of them may read as zero */
        superslab->free_units |= leaving;
        superslab->leaving_units = 0;
    }
    uint64_t free = superslab->free_units, dirty = free & ~superslab->clean_units;
    state->counts += ((uint64_t)hak_popcount(~free) << 32) + hak_popcount(dirty);
    state->whole_count += free == ~0ull;
    if (free != 0) { /* another thread may have been about to promise it, on any level */
        hak_fit_promise(superslab->index, hak_span_partition(superslab),
                        hak_longest_run(free, ~0ull), free, dirty != 0);
    }
}

/* Counts all units anew, as other threads may have been between a unit and its count: theirs are in
 * no span and not free, lost to the child like the blocks in their bins. */
void hak_span_after_fork(void) {
    hak_store_relaxed(&hak_huge_page_due, 0); /* its thread may be gone */
    hak_span_state.counts = 0;
    hak_span_state.whole_count = 0;
    hak_span_visit(superslab_after_fork, &hak_span_state);
    (void)hak_span_count_given(0, 0); /* SPAN-7 */
    (void)hak_span_count_taken(0, 0);
}

size_t hak_span_purge(size_t keep_bytes) {
    hak_purge_plan_t plan = {.keep_bytes = keep_bytes, .is_all = true};
    return hak_span_purge_by(&plan);
}

void hak_span_pool(hak_pool_t *pool, bool is_turn) {
    hak_span_state_t *state = &hak_span_state;
    uint64_t counts = hak_span_counts();
    size_t unused = hak_span_unused(counts);
    size_t low = hak_load_relaxed(&state->low_units), high = hak_load_relaxed(&state->high_units);
    *pool = (hak_pool_t){hak_span_in_use(counts) * HAK_UNIT_BYTES, unused * HAK_UNIT_BYTES,
                         hak_least(low, unused) * HAK_UNIT_BYTES,
                         hak_most(high, unused) * HAK_UNIT_BYTES,
                         hak_least(hak_load_relaxed(&state->dip_units), unused) * HAK_UNIT_BYTES};
    hak_store_relaxed(&state->dip_units, unused);
    if (is_turn) {
        hak_store_relaxed(&state->low_units, unused);
        hak_store_relaxed(&state->high_units, unused);
    }
}
