/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of slabs that need one owner, which no thread has, and the blocks taken from
 * it. */
#ifndef HAK_TEST_UNIT_ONE_OWNER_H
#define HAK_TEST_UNIT_ONE_OWNER_H

#include "unit/slab.h"

static hak_owner_t owner;
static unit_blocks_t held;

UNIT_AROUND(unit_one_owner_begin) {
    hak_os_fault_clear();
    unit_owner_begin(&owner, 1);
    held.count = 0;
    return 0;
}

UNIT_AROUND(unit_one_owner_end) {
    hak_os_fault_clear();
    unit_give_rest(&held);
    unit_owner_end(&owner);
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    return 0;
}

#define ONE_OWNER_TEST(name) UNIT_TEST_WITH(name, unit_one_owner_begin, unit_one_owner_end)

#endif
