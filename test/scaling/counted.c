/* SPDX-License-Identifier: MIT
 *
 * The core, whose fetches for writing are counted as writes. */
#include "base/compiler.h"
#include "lines.h"

#undef HAK_FETCH
#define HAK_FETCH(address) lines_access((address), 1, 1)

#include "unity.c"
