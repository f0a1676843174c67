/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of purges by time: 30 MiB of spans that come and go, by a clock that the test
 * sets. */
#ifndef HAK_TEST_UNIT_TARGET_H
#define HAK_TEST_UNIT_TARGET_H

#include "front/event.h"
#include "reclaim/learner.h"
#include "unit/span.h"

enum { SPANS = 8, SPAN_UNITS = 60, KEPT_MIB = 2 };

static const uint64_t WINDOW_NS = 400u * 1000 * 1000;

static hak_span_t spans[SPANS];

static inline void window_passes(void) {
    hak_os_fault_advance_clock(WINDOW_NS);
    hak_target_spans();
}

static inline void take(unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++) {
        spans[i] = unit_span(SPAN_UNITS, HAK_UNIT_BYTES);
        memset(spans[i].base, 0xee, (size_t)SPAN_UNITS * HAK_UNIT_BYTES);
    }
}

static inline void give(unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++) {
        unit_span_free(&spans[i], SPAN_UNITS);
    }
}

static inline size_t unused(void) {
    return unit_span_check().unused_dirty_bytes;
}

/* 30 MiB in use, bound 64, of which 1 stays for good. */
UNIT_AROUND(begin) {
    hak_os_init();
    hak_os_fault_clear();
    hak_os_fault_stop_clock();
    hak_os_fault_advance_clock(60 * WINDOW_NS); /* no earlier refusal counts */
    unit_span_retain(64u * MIB, 0);
    hak_knobs.retain_idle_bytes = MIB;
    hak_knobs.learn = HAK_LEARN_OFF;    /* the standard rules */
    (void)unit_span(1, HAK_UNIT_BYTES); /* a pin */
    hak_span_purge(0);
    take(0, SPANS);
    window_passes();
    window_passes();
    return 0;
}

static inline int begin_learning(void **state) {
    begin(state);
    hak_learner_reset();
    hak_knobs.retain_percent = 100; /* 2 s of holding cost as much as taking */
    hak_knobs.learn = HAK_LEARN_ON;
    return 0;
}

static inline void steps_pass(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        hak_os_fault_advance_clock(HAK_EVENT_STEP_NS);
        hak_target_spans();
    }
}

/* All is unused for a while and then in use, again and again: units that were purged and taken. */
static inline uint64_t breathe(unsigned count, unsigned unused_steps, unsigned used_steps) {
    uint64_t before = hak_counters.purge_regret_units;
    for (unsigned i = 0; i < count; i++) {
        give(0, SPANS);
        steps_pass(unused_steps);
        take(0, SPANS);
        steps_pass(used_steps);
    }
    return hak_counters.purge_regret_units - before;
}

#define DECAY_TEST(name) UNIT_TEST_WITH(name, begin, unit_span_end)
#define LEARNED_TEST(name) UNIT_TEST_WITH(name, begin_learning, unit_span_end)

#endif
