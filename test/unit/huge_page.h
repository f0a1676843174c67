/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of huge pages in span/: so much is in use that ranges may be backed by them.
 */
#ifndef HAK_TEST_UNIT_HUGE_PAGE_H
#define HAK_TEST_UNIT_HUGE_PAGE_H

#include "unit/span.h"

static hak_span_t unit_pins[4]; /* 8 MiB in use */

/* Setup */
static inline int unit_huge_page_begin(void **state) {
    unit_span_begin(state);
    hak_knobs.huge_pages = true;
    hak_span_state.lacks_huge_pages = false;
    for (unsigned i = 0; i < UNIT_COUNT(unit_pins); i++) {
        unit_pins[i] = unit_span(32, HAK_UNIT_BYTES);
    }
    hak_os_fault_clear();
    return hak_os_page_bytes() != 4096; /* the feature is for small OS pages */
}

/* Teardown */
static inline int unit_huge_page_end(void **state) {
    unit_span_end(state);
    assert_int_equal(hak_span_state.huge_page_count, 0);
    return 0;
}

#endif
