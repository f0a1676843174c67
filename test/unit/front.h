/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of front/: the thread's own tcache, and a healthy core. */
#ifndef HAK_TEST_UNIT_FRONT_H
#define HAK_TEST_UNIT_FRONT_H

#include "double/audit.h"
#include "front/event.h"
#include "front/fast.h"
#include "unit/unit.h"

static inline hak_tcache_t *self(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    return hak_tcache_is_empty(tcache) ? hak_life_thread_start() : tcache;
}

static inline hak_audit_t audit(void) {
    hak_audit_t result;
    bool is_healthy = hak_audit_walk(&result);
    UNIT_EXPECT(is_healthy, "%s at %p", result.broken, result.where);
    return result;
}

#endif
