/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of conf/. */
#ifndef HAK_TEST_UNIT_CONF_H
#define HAK_TEST_UNIT_CONF_H

#include "conf/conf.h"

#include <stdlib.h>

/* Everything back to the defaults, sources other than the environment's absent. */
static inline int conf_begin(void **state) {
    (void)state;
    unsetenv("HAKMEM_OPTIONS");
    unsetenv("HAKMEM_PROFILE");
    hak_conf_read();
    return 0;
}

#endif
