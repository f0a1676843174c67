/* SPDX-License-Identifier: MIT
 *
 * The learner: reads counters at events, and writes knobs for slow paths:
 *
 *   retain_learned_percent   0 to 100, added to retain_percent
 *   retain_wanted_bytes      bytes wanted again soon after their purge
 *
 * It minimises regret: a unit wanted again soon after its purge cost a system call and a page fault
 * for nothing. The share of regretted purges, averaged 90/10 over steps of time, raises
 * the bound of unused memory when above REGRET_HIGH and lowers it when below REGRET_LOW, for a
 * footprint that oscillates faster than the decay. For slower ones the bytes wanted again are
 * exempt from decay; that fades to a half in 4 s. With learn:0 every step counts as calm, so
 * learned values fade. docs/experiments/0023-decay.md chose the step and the fading.
 *
 * Limits and passes over slabs share the back-off (hak_regret_backoff), not the average: they act
 * on the last sum alone, as the next one comes up to 26 s later. */
#include "reclaim/reclaim.h"

#include "base/atomics.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "front/event.h"
#include "os/os.h"

enum {
    REGRET_HIGH = 250, /* per mille */
    REGRET_LOW = 50,
    RETAIN_STEP_UP = 10, /* percentage points */
    RETAIN_STEP_DOWN = 1,
    RETAIN_MOST = 100,
    WANTED_FADE = 64,
    STEPS_MOST = 1000, /* by then all has faded */
};

/* Written by one thread at a time, as long as a tick takes less than a step. */
HAK_LOCKED_STATE uint64_t hak_regret_step_end_ns;   /* [atomic] */
HAK_LOCKED_STATE uint64_t hak_regret_purged_before; /* [atomic] */
HAK_LOCKED_STATE uint64_t hak_regret_wanted_before; /* [atomic] */
HAK_LOCKED_STATE uint64_t hak_regret_average;       /* [atomic] per mille */
HAK_LOCKED_STATE uint64_t hak_regret_purged_lately; /* [atomic] units */
HAK_LOCKED_STATE uint64_t hak_regret_wanted_lately; /* [atomic] units */

/* By at least one unit, so that it reaches 0. */
static uint64_t faded(uint64_t units) {
    return units - units / WANTED_FADE - (units % WANTED_FADE != 0);
}

void hak_regret_fade(uint64_t count) {
    uint64_t purged = hak_load_relaxed(&hak_regret_purged_lately);
    uint64_t wanted = hak_load_relaxed(&hak_regret_wanted_lately);
    for (count = hak_least(count, STEPS_MOST); count > 0 && (purged | wanted) != 0; count--) {
        purged = faded(purged);
        wanted = faded(wanted);
    }
    hak_store_relaxed(&hak_regret_purged_lately, purged);
    hak_store_relaxed(&hak_regret_wanted_lately, wanted);
    hak_store_relaxed(&hak_knobs.retain_wanted_bytes, wanted * HAK_UNIT_BYTES);
}

void hak_regret_learn(uint64_t purged, uint64_t regretted) {
    /* units wanted again may have been purged in an earlier step */
    uint64_t most = hak_most(purged, regretted);
    uint64_t share = most == 0 ? 0 : regretted * 1000 / most;
    uint64_t average = (hak_load_relaxed(&hak_regret_average) * 9 + share) / 10;
    size_t percent = hak_load_relaxed(&hak_knobs.retain_learned_percent);
    if (average > REGRET_HIGH && percent < RETAIN_MOST) {
        percent = hak_least(percent + RETAIN_STEP_UP, RETAIN_MOST);
    } else if (average < REGRET_LOW && percent > 0) {
        percent -= RETAIN_STEP_DOWN;
    }
    hak_store_relaxed(&hak_regret_average, average);
    hak_store_relaxed(&hak_knobs.retain_learned_percent, percent);
    purged += hak_load_relaxed(&hak_regret_purged_lately);
    /* a purge was right if the memory is wanted long after it */
    uint64_t soon = hak_least(regretted, purged);
    hak_store_relaxed(&hak_regret_purged_lately, purged - soon);
    hak_single_writer_add(&hak_regret_wanted_lately, soon);
    hak_regret_fade(1);
}

void hak_regret_tick(void) {
    bool learns = hak_load_relaxed(&hak_knobs.learn);
    if (!learns && hak_load_relaxed(&hak_knobs.retain_learned_percent) == 0 &&
        hak_load_relaxed(&hak_knobs.retain_wanted_bytes) == 0) { /* learned values have faded */
        return;
    }
    uint64_t now = hak_os_now_ns();
    uint64_t end = hak_load_relaxed(&hak_regret_step_end_ns);
    if (!hak_is_due(&hak_regret_step_end_ns, now, HAK_EVENT_STEP_NS)) {
        return;
    }
    hak_regret_fade((now - end) / HAK_EVENT_STEP_NS);
    uint64_t purged = hak_load_relaxed(&hak_counters.purge_units);
    uint64_t regret = hak_load_relaxed(&hak_counters.purge_regret_units);
    purged = hak_regret_growth(&hak_regret_purged_before, purged);
    regret = hak_regret_growth(&hak_regret_wanted_before, regret);
    hak_regret_learn(learns ? purged : 0, learns ? regret : 0);
}
