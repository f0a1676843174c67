/* SPDX-License-Identifier: MIT */
#include "reclaim/learner.h"

#include "base/counters.h"
#include "front/event.h"
#include "os/lock.h"
#include "os/os.h"

enum {
    WARM_STEPS = 10,          /* before the first decision */
    CLEAR_PART = 8,           /* cheaper by this part of the price, */
    CLEAR_KIB = 4 << 10,      /* and by this much: decides */
    WRONG_TIMES = 2,          /* the price foretold, */
    WRONG_KIB = 64 << 10,     /* and this much: the forecast is wrong */
    EVEN_MS_PER_PERCENT = 20, /* of retain_percent */
    STEP_MS = HAK_EVENT_STEP_NS / 1000000,
    GAP_STEPS_MOST = 10, /* of time without an event, that count */
    LOCK_LOG2_MOST = 6,
};

static const uint64_t LOCK_NS = 10000000000; /* of the first interlock */
static const uint64_t JUMP_NS = 60000000000; /* back: no thread reads the clock so late */

/* A pool under one strategy. */
typedef struct ghost {
    uint64_t line_bytes;
    uint64_t most_bytes; /* most in use in this keep time */
    uint64_t end_ns;     /* of this keep time */
    hak_price_t price;
} ghost_t;

typedef struct learner {
    ghost_t ghost[HAK_STRATEGIES];
    hak_price_t real;
    uint64_t debt_kib; /* paid beyond the forecasts of earlier choices; fades */
    uint64_t begin_ns;
    uint64_t step_ns;      /* when the last step was */
    uint64_t in_use_bytes; /* then */
    uint64_t taken_bytes;  /* then */
    uint64_t most_bytes;   /* most in use since then */
    hak_strategy_t strategy;
    uint64_t since_ns; /* it decides */
    uint64_t locked_until_ns;
    uint64_t interlocks;
    bool acts;
} learner_t;

HAK_LOCKED_STATE HAK_LARGE_STATE(5) learner_t hak_learners[HAK_LEARNERS]; /* [lock LEARNER] */
_Static_assert(sizeof hak_learners <= 1280, "LEARN-1");

/* [atomic] A bit per pool: it begins anew, whatever its record says. */
static uint32_t learners_new = (1u << HAK_LEARNERS) - 1;

#define HAK_STRATEGY(name, text, milliseconds) {text, milliseconds},
static const struct strategy_row {
    char text[8];
    uint32_t milliseconds;
} rows[HAK_STRATEGIES] = {
#include "reclaim/strategies.def"
};
#undef HAK_STRATEGY

const char *hak_strategy_text(hak_strategy_t strategy) {
    return rows[strategy].text;
}

uint64_t hak_strategy_ms(hak_strategy_t strategy) {
    return rows[strategy].milliseconds;
}

const char *hak_learner_pool_name(hak_learner_pool_t pool) {
    return pool == HAK_LEARNER_UNITS ? "units" : "huge blocks";
}

/* --- prices, all under HAK_LOCK_LEARNER ------------------------------------------------------- */

static uint64_t price_sum(const hak_price_t *price) {
    return price->taken + price->held;
}

/* Down to 0 in the end. */
static uint64_t faded(uint64_t sum) {
    return sum - (sum / HAK_LEARNER_FADE + (sum % HAK_LEARNER_FADE != 0));
}

/* Fades by `steps`, and adds. */
static void price_add(hak_price_t *price, uint64_t steps, uint64_t taken_bytes, uint64_t held_kib) {
    for (; steps > 0; steps--) {
        price->taken = faded(price->taken);
        price->held = faded(price->held);
    }
    price->taken += taken_bytes >> 10;
    price->held += held_kib;
}

/* Of unused bytes that were held for `steps` of time. */
static uint64_t held_kib(uint64_t bytes, uint64_t steps) {
    uint64_t percent = hak_most(hak_load_relaxed(&hak_knobs.retain_percent), 1);
    return (bytes >> 10) * (steps * STEP_MS) / (percent * EVEN_MS_PER_PERCENT);
}

static void ghost_step(ghost_t *ghost, const learner_t *learner, const hak_learner_look_t *look,
                       uint64_t steps, uint64_t keep_ms) {
    uint64_t unused = hak_excess(ghost->line_bytes, learner->in_use_bytes);
    uint64_t held = held_kib(hak_excess(unused, look->stay_bytes), steps);
    price_add(&ghost->price, steps, hak_excess(learner->most_bytes, ghost->line_bytes), held);
    ghost->line_bytes = hak_most(ghost->line_bytes, learner->most_bytes);
    ghost->most_bytes = hak_most(ghost->most_bytes, learner->most_bytes);
    if (look->now_ns >= ghost->end_ns) {
        uint64_t in_use = look->in_use_bytes;
        uint64_t stays = in_use + hak_least(look->stay_bytes, UINT64_MAX - in_use);
        ghost->line_bytes = hak_most(ghost->most_bytes, hak_least(ghost->line_bytes, stays));
        ghost->most_bytes = in_use;
        ghost->end_ns = look->now_ns + keep_ms * 1000000 - HAK_EVENT_STEP_NS / 2;
    }
}

