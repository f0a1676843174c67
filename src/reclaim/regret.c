/* SPDX-License-Identifier: MIT
 *
 * Regret: a unit wanted again soon after its purge cost a system call and a page fault for nothing.
 * The share of regretted purges, averaged 90/10 over steps of time, raises retain_learned_percent
 * (0 to 100, added to retain_percent) when above REGRET_HIGH and lowers it when below REGRET_LOW:
 * for a footprint that oscillates beyond the bound, within a keep time. How long memory below the
 * bound is kept is learner.h's. With learn:0 every step counts as calm, so the value fades.
 * docs/experiments/0023-decay.md chose the step.
 *
 * Limits and passes over slabs share the back-off (hak_regret_backoff), not the average: they act
 * on the last sum alone, as the next one comes up to 26 s later. */
#include "reclaim/reclaim.h"

#include "base/atomics.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "front/event.h"
#include "os/os.h"
#include "reclaim/learner.h"

enum {
    REGRET_HIGH = 250, /* per mille */
    REGRET_LOW = 50,
    RETAIN_STEP_UP = 10, /* percentage points */
    RETAIN_STEP_DOWN = 1,
    RETAIN_MOST = 100,
};

/* Written by one thread at a time, as long as a tick takes less than a step. */
HAK_LOCKED_STATE uint64_t hak_regret_step_end_ns;   /* [atomic] */
HAK_LOCKED_STATE uint64_t hak_regret_purged_before; /* [atomic] */
HAK_LOCKED_STATE uint64_t hak_regret_wanted_before; /* [atomic] */
HAK_LOCKED_STATE uint64_t hak_regret_average;       /* [atomic] per mille */

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
}

void hak_regret_tick(void) {
    bool learns = hak_load_relaxed(&hak_knobs.learn) == HAK_LEARN_ON;
    if (!learns && hak_load_relaxed(&hak_knobs.retain_learned_percent) == 0) { /* it has faded */
        return;
    }
    if (!hak_is_due(&hak_regret_step_end_ns, hak_os_now_ns(), HAK_EVENT_STEP_NS)) {
        return;
    }
    uint64_t purged = hak_load_relaxed(&hak_counters.purge_units);
    uint64_t regret = hak_load_relaxed(&hak_counters.purge_regret_units);
    purged = hak_regret_growth(&hak_regret_purged_before, purged);
    regret = hak_regret_growth(&hak_regret_wanted_before, regret);
    hak_regret_learn(learns ? purged : 0, learns ? regret : 0);
}
