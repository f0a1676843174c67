/* SPDX-License-Identifier: MIT */
#include "reclaim/learner.h"

#include "base/counters.h"
#include "front/event.h"
#include "os/lock.h"

enum {
    CLEAR_DIVISOR = 8,    /* cheaper by this part of the price, */
    CLEAR_KIB = 4 << 10,  /* and by this much: decides */
    WRONG_KIB = 64 << 10, /* twice the price foretold, and this much: the forecast is wrong */
    EVEN_PERCENT = 5, /* with such a retain_percent, holding for a step costs as much as taking */
    GAP_STEPS_MOST = 10, /* of time without an event, that count */
};

static const uint64_t WARM_NS = 1000000000; /* before the first decision */
static const uint64_t LOCK_NS = HAK_LEARNER_LOCK_MS * 1000000ull;
static const uint64_t JUMP_NS = 60000000000; /* back: no thread reads the clock so late */

HAK_LOCKED_STATE HAK_LARGE_STATE(5) learner_t hak_learners[HAK_LEARNERS]; /* [lock LEARNER] */
_Static_assert(sizeof hak_learners <= 1280, "LEARN-1");

/* --- prices, all under HAK_LOCK_LEARNER ------------------------------------------------------- */

static uint64_t price_sum(const hak_price_t *price) {
    return price->taken + price->held;
}

/* The part of a sum that is forgotten, rounded up, so that sums reach 0. */
static uint64_t faded(uint64_t sum, uint64_t steps) {
    return (sum * steps + HAK_LEARNER_FADE - 1) / HAK_LEARNER_FADE;
}

/* Fades, and adds: taken bytes, and unused ones held for all these steps.
 * Returns the price of these. */
static int64_t price_add(hak_price_t *price, uint64_t steps, uint64_t taken, uint64_t unused) {
    uint64_t percent = hak_most(hak_load_relaxed(&hak_knobs.retain_percent), 1);
    uint64_t held_kib = (unused >> 10) * steps * EVEN_PERCENT / percent;
    price->taken += (taken >> 10) - faded(price->taken, steps);
    price->held += held_kib - faded(price->held, steps);
    return (int64_t)hak_least((taken >> 10) + held_kib, 1ull << 50);
}

/* Beyond the bound by size no keep time longer than the standard saves anything, beyond the hard
 * one none at all. Returns the price of the step. */
static int64_t ghost_step(learner_t *learner, hak_strategy_t i,
                          const hak_learner_reading_t *reading, uint64_t steps) {
    ghost_t *ghost = &learner->ghost[i];
    uint64_t held = hak_excess(ghost->unused_bytes, reading->stay_bytes);
    uint64_t line = learner->in_use_bytes + ghost->unused_bytes;
    uint64_t taken = hak_excess(learner->most_bytes, line);
    uint64_t unused = hak_excess(line + taken, reading->in_use_bytes);
    ghost->most_bytes = hak_most(ghost->most_bytes, learner->most_bytes);
    if (reading->now_ns >= ghost->end_ns) {
        uint64_t needed = hak_excess(ghost->most_bytes, reading->in_use_bytes);
        unused = hak_most(needed, hak_least(unused, reading->stay_bytes));
        ghost->most_bytes = reading->in_use_bytes;
        ghost->end_ns = reading->now_ns + HAK_STRATEGY_MS[i] * 1000000ull - HAK_EVENT_STEP_NS / 2;
    }
    size_t bound = i > HAK_STRATEGY_STANDARD ? reading->bound_bytes : reading->hard_bytes;
    ghost->unused_bytes = unused > bound ? hak_least(unused, reading->cut_bytes) : unused;
    return price_add(&learner->view.price[i], steps, taken, held);
}

static hak_strategy_t cheapest(const hak_learner_view_t *view) {
    hak_strategy_t best = HAK_STRATEGY_STANDARD;
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        best = price_sum(&view->price[i]) < price_sum(&view->price[best]) ? i : best;
    }
    return best;
}

/* --- steps, under HAK_LOCK_LEARNER ------------------------------------------------------------ */

