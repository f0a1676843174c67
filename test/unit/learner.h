/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of the learner: loads, a pool that is kept for a while, and the two together
 * with the learner. The pool knows nothing of src/reclaim/learner.c: its time goes in ticks. */
#ifndef HAK_TEST_UNIT_LEARNER_H
#define HAK_TEST_UNIT_LEARNER_H

#include "base/counters.h"
#include "base/knobs.h"
#include "double/learner_view.h"
#include "double/os_fault.h"
#include "front/event.h"
#include "unit/unit.h"

#include <math.h>

enum {
    TICK_MS = 10,
    STEP_TICKS = 10,
    LOAD_TICKS = 60 * 1000 / TICK_MS,
    STANDARD_TICKS = 400 / TICK_MS,
    EVEN_TICKS = 2000 / TICK_MS, /* with retain_percent 100, holding costs as much as taking */
};

static const size_t LOAD_BYTES = 256u * MIB;

/* Bytes in use in each tick. */
typedef struct load {
    size_t in_use[LOAD_TICKS];
} load_t;

typedef struct pool {
    size_t held, most; /* most in use in this keep time */
    unsigned left;     /* ticks of it */
    uint64_t taken;    /* bytes, as held_ticks, of unused bytes x ticks */
    uint64_t held_ticks;
} pool_t;

static inline double pool_price(const pool_t *pool) {
    return (double)pool->taken + (double)pool->held_ticks / EVEN_TICKS;
}

static inline void pool_use(pool_t *pool, size_t in_use) {
    pool->taken += in_use > pool->held ? in_use - pool->held : 0;
    pool->held = in_use > pool->held ? in_use : pool->held;
    pool->most = in_use > pool->most ? in_use : pool->most;
    pool->held_ticks += pool->held - in_use;
}

/* At the end of a keep time, what was not used in it goes. */
static inline void pool_keep(pool_t *pool, size_t in_use, size_t stay, unsigned ticks) {
    if (pool->left <= 1) {
        size_t stays = pool->held < in_use + stay ? pool->held : in_use + stay;
        pool->held = pool->most > stays ? pool->most : stays;
        pool->most = in_use;
        pool->left = ticks + 1;
    }
    pool->left--;
}

/* In bytes, if unused memory had always been kept so long: over the whole run, and as of late, by
 * weights that halve in 4.4 s as the learner's do. */
typedef struct oracle {
    double whole, late;
} oracle_t;

static inline oracle_t price_if_kept(const load_t *load, unsigned ticks) {
    static const double FADE = 0.998426; /* a tick: (63/64)^(1/10) */
    /* keep times begin at the first step: in what phase of the load they begin has a price too */
    pool_t pool = {.held = load->in_use[0], .left = 2 * STEP_TICKS};
    oracle_t oracle = {0};
    for (unsigned i = 0; i < LOAD_TICKS; i++) {
        double before = pool_price(&pool);
        pool_use(&pool, load->in_use[i]);
        pool_keep(&pool, load->in_use[i], 0, ticks);
        oracle.late = oracle.late * FADE + pool_price(&pool) - before;
    }
    oracle.whole = pool_price(&pool);
    return oracle;
}

/* A program whose pool does as it is told. */
typedef struct program {
    uint64_t ticks;
    pool_t pool;
    size_t most;         /* since the last step */
    size_t kept;         /* as the learner said */
    size_t bound;        /* of unused bytes, twice as many at any time; 0: none */
    size_t stay;         /* unused bytes that stay */
    unsigned over_ticks; /* more than the bound is unused */
} program_t;

static inline size_t program_tell(program_t *program, size_t in_use, uint64_t taken_more) {
    hak_learner_reading_t reading = {
        .now_ns = hak_os_now_ns(),
        .in_use_bytes = in_use,
        .most_bytes = program->most,
        .idle_bytes = hak_excess(program->pool.held - in_use, program->stay),
        .stay_bytes = program->stay,
        .bound_bytes = program->bound == 0 ? SIZE_MAX : program->bound,
        .hard_bytes = program->bound == 0 ? SIZE_MAX : 2 * program->bound,
        .cut_bytes = program->bound / 4 * 3,
        .taken_bytes = program->pool.taken + taken_more};
    program->most = in_use;
    return hak_learner_maintain(HAK_LEARNER_UNITS, &reading);
}

