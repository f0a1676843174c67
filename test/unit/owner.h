/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of owners: two of them, each the home of one thread. */
#ifndef HAK_TEST_UNIT_OWNER_H
#define HAK_TEST_UNIT_OWNER_H

#include "unit/slab.h"

extern uint32_t hak_owner_count;
extern hak_owner_t *hak_all_owners;

static hak_owner_t *a, *b; /* there are two at least, whatever the CPUs */

static unit_blocks_t held;

UNIT_AROUND(unit_owners_begin) {
    hak_owner_start();
    a = hak_owner_join(HAK_PARTITION_ANY);
    b = hak_owner_join(HAK_PARTITION_ANY);
    held.count = 0;
    return 0;
}

static inline void clear_counters(void) {
    memset(&a->counters, 0, sizeof a->counters);
    memset(&b->counters, 0, sizeof b->counters);
}

static inline void part_from(hak_owner_t **owner) {
    if (*owner != NULL) {
        hak_owner_quit(*owner);
        *owner = NULL;
    }
}

UNIT_AROUND(unit_owners_end) {
    unit_give_rest(&held);
    part_from(&a);
    part_from(&b);
    for (const hak_owner_t *o = hak_all_owners; o != NULL; o = o->next) {
        assert_int_equal(o->users, 0); /* OWNER-1 */
    }
    hak_owner_collect();
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    return 0;
}

static inline unsigned unit_owner_limit(void) {
    return hak_os_cpu_count() < 2 ? 2 : hak_os_cpu_count();
}

static inline void count_owner(hak_owner_t *owner, void *context) {
    (void)owner;
    ++*(unsigned *)context;
}

static inline unsigned owner_count(void) {
    unsigned count = 0;
    hak_owner_visit(count_owner, &count);
    return count;
}

#define OWNER_TEST(name) UNIT_TEST_WITH(name, unit_owners_begin, unit_owners_end)

#endif