/* A wrong forecast brings the standard back: what was paid beyond forecasts counts, whatever was
 * chosen meanwhile. Else what is clearly cheaper decides. */
static void learner_step(learner_t *learner, const hak_learner_reading_t *reading, bool acts) {
    hak_learner_view_t *view = &learner->view;
    bool decides = acts && view->strategy != HAK_STRATEGY_STANDARD;
    uint64_t passed = reading->now_ns - learner->step_ns;
    uint64_t steps = hak_least(passed / HAK_EVENT_STEP_NS, GAP_STEPS_MOST);
    uint64_t taken = hak_excess(reading->taken_bytes, learner->taken_bytes);
    int64_t debt = price_add(&view->real, steps, taken, reading->idle_bytes);
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        debt -= (i == view->strategy) * ghost_step(learner, i, reading, steps);
    }
    debt = decides ? debt : 0; /* the standard rules are not quite what their ghost does */
    learner->debt_kib += debt - learner->debt_kib * (int64_t)steps / HAK_LEARNER_FADE;

    hak_strategy_t best = cheapest(view);
    uint64_t present = price_sum(&view->price[view->strategy]);
    uint64_t least = price_sum(&view->price[best]);
    bool is_wrong = decides && learner->debt_kib > (int64_t)(present + WRONG_KIB);
    bool is_clear = least + least / CLEAR_DIVISOR + CLEAR_KIB < present;
    if (is_wrong || (is_clear && reading->now_ns >= learner->since_ns + learner->wait_ns)) {
        view->strategy = is_wrong ? HAK_STRATEGY_STANDARD : best;
        view->is_locked = is_wrong;
        learner->wait_ns = is_wrong ? LOCK_NS : 0;
        learner->debt_kib = is_wrong ? 0 : learner->debt_kib;
        learner->since_ns = reading->now_ns;
        hak_count(learner_change);
        hak_count_by(learner_resets, is_wrong);
    }
}

/* Another thread may have read a later time before it took the lock. A clock that jumped back far
 * begins anew. */
HAK_COLD size_t hak_learner_maintain(hak_learner_pool_t pool,
                                     const hak_learner_reading_t *reading) {
    learner_t *learner = &hak_learners[pool];
    hak_learn_t mode = (hak_learn_t)hak_load_relaxed(&hak_knobs.learn);
    bool acts = mode == HAK_LEARN_ON && !hak_load_relaxed(&hak_knobs.is_tight);
    hak_lock_acquire(HAK_LOCK_LEARNER);
    bool is_new = learner->step_ns == 0 || hak_excess(learner->step_ns, reading->now_ns) > JUMP_NS;
    uint64_t passed = is_new ? 0 : hak_excess(reading->now_ns, learner->step_ns);
    bool is_step = is_new || passed >= HAK_EVENT_STEP_NS;
    learner->most_bytes = hak_most(learner->most_bytes, reading->most_bytes);
    if (is_new) { /* what is there was taken before */
        *learner = (learner_t){.since_ns = reading->now_ns, .wait_ns = WARM_NS};
        learner->view.strategy = HAK_STRATEGY_STANDARD;
    } else if (is_step) {
        learner_step(learner, reading, acts);
    }
    if (is_step) {
        learner->step_ns = reading->now_ns - passed % HAK_EVENT_STEP_NS;
        learner->in_use_bytes = learner->most_bytes = reading->in_use_bytes;
        learner->taken_bytes = reading->taken_bytes;
    }
    learner->step_ns = mode == HAK_LEARN_OFF ? 0 : learner->step_ns;
    hak_strategy_t strategy = learner->view.strategy;
    uint64_t kept = is_step ? learner->ghost[strategy].unused_bytes : HAK_LEARNER_ALL;
    hak_lock_release(HAK_LOCK_LEARNER);
    return !acts || strategy == HAK_STRATEGY_STANDARD ? SIZE_MAX : kept;
}

void hak_learner_reset(void) {
    hak_learners[HAK_LEARNER_UNITS].step_ns = hak_learners[HAK_LEARNER_HUGE].step_ns = 0;
}
