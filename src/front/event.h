/* SPDX-License-Identifier: MIT
 *
 * Everything rare hangs here, never on a hit path: slow paths count ticks, and every so many of
 * them, or when enough time has passed, the registered events run. Upper layers register;
 * life/init.c wires them in one place.
 *
 * The clock is looked at every few ticks. A step of it brings the events of the process, in the
 * thread that sees it first, and the own ones in every thread that ticks. So a process with little
 * to do gets to them as soon as a busy one. */
#ifndef HAK_FRONT_EVENT_H
#define HAK_FRONT_EVENT_H

#include "front/tcache.h"

enum {
    HAK_EVENT_TICKS = 256,     /* ticks between two runs, a power of two */
    HAK_EVENT_LOOK_TICKS = 16, /* between two looks at the clock, a power of two */
    /* time between two runs, if anything ticks then (docs/experiments/0023-decay.md) */
    HAK_EVENT_STEP_NS = 100000000,
};

typedef void hak_event_t(hak_tcache_t *tcache);

enum { HAK_EVENT_MAX = 12 };

/* Whom an event serves, and when: each thread that ticks; the process, at a 256th tick of any
 * thread and in a step of time; the process, once in a step. The last two do without a tcache. */
typedef enum hak_event_scope { HAK_EVENT_OWN, HAK_EVENT_PROCESS, HAK_EVENT_STEP } hak_event_scope_t;

typedef struct hak_event_table {
    struct hak_event_entry {
        hak_event_t *event;
        hak_event_scope_t scope;
    } entry[HAK_EVENT_MAX];
    unsigned count;
} HAK_SEALED hak_event_table_t;

extern hak_event_table_t hak_event_table; /* [init] */

/* Registers an event, before any thread ticks. EVENT-1: at most HAK_EVENT_MAX, more are fatal. */
void hak_event_register(hak_event_t *event, hak_event_scope_t scope);
/* `is_refilling`: in the middle of an allocation. */
HAK_COLD void hak_event_look(hak_tcache_t *tcache, bool is_refilling);

/* The events that serve the process, if a step of time is over: outside of any operation. */
void hak_event_pass_time(void);

/* In the child of a fork: a step begins at once. */
void hak_event_after_fork(void);

HAK_INLINE void hak_event_tick(hak_tcache_t *tcache, bool is_refilling) {
    if (HAK_UNLIKELY((++tcache->ticks & (HAK_EVENT_LOOK_TICKS - 1)) == 0)) {
        hak_event_look(tcache, is_refilling);
    }
}

#endif
