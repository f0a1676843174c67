/* SPDX-License-Identifier: MIT
 *
 * How long is unused memory worth keeping? For each pool every keep time is simulated on the memory
 * that the program really uses (docs/learning.md). A simulated pool is one number, its line: the
 * memory, in use or not, that it would hold. The line rises to what is used, falls at the end of
 * each keep time to the most that was used in it, and heeds the bound by size. Two things have a
 * price, both in bytes:
 *
 *     taken    by which the line rises: page faults, and the purge before them
 *     held     unused bytes x time / even time
 *
 * The even time is how long holding a byte costs as much as taking it: 20 ms for each percent of
 * retain_percent. Sums fade to a half in 4.4 s. The keep time of the least price decides once it is
 * clearly cheaper. All see the same load, so none has to be tried out.
 *
 * Near the limit of a control group, where memory costs more than any even time says, it only keeps
 * score. If the memory really taken and held costs far more than foretold (the kernel refuses, or
 * what is free does not fit), the standard rules decide for a while.
 *
 *   LEARN-1  At most 1 280 bytes of state. A step costs a bounded time. */
#ifndef HAK_RECLAIM_LEARNER_H
#define HAK_RECLAIM_LEARNER_H

#include "span/span.h"

/* A keep time, counted from the shortest. The standard is HAK_WINDOW_NS, in which target.c decides
 * without the learner. */
typedef unsigned hak_strategy_t;
enum { HAK_STRATEGY_STANDARD = 2, HAK_STRATEGIES = 12 };
static const uint64_t HAK_STRATEGY_MS[HAK_STRATEGIES] = {100,  200,  400,  800,   1200,  1600,
                                                         2400, 3200, 6400, 12800, 25600, 51200};

/* Pools that learn: unused units, of slabs and of large blocks up to 1 MiB; freed huge blocks. */
typedef enum hak_learner_pool {
    HAK_LEARNER_UNITS,
    HAK_LEARNER_HUGE,
    HAK_LEARNERS
} hak_learner_pool_t;

/* What an event sees of a pool. */
typedef struct hak_learner_reading {
    uint64_t now_ns;
    size_t in_use_bytes, most_bytes; /* most in use since the last reading */
    size_t idle_bytes;               /* unused and resident, without what stays for good */
    size_t stay_bytes;               /* unused, that stay for good */
    size_t bound_bytes, hard_bytes;  /* by size: unused for longer than the standard, at any time */
    size_t cut_bytes;                /* what is left where more is unused */
    uint64_t taken_bytes;            /* counter: taken from the kernel */
} hak_learner_reading_t;

/* Learns, at most once in a step of time. Returns the unused bytes worth keeping; HAK_LEARNER_ALL
 * until the next step; SIZE_MAX: the standard rules decide. */
static const size_t HAK_LEARNER_ALL = SIZE_MAX - 1;
size_t hak_learner_maintain(hak_learner_pool_t pool, const hak_learner_reading_t *reading);

/* Forgets all: in the child of a fork, where other threads' loads are gone. */
void hak_learner_reset(void);

/* In KiB: a sum of which each step of time keeps all but one part of so many. */
typedef struct hak_price {
    uint64_t taken, held;
} hak_price_t;
enum { HAK_LEARNER_FADE = 64, HAK_LEARNER_LOCK_MS = 60000 /* after a wrong forecast */ };

typedef struct hak_learner_view {
    hak_strategy_t strategy; /* in force; if the learner does not act it would be */
    bool is_locked;          /* the forecast failed: the standard decides for a while */
    hak_price_t price[HAK_STRATEGIES], real;
} hak_learner_view_t;

/* A pool with one keep time. Its line is what is in use and unused. */
typedef struct ghost {
    uint64_t unused_bytes;
    uint64_t most_bytes; /* most in use in this keep time */
    uint64_t end_ns;     /* of this keep time */
} ghost_t;

typedef struct learner {
    ghost_t ghost[HAK_STRATEGIES];
    hak_learner_view_t view;    /* prices, and the keep time in force */
    int64_t debt_kib;           /* paid beyond what was foretold; fades */
    uint64_t step_ns, since_ns; /* the last step, 0: none; the keep time is in force */
    uint64_t wait_ns;           /* since then, until another is chosen */
    uint64_t in_use_bytes, taken_bytes, most_bytes; /* at the last step; most in use since then */
} learner_t;

extern learner_t hak_learners[HAK_LEARNERS]; /* [lock LEARNER] */

#endif
