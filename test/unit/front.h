/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of front/: the thread's own tcache, and a healthy core. */
#ifndef HAK_TEST_UNIT_FRONT_H
#define HAK_TEST_UNIT_FRONT_H

#include "base/counters.h"
#include "base/knobs.h"
#include "double/audit.h"
#include "double/os_fault.h"
#include "front/budget.h"
#include "front/event.h"
#include "front/fast.h"
#include "front/flush.h"
#include "hakmem/hakmem.h"
#include "large/large.h"
#include "os/lock.h"
#include "os/os.h"
#include "unit/unit.h"

static inline hak_tcache_t *self(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    tcache = hak_tcache_is_empty(tcache) ? hak_life_thread_start() : tcache;
#ifndef UNIT_KEEPS_QUARANTINE /* nothing is held back or random, but in the test of that */
    tcache->quarantine = NULL;
#endif
    return tcache;
}

/* In hardened builds the last bytes of a block are not the user's: these tests ask for so much less
 * that they get blocks of the same classes. */
static inline void *unit_malloc(size_t bytes) {
    return hak_malloc(bytes > HAK_CANARY_BYTES ? bytes - HAK_CANARY_BYTES : bytes);
}

static inline hak_audit_t audit(void) {
    hak_audit_t result;
    bool is_healthy = hak_audit_walk(&result);
    UNIT_EXPECT(is_healthy, "%s at %p", result.broken, result.where);
    return result;
}

static hak_knobs_t front_knobs;

UNIT_AROUND(front_begin) {
    (void)self();
    front_knobs = hak_knobs;
    return 0;
}

/* A healthy core, with nothing in the thread's caches, and options as before. */
UNIT_AROUND(front_end) {
    hak_os_fault_clear();
    hak_knobs = front_knobs;
    hak_collect_thread();
    (void)audit();
    return 0;
}

#define FRONT_TEST(name) UNIT_TEST_WITH(name, front_begin, front_end)

#endif
