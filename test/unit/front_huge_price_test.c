/* SPDX-License-Identifier: MIT
 *
 * Small and large blocks that are the first in a huge page touch it under the clock. */
#include "span/dense.h"
#include "span/span_state.h"
#include "unit/front.h"

enum { FRESH_MOST = 64 << 10, SLOW_NS = 3000000 };

static void *huge_price_blocks[FRESH_MOST];

UNIT_AROUND(huge_price_begin) {
    self();
    hak_knobs.huge_pages = true; /* also in a profile without */
    hak_span_state.lacks_huge_pages = false;
    hak_os_fault_clear();
    hak_os_fault_stop_clock();
    hak_os_fault_slow_touches(SLOW_NS);
    hak_span_state.huge_price = 0;
    hak_huge_page_due = 0;
    return hak_os_page_bytes() != 4096; /* the feature is for small OS pages */
}

#define HUGE_PRICE_TEST(name) UNIT_TEST_WITH(name, huge_price_begin, NULL)

/* Of 64 MiB in fresh blocks of so many bytes, four touches are slow, and then others are not made.
 */
static void expect_pause(size_t bytes) {
    uint64_t pause = hak_counters.huge_page_skipped;
    size_t count = 64u * MIB / bytes;
    UNIT_TAKE_ALL(huge_price_blocks, count, unit_malloc(bytes));
    assert_true(hak_span_state.huge_price > 4);
    assert_in_range(hak_counters.huge_page_skipped, pause + 1, pause + 32);
    assert_int_equal(hak_os_fault_late_touches(), 0);
    UNIT_FREE_ALL(huge_price_blocks, count);
    hak_os_fault_clear();
    hak_malloc_trim(0);
    audit();
}

HUGE_PRICE_TEST(small_blocks_begin_a_pause) {
    expect_pause(1024);
}

extern hak_dense_t hak_large_dense[4]; /* of blocks up to 256, 512, 768 KiB and 1 MiB */

HUGE_PRICE_TEST(large_blocks_begin_a_pause) {
    UNIT_TAKE_ALL(hak_large_dense, UNIT_COUNT(hak_large_dense),
                  ((hak_dense_t){.bet = 8, .left = UINT8_MAX}));
    expect_pause(MIB);
    memset(hak_large_dense, 0, sizeof hak_large_dense);
}
