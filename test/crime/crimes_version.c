/* SPDX-License-Identifier: MIT
 *
 * A program that was compiled with hakmem/inline.h of another library. */
#define HAK_HIT_OF_LIBRARY /* no check at start */
#include "crimes.h"

#include <hakmem/inline.h>

static void inline_header_of_another_version(void) {
    hak_inline_check(HAK_HIT_LAYOUT + 1);
}

static const crime_t crimes[] = {CRIME(inline_header_of_another_version)};

CRIMES_MAIN(crimes)
