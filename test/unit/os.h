/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of os/. */
#ifndef HAK_TEST_UNIT_OS_H
#define HAK_TEST_UNIT_OS_H

#include "base/atomics.h"
#include "base/bits.h"
#include "double/os_fault.h"
#include "os/optional.h"
#include "unit/unit.h"

/* Setup of a group. */
UNIT_AROUND(os_begin) {
    hak_os_init();
    return 0;
}

#endif
