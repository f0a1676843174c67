/* SPDX-License-Identifier: MIT
 *
 * Small and large blocks that are the first in a huge page touch it under the clock. */
#include "base/counters.h"
#include "double/os_fault.h"
#include "large/large.h"
#include "span/dense.h"
#include "span/span_state.h"
#include "unit/front.h"

enum { MIB = 1 << 20, COUNT = 64 << 10, DEAR_NS = 3000000 };

static void *blocks[COUNT];

static int begin(void **state) {
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

static void free_all(void) {
    for (unsigned i = 0; i < COUNT; i++) {
        hak_free(blocks[i]);
        blocks[i] = NULL;
    }
    hak_os_fault_clear();
    hak_malloc_trim(0);
    audit();
}

static void small_blocks_begin_a_pause(void **state) {
    (void)state;
    uint64_t dear = hak_counters.huge_page_dear, pause = hak_counters.huge_page_pause;
    for (unsigned i = 0; i < COUNT; i++) { /* 64 MiB */
        blocks[i] = hak_malloc(1024);
        assert_non_null(blocks[i]);
    }
    assert_int_equal(hak_counters.huge_page_dear, dear + 4);
    assert_in_range(hak_counters.huge_page_pause, pause + 1, pause + 32);
    assert_int_equal(hak_os_fault_late_touches(), 0);
    free_all();
}

extern hak_dense_t hak_large_dense[4]; /* of blocks up to 256, 512, 768 KiB and 1 MiB */

static void large_blocks_begin_a_pause(void **state) {
    (void)state;
    uint64_t dear = hak_counters.huge_page_dear, pause = hak_counters.huge_page_pause;
    for (unsigned i = 0; i < UNIT_COUNT(hak_large_dense); i++) {
        hak_large_dense[i] = (hak_dense_t){.bet = 8, .left = UINT8_MAX};
    }
    for (unsigned i = 0; i < 64; i++) {
        blocks[i] = hak_malloc(MIB);
        assert_non_null(blocks[i]);
    }
    assert_int_equal(hak_counters.huge_page_dear, dear + 4);
    assert_in_range(hak_counters.huge_page_pause, pause + 1, pause + 32);
    assert_int_equal(hak_os_fault_late_touches(), 0);
    memset(hak_large_dense, 0, sizeof hak_large_dense);
    free_all();
}

#define HUGE_PRICE_TEST(test) cmocka_unit_test_setup(test, begin)

static const struct CMUnitTest tests[] = {
    HUGE_PRICE_TEST(small_blocks_begin_a_pause),
    HUGE_PRICE_TEST(large_blocks_begin_a_pause),
};

UNIT_MAIN(tests)
