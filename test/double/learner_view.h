/* SPDX-License-Identifier: MIT
 *
 * What the learner of this process says, as the observer tells it from outside. */
#ifndef HAK_TEST_DOUBLE_LEARNER_VIEW_H
#define HAK_TEST_DOUBLE_LEARNER_VIEW_H

#include "base/bits.h"
#include "os/lock.h"
#include "os/os.h"
#include "reclaim/learner.h"

#include <string.h>

typedef struct learner_view {
    hak_learn_t mode;
    bool acts, is_locked;
    hak_strategy_t strategy, cheapest;
    uint64_t age_ms;
    hak_price_t price[HAK_STRATEGIES], real;
} learner_view_t;

static inline learner_view_t learner_view(hak_learner_pool_t pool) {
    const learner_t *learner = &hak_learners[pool];
    learner_view_t view = {.strategy = HAK_STRATEGY_STANDARD};
    hak_lock_acquire(HAK_LOCK_LEARNER);
    if (learner->step_ns != 0) {
        view.strategy = learner->view.strategy;
        view.real = learner->view.real;
        memcpy(view.price, learner->view.price, sizeof view.price);
        view.age_ms = hak_excess(hak_os_now_ns(), learner->since_ns) / 1000000;
        view.is_locked = learner->view.is_locked && view.age_ms < HAK_LEARNER_LOCK_MS;
    }
    hak_lock_release(HAK_LOCK_LEARNER);
    view.mode = (hak_learn_t)hak_load_relaxed(&hak_knobs.learn);
    view.acts = view.mode == HAK_LEARN_ON && !hak_load_relaxed(&hak_knobs.is_tight);
    view.cheapest = HAK_STRATEGY_STANDARD;
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        const hak_price_t *price = &view.price[i], *least = &view.price[view.cheapest];
        bool is_less = price->taken + price->held < least->taken + least->held;
        view.cheapest = is_less ? i : view.cheapest;
    }
    return view;
}

#endif