static uint64_t line_cut(uint64_t line_bytes, const hak_learner_look_t *look, size_t bound_bytes) {
    uint64_t unused = hak_excess(line_bytes, look->in_use_bytes);
    return unused > bound_bytes ? look->in_use_bytes + hak_least(unused, look->cut_bytes)
                                : line_bytes;
}

/* Beyond the bound by size nothing stays longer than by the standard, and beyond the hard one
 * nothing at all. */
static void ghosts_bound(learner_t *learner, const hak_learner_look_t *look) {
    uint64_t *standard = &learner->ghost[HAK_STRATEGY_standard].line_bytes;
    *standard = line_cut(*standard, look, look->hard_bytes);
    for (unsigned i = 0; i < HAK_STRATEGIES; i++) {
        uint64_t *line = &learner->ghost[i].line_bytes;
        *line = hak_least(*line, hak_most(line_cut(*line, look, look->bound_bytes), *standard));
    }
}

static uint64_t ghost_price(const learner_t *learner, hak_strategy_t strategy) {
    return price_sum(&learner->ghost[strategy].price);
}

static hak_strategy_t cheapest(const learner_t *learner) {
    hak_strategy_t best = HAK_STRATEGY_standard;
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        best = ghost_price(learner, i) < ghost_price(learner, best) ? i : best;
    }
    return best;
}

/* --- decisions, under HAK_LOCK_LEARNER -------------------------------------------------------- */

/* Paid beyond the forecasts. The standard rules are not quite what their ghost does. */
static uint64_t debt_of(const learner_t *learner) {
    bool is_foretold = learner->acts && learner->strategy != HAK_STRATEGY_standard;
    uint64_t foretold = ghost_price(learner, learner->strategy);
    uint64_t debt = is_foretold ? hak_excess(price_sum(&learner->real), foretold) : 0;
    return learner->debt_kib + debt;
}

static bool is_forecast_wrong(const learner_t *learner) {
    uint64_t foretold = ghost_price(learner, learner->strategy);
    return learner->acts && learner->strategy != HAK_STRATEGY_standard &&
           debt_of(learner) > (WRONG_TIMES - 1) * foretold + WRONG_KIB;
}

/* What was really paid under the last strategy says nothing of this one, but a debt stays: else a
 * choice that changes often would never be found wrong. */
static void decide(learner_t *learner, hak_strategy_t strategy, uint64_t debt_kib, uint64_t now) {
    learner->strategy = strategy;
    learner->debt_kib = debt_kib;
    if (learner->acts) {
        learner->real = learner->ghost[strategy].price;
    }
    learner->since_ns = now;
    hak_count(learner_change);
}

static void interlock(learner_t *learner, uint64_t now) {
    uint64_t doublings = hak_least(learner->interlocks++, LOCK_LOG2_MOST);
    learner->locked_until_ns = now + (LOCK_NS << doublings);
    hak_count(learner_interlock);
    decide(learner, HAK_STRATEGY_standard, 0, now);
}

static void choose(learner_t *learner, uint64_t now) {
    hak_strategy_t best = cheapest(learner);
    uint64_t price = ghost_price(learner, best);
    bool is_clear =
        price + price / CLEAR_PART + CLEAR_KIB < ghost_price(learner, learner->strategy);
    bool is_warm = now >= learner->begin_ns + (uint64_t)WARM_STEPS * HAK_EVENT_STEP_NS;
    if (is_clear && is_warm && now >= learner->locked_until_ns) {
        decide(learner, best, debt_of(learner), now);
    }
}

/* --- steps ------------------------------------------------------------------------------------ */

static void learner_begin(learner_t *learner, const hak_learner_look_t *look) {
    *learner = (learner_t){.strategy = HAK_STRATEGY_standard, .acts = learner->acts};
    learner->begin_ns = learner->since_ns = learner->step_ns = look->now_ns;
    learner->in_use_bytes = learner->most_bytes = look->in_use_bytes;
    learner->taken_bytes = look->taken_bytes;
    for (unsigned i = 0; i < HAK_STRATEGIES; i++) { /* what is there was taken before */
        learner->ghost[i].line_bytes = look->in_use_bytes;
    }
}

