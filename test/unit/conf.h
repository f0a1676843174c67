/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of conf/. */
#ifndef HAK_TEST_UNIT_CONF_H
#define HAK_TEST_UNIT_CONF_H

#include "base/check.h"
#include "base/knobs.h"
#include "conf/conf.h"
#include "double/option_table.h"
#include "os/os.h"
#include "reclaim/learner.h"
#include "unit/capture.h"

#include <stdlib.h>

/* Everything back to the defaults, sources other than the environment's absent. */
UNIT_AROUND(conf_begin) {
    unsetenv("HAKMEM_OPTIONS");
    unsetenv("HAKMEM_PROFILE");
    hak_conf_read();
    return 0;
}

/* What is said about a text with so many mistakes, each a line. */
static inline const char *conf_said(const char *text, unsigned mistakes) {
    unit_capture_begin();
    assert_int_equal(hak_conf_parse(text, "test"), mistakes);
    const char *said = unit_capture_end();
    assert_int_equal(unit_line_count(said), mistakes);
    return said;
}

static inline const char *conf_said_by(void (*act)(void)) {
    unit_capture_begin();
    act();
    return unit_capture_end();
}

#define CONF_TEST(name) UNIT_TEST_WITH(name, conf_begin, NULL)

#endif