/* Twice the bound at once, and the bound after a while, is cut to three quarters of it. */
static inline void program_bound(program_t *program, size_t in_use) {
    size_t bound = program->bound, unused = program->pool.held - in_use;
    if (bound == 0) {
        return;
    }
    program->over_ticks = unused > bound ? program->over_ticks + 1 : 0;
    if (unused > 2 * bound || program->over_ticks > STANDARD_TICKS) {
        program->pool.held = in_use + bound / 4 * 3;
    }
}

static inline void program_tick(program_t *program, size_t in_use) {
    pool_t *pool = &program->pool;
    pool_use(pool, in_use);
    program->most = in_use > program->most ? in_use : program->most;
    hak_os_fault_advance_clock(TICK_MS * 1000000ull);
    program->kept = program->ticks == 0 ? SIZE_MAX : program->kept;
    if (++program->ticks % STEP_TICKS == 0) {
        program->kept = program_tell(program, in_use, 0);
        size_t kept = program->kept < program->stay ? program->stay : program->kept;
        size_t line = kept == SIZE_MAX ? SIZE_MAX : in_use + kept;
        pool->held = line < pool->held ? line : pool->held;
    }
    program_bound(program, in_use);
    if (program->kept == SIZE_MAX) {
        pool_keep(pool, in_use, program->stay, STANDARD_TICKS);
    } else {
        pool->most = pool->held;
    }
}

static inline learner_view_t program_view(void) {
    return learner_view(HAK_LEARNER_UNITS);
}

static inline uint64_t program_keep_ms(void) {
    return HAK_STRATEGY_MS[program_view().strategy];
}

/* `high` but for `low_ticks` of each `period`, when nothing is in use. */
static inline void program_run(program_t *program, unsigned ticks, unsigned period,
                               unsigned low_ticks, size_t high) {
    for (unsigned i = 0; i < ticks; i++) {
        program_tick(program, program->ticks % period < low_ticks ? 0 : high);
    }
}

/* Steps until the keep time is within these bounds: 1000 at most. */
static inline unsigned steps_until(program_t *program, unsigned period, unsigned low_ticks,
                                   uint64_t least_ms, uint64_t most_ms) {
    unsigned steps = 0;
    while (steps < 1000 && (program_keep_ms() < least_ms || program_keep_ms() > most_ms)) {
        program_run(program, STEP_TICKS, period, low_ticks, LOAD_BYTES);
        steps++;
    }
    return steps;
}

/* Unused for 1 s of 1.5: kept for longer than that. */
static inline unsigned steps_until_kept(program_t *program) {
    return steps_until(program, 150, 100, 1001, UINT64_MAX);
}

/* As a change of the keep time is not worth less than 4 MiB, such a price is none. */
static const double LITTLE = 4.0 * MIB;

/* Of many loads: logarithms of what was paid, over what the standard rules cost. */
typedef struct paid {
    unsigned loads;
    double learner, fixed[HAK_STRATEGIES];
} paid_t;

static inline void paid_add(paid_t *paid, double own, double standard,
                            const double fixed[HAK_STRATEGIES]) {
    paid->loads++;
    paid->learner += log((own + LITTLE) / (standard + LITTLE));
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        paid->fixed[i] += log((fixed[i] + LITTLE) / (standard + LITTLE));
    }
}

/* Does the learner pay less than any keep time that all loads have? */
static inline bool paid_is_least(const paid_t *paid) {
    double best = 1e300;
    for (hak_strategy_t i = 0; i < HAK_STRATEGIES; i++) {
        best = paid->fixed[i] < best ? paid->fixed[i] : best;
    }
    return paid->loads != 0 && paid->learner < best;
}

UNIT_AROUND(program_begin) {
    hak_os_fault_clear();
    hak_os_fault_stop_clock();
    hak_knobs.learn = HAK_LEARN_ON;
    hak_knobs.retain_percent = 100;
    hak_knobs.is_tight = false;
    hak_learner_reset();
    return 0;
}

UNIT_AROUND(program_end) {
    hak_os_fault_clear();
    return 0;
}

#define LEARNER_TEST(name) UNIT_TEST_WITH(name, program_begin, program_end)

#endif
