/* SPDX-License-Identifier: MIT
 *
 * The kernel takes no page back from a process that has locked its memory. With much more unused
 * memory than may be kept, is it asked now and then, or on every free?
 * HAKMEM_OPTIONS=retain_min:4m,retain_percent:0 makes the memory needed for that small.
 */
#include "api/family.h"
#include "api/figure.h"

/* One block in KEPT_EVERY stays, so that nothing can be unmapped instead. */
enum { COUNT = 640, SIZE = 130000, KEPT_EVERY = 8, PAIRS = 5000, CALLS_ALLOWED = 1500 };

static void *blocks[COUNT];

static void locked_memory_unused_in_plenty_is_seldom_purged(void) {
    for (size_t i = 0; i < COUNT; ++i) {
        blocks[i] = family.malloc(SIZE);
        EXPECT(blocks[i] != NULL);
    }
    size_t before = figure("purge_calls");
    for (size_t i = 0; i < COUNT; ++i) {
        if (i % KEPT_EVERY != 0) {
            family.free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    for (size_t pair = 0; pair < PAIRS; ++pair) {
        void *block = family.malloc(SIZE);
        EXPECT(block != NULL);
        family.free(block);
    }
    figure_at_most("purge_calls", before, CALLS_ALLOWED);
    for (size_t i = 0; i < COUNT; ++i) {
        family.free(blocks[i]);
    }
}

int main(void) {
    family_load();
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        expect_skip("memory cannot be locked here");
    }
    void *probe = family.malloc((size_t)128 << 20);
    if (probe == NULL) {
        expect_skip("not enough memory can be locked here");
    }
    family.free(probe);
    expect_watchdog();
    RUN(locked_memory_unused_in_plenty_is_seldom_purged);
    return expect_status();
}
