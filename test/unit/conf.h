/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of conf/. */
#ifndef HAK_TEST_UNIT_CONF_H
#define HAK_TEST_UNIT_CONF_H

#include "base/check.h"
#include "conf/conf.h"
#include "os/os.h"

#include <stdlib.h>

/* Everything back to the defaults, sources other than the environment's absent. Messages go to
 * standard error, as after the start of a process. */
static inline int conf_begin(void **state) {
    (void)state;
    unsetenv("HAKMEM_OPTIONS");
    unsetenv("HAKMEM_PROFILE");
    hak_check_sink.write = hak_os_write;
    hak_conf_read();
    return 0;
}

#define CONF_TEST(name) UNIT_TEST_WITH(name, conf_begin, NULL)

#endif
