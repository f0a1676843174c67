/* SPDX-License-Identifier: MIT
 *
 * Rare work, off the hit path: slow paths count ticks, and after a number of ticks or a time the
 * registered events run. Upper layers register; life/init.c wires them in one place.
 *
 * The clock is read every few ticks. A new step of time runs the events of the process in the first
 * thread that sees it, and the own events in every thread that ticks, so a process with little to
 * do runs them as soon as a busy one.
 *
 *   EVENT-1  No event is left out: more than HAK_EVENT_MAX are fatal. */
#ifndef HAK_FRONT_EVENT_H
#define HAK_FRONT_EVENT_H

#include "front/tcache.h"

enum {
    HAK_EVENT_TICKS = 256,     /* ticks between two runs, a power of two */
    HAK_EVENT_POLL_TICKS = 16, /* between two polls of the clock, a power of two */
    /* time between two runs, if anything ticks then (docs/experiments/0023-decay.md) */
    HAK_EVENT_STEP_NS = 100000000,
};

typedef void hak_event_t(hak_tcache_t *tcache);

enum { HAK_EVENT_MAX = 12 };

/* OWN: for each thread that ticks. PROCESS: at a 256th tick of any thread, and in each step of
 * time. STEP: once in each step of time. The last two may run without a tcache. */
typedef enum hak_event_scope { HAK_EVENT_OWN, HAK_EVENT_PROCESS, HAK_EVENT_STEP } hak_event_scope_t;

typedef struct hak_event_table {
    struct hak_event_entry {
        hak_event_t *event;
        hak_event_scope_t scope;
    } entry[HAK_EVENT_MAX];
    unsigned count;
} HAK_SEALED hak_event_table_t;

extern hak_event_table_t hak_event_table; /* [init] */

/* Registers an event, before any thread ticks. EVENT-1 */
void hak_event_register(hak_event_t *event, hak_event_scope_t scope);
/* Slow paths call it. `is_refilling`: in the middle of an allocation. */
void hak_event_tick(hak_tcache_t *tcache, bool is_refilling);

/* [atomic] When it changes, each thread flushes its bins at its next poll. */
extern uint8_t hak_event_flush_round;

/* Runs the events of the process if a step of time is over. Called outside of any operation. */
void hak_event_pass_time(void);

/* In the child of a fork: the next step begins at once. */
void hak_event_after_fork(void);

/* True for one thread each time that *due_ns has passed; moves it on by pause_ns. */
HAK_INLINE bool hak_is_due(uint64_t *due_ns, uint64_t now, uint64_t pause_ns) {
    uint64_t due = hak_load_relaxed(due_ns);
    return now >= due && hak_cas_relaxed(due_ns, &due, now + pause_ns);
}

#endif
