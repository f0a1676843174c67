/* SPDX-License-Identifier: MIT
 *
 * What goes back to the kernel, and when. What may stay unused is bounded by size:
 *
 *     max(retain_min_bytes, in use x (retain_percent + retain_learned_percent) / 100)
 *
 * Above the bound, dirty unused units are purged down to three quarters of it, so that a load that
 * breathes does not call the kernel on every breath; the youngest superslabs go first (SPAN-5). A
 * superslab that is wholly unused is unmapped instead, which returns its address space as well.
 *
 * No kernel call happens under the lock: the units are taken out of circulation first and come
 * back clean afterwards. */
#include "base/atomics.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "os/lock.h"
#include "os/os.h"
#include "span/pagemap.h"
#include "span/span_state.h"

size_t hak_span_retain_bytes(size_t in_use_bytes) {
    size_t percent = hak_load_relaxed(&hak_knobs.retain_percent) +
                     hak_load_relaxed(&hak_knobs.retain_learned_percent);
    size_t least = hak_load_relaxed(&hak_knobs.retain_min_bytes);
    size_t share = in_use_bytes / 100 * percent;
    return share > least ? share : least;
}

bool hak_span_is_over(void) {
    size_t in_use = hak_span_state.in_use_units * HAK_UNIT_BYTES;
    return hak_span_state.unused_dirty_units * HAK_UNIT_BYTES > hak_span_retain_bytes(in_use);
}

/* Units that were purged and are wanted again cost a page fault each: the learner's regret. */
void hak_span_note_wanted(hak_superslab_t *superslab, uint64_t units) {
    uint64_t regret = units & superslab->purged_units;
    if (regret != 0) {
        superslab->purged_units &= ~units;
        hak_count_by(purge_regret_units, hak_popcount(regret));
    }
}

/* One piece of work, taken under the lock. */
typedef struct purge_job {
    hak_superslab_t *superslab;
    uint64_t units; /* to purge; all of them: unmap */
} purge_job_t;

static bool job_take(purge_job_t *job, size_t keep_units, uint32_t *cursor) {
    hak_span_state_t *state = &hak_span_state;
    while (*cursor > 0 && (state->unused_dirty_units > keep_units || keep_units == 0)) {
        hak_superslab_t *superslab = state->table[--*cursor];
        if (superslab == NULL) {
            continue;
        }
        uint64_t dirty = superslab->free_units & ~superslab->clean_units;
        bool is_whole = superslab->free_units == ~0ull;
        if (dirty == 0 && !(is_whole && keep_units == 0)) {
            continue;
        }
        job->superslab = superslab;
        job->units = dirty;
        if (is_whole) { /* keeps its place in the table until it is gone */
            job->units = ~0ull;
            hak_pagemap_set_superslab(superslab->base, NULL);
        }
        superslab->free_units &= ~job->units;
        state->unused_dirty_units -= hak_popcount(dirty);
        return true;
    }
    return false;
}

/* Purges run by run, each one call. Returns the units that read as zero now. */
static uint64_t superslab_purge(hak_superslab_t *superslab, uint64_t units) {
    uint64_t done = 0;
    while (units != 0) {
        unsigned first = hak_ctz(units);
        uint64_t rest = ~(units >> first);
        unsigned length = rest == 0 ? HAK_SUPERSLAB_UNITS : hak_ctz(rest);
        uint64_t run = hak_mask(length) << first;
        if (hak_os_purge(superslab->base + (size_t)first * HAK_UNIT_BYTES,
                         (size_t)length * HAK_UNIT_BYTES)) {
            done |= run;
            hak_count_by(purge_units, length);
        }
        hak_count(purge_calls);
        units &= ~run;
    }
    return done;
}

static size_t job_run(const purge_job_t *job) {
    hak_span_state_t *state = &hak_span_state;
    hak_superslab_t *superslab = job->superslab;
    bool is_whole = job->units == ~0ull;
    bool is_unmapped = is_whole && hak_os_unmap(superslab->base, HAK_SUPERSLAB_BYTES);
    uint64_t done = is_unmapped ? job->units : superslab_purge(superslab, job->units);
    hak_lock_acquire(HAK_LOCK_SPAN);
    if (is_unmapped) {
        state->table[superslab->index] = NULL;
        state->count--;
        superslab->next = state->spare;
        state->spare = superslab;
        hak_count(superslab_unmap);
    } else {
        uint64_t dirty = job->units & ~superslab->clean_units & ~done;
        if (is_whole) {
            hak_pagemap_set_superslab(superslab->base, superslab);
        }
        superslab->clean_units |= done;
        superslab->purged_units |= done;
        superslab->free_units |= job->units;
        state->unused_dirty_units += hak_popcount(dirty);
        hak_span_note_free(superslab);
    }
    hak_lock_release(HAK_LOCK_SPAN);
    return hak_popcount(done) * (size_t)HAK_UNIT_BYTES;
}

size_t hak_span_purge(size_t keep_bytes) {
    size_t given_back = 0;
    size_t keep_units = keep_bytes / HAK_UNIT_BYTES;
    hak_lock_acquire(HAK_LOCK_SPAN);
    uint32_t cursor = hak_span_state.end;
    purge_job_t job;
    while (job_take(&job, keep_units, &cursor)) {
        hak_lock_release(HAK_LOCK_SPAN);
        given_back += job_run(&job);
        hak_lock_acquire(HAK_LOCK_SPAN);
        if (cursor > hak_span_state.end) {
            cursor = hak_span_state.end;
        }
    }
    hak_lock_release(HAK_LOCK_SPAN);
    return given_back;
}

void hak_span_purge_if_over(void) {
    hak_lock_acquire(HAK_LOCK_SPAN);
    bool is_over = hak_span_is_over();
    size_t keep = hak_span_retain_bytes(hak_span_state.in_use_units * HAK_UNIT_BYTES) / 4 * 3;
    hak_lock_release(HAK_LOCK_SPAN);
    if (is_over) {
        hak_span_purge(keep);
    }
}
