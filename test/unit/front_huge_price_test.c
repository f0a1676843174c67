/* SPDX-License-Identifier: MIT
 *
 * Small and large blocks that are the first in a huge page touch it under the clock. */
#include "span/dense.h"
#include "span/span_state.h"
#include "unit/front.h"

enum { HUGE_PRICE_COUNT = 64 << 10, DEAR_NS = 3000000 };

static void *huge_price_blocks[HUGE_PRICE_COUNT];

static int huge_price_begin(void **state) {
    (void)state;
    self();
    hak_knobs.huge_pages = true; /* also in a profile without */
    hak_span_state.lacks_huge_pages = false;
    hak_os_fault_clear();
    hak_os_fault_stop_clock();
    hak_os_fault_slow_touches(DEAR_NS);
    hak_span_state.huge_price = (hak_huge_price_t){0};
    return hak_os_page_bytes() != 4096; /* the feature is for small OS pages */
}

#define HUGE_PRICE_TEST(name) UNIT_TEST_WITH(name, huge_price_begin, NULL)

static void huge_price_free_all(void) {
    for (unsigned i = 0; i < HUGE_PRICE_COUNT; i++) {
        hak_free(huge_price_blocks[i]);
        huge_price_blocks[i] = NULL;
    }
    hak_os_fault_clear();
    hak_malloc_trim(0);
    audit();
}

HUGE_PRICE_TEST(small_blocks_begin_a_pause) {
    uint64_t dear = hak_counters.huge_page_dear, pause = hak_counters.huge_page_pause;
    for (unsigned i = 0; i < HUGE_PRICE_COUNT; i++) { /* 64 MiB */
        huge_price_blocks[i] = unit_malloc(1024);
        assert_non_null(huge_price_blocks[i]);
    }
    assert_int_equal(hak_counters.huge_page_dear, dear + 4);
    assert_in_range(hak_counters.huge_page_pause, pause + 1, pause + 32);
    assert_int_equal(hak_os_fault_late_touches(), 0);
    huge_price_free_all();
}

extern hak_dense_t hak_large_dense[4]; /* of blocks up to 256, 512, 768 KiB and 1 MiB */

HUGE_PRICE_TEST(large_blocks_begin_a_pause) {
    uint64_t dear = hak_counters.huge_page_dear, pause = hak_counters.huge_page_pause;
    for (unsigned i = 0; i < UNIT_COUNT(hak_large_dense); i++) {
        hak_large_dense[i] = (hak_dense_t){.bet = 8, .left = UINT8_MAX};
    }
    UNIT_TAKE_ALL(huge_price_blocks, 64, unit_malloc(MIB));
    assert_int_equal(hak_counters.huge_page_dear, dear + 4);
    assert_in_range(hak_counters.huge_page_pause, pause + 1, pause + 32);
    assert_int_equal(hak_os_fault_late_touches(), 0);
    memset(hak_large_dense, 0, sizeof hak_large_dense);
    huge_price_free_all();
}
