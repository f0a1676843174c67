/* SPDX-License-Identifier: MIT
 *
 * A program that was compiled with hakmem/inline.h of another library. */
#define HAK_HIT_OF_LIBRARY /* no check at start */
#include "crimes.h"

#include <hakmem/inline.h>

CRIME(inline_header_of_another_version) {
    hak_inline_check(HAK_HIT_LAYOUT + 1);
}