static void learner_step(learner_t *learner, const hak_learner_look_t *look) {
    uint64_t passed = hak_excess(look->now_ns, learner->step_ns);
    uint64_t steps = hak_least(passed / HAK_EVENT_STEP_NS, GAP_STEPS_MOST);
    for (unsigned i = 0; i < HAK_STRATEGIES; i++) {
        ghost_step(&learner->ghost[i], learner, look, steps, rows[i].milliseconds);
    }
    ghosts_bound(learner, look);
    price_add(&learner->real, steps, hak_excess(look->taken_bytes, learner->taken_bytes),
              held_kib(look->idle_bytes, steps));
    for (uint64_t i = 0; i < steps; i++) {
        learner->debt_kib = faded(learner->debt_kib);
    }
    learner->step_ns = look->now_ns - passed % HAK_EVENT_STEP_NS;
    learner->in_use_bytes = learner->most_bytes = look->in_use_bytes;
    learner->taken_bytes = look->taken_bytes;
    if (is_forecast_wrong(learner)) {
        interlock(learner, look->now_ns);
    } else {
        choose(learner, look->now_ns);
    }
}

/* What the standard rules cost says nothing of the strategy that begins to act. */
static void learner_act(learner_t *learner, bool acts) {
    if (acts && !learner->acts) {
        learner->real = learner->ghost[learner->strategy].price;
    }
    learner->acts = acts;
}

/* Another thread may have read a later time before it took the lock. A clock that jumped back far
 * begins anew. */
static size_t learner_tend(learner_t *learner, const hak_learner_look_t *look, bool is_new) {
    learner->most_bytes = hak_most(learner->most_bytes, look->most_bytes);
    bool is_step = hak_excess(look->now_ns, learner->step_ns) >= HAK_EVENT_STEP_NS;
    if (is_new || hak_excess(learner->step_ns, look->now_ns) > JUMP_NS) {
        learner_begin(learner, look);
    } else if (is_step) {
        learner_step(learner, look);
    }
    if (!learner->acts || learner->strategy == HAK_STRATEGY_standard) {
        return SIZE_MAX;
    }
    uint64_t line = learner->ghost[learner->strategy].line_bytes;
    return is_step ? hak_excess(line, look->in_use_bytes) : HAK_LEARNER_ALL;
}

static bool learners_act(hak_learn_t mode) {
    return mode == HAK_LEARN_ON && !hak_load_relaxed(&hak_knobs.is_tight);
}

HAK_COLD size_t hak_learner_tend(hak_learner_pool_t pool, const hak_learner_look_t *look) {
    uint32_t bit = 1u << pool;
    hak_learn_t mode = (hak_learn_t)hak_load_relaxed(&hak_knobs.learn);
    if (mode == HAK_LEARN_OFF) {
        (void)hak_or_relaxed(&learners_new, bit);
        return SIZE_MAX;
    }
    learner_t *learner = &hak_learners[pool];
    hak_lock_acquire(HAK_LOCK_LEARNER);
    bool is_new = (hak_load_relaxed(&learners_new) & bit) != 0;
    if (is_new) {
        (void)hak_and_relaxed(&learners_new, ~bit);
    }
    learner_act(learner, learners_act(mode));
    size_t kept = learner_tend(learner, look, is_new);
    hak_lock_release(HAK_LOCK_LEARNER);
    return kept;
}

void hak_learner_reset(void) {
    hak_store_relaxed(&learners_new, (1u << HAK_LEARNERS) - 1);
}

static void look_at(const learner_t *learner, hak_learner_view_t *view, uint64_t now) {
    view->strategy = learner->strategy;
    view->cheapest = cheapest(learner);
    view->age_ms = hak_excess(now, learner->since_ns) / 1000000;
    view->is_locked = now < learner->locked_until_ns;
    view->real = learner->real;
    for (unsigned i = 0; i < HAK_STRATEGIES; i++) {
        view->price[i] = learner->ghost[i].price;
    }
}

void hak_learner_look_at(hak_learner_pool_t pool, hak_learner_view_t *view) {
    uint64_t now = hak_os_now_ns();
    hak_learn_t mode = (hak_learn_t)hak_load_relaxed(&hak_knobs.learn);
    *view = (hak_learner_view_t){
        .mode = mode,
        .acts = learners_act(mode),
        .strategy = HAK_STRATEGY_standard,
        .cheapest = HAK_STRATEGY_standard,
    };
    hak_lock_acquire(HAK_LOCK_LEARNER);
    if ((hak_load_relaxed(&learners_new) & 1u << pool) == 0) {
        look_at(&hak_learners[pool], view, now);
    }
    hak_lock_release(HAK_LOCK_LEARNER);
}
