/* SPDX-License-Identifier: MIT
 *
 * More than 2^20 blocks above 1 MiB at once, hardly any memory behind them: is each one served? Is
 * what they needed of metadata there for the next ones?
 */
#include "api/family.h"
#include "api/figure.h"
#include "limits/mappings.h"

enum {
    COUNT = (1 << 20) + (1 << 15),
    SIZE = (1 << 20) + 1,
    RSS_MOST = 256, /* a block: its record, its part of the page map */
};

static void *blocks[COUNT];

static void huge_blocks_in_any_number_are_served(void) {
    size_t rss = expect_rss_bytes();
    for (size_t i = 0; i < COUNT; ++i) {
        blocks[i] = family.malloc(SIZE);
        EXPECT(blocks[i] != NULL);
    }
    expect_rss_at_most(rss, (size_t)COUNT * RSS_MOST);
    for (size_t i = 0; i < COUNT; ++i) {
        family.free(blocks[i]);
    }
}

int main(void) {
    family_load();
    if (expect_is_emulated()) {
        expect_skip("mappings are the emulator's");
    }
    skip_without_addresses((size_t)1 << 41);
    expect_watchdog(100);
    RUN(huge_blocks_in_any_number_are_served);
    return expect_status();
}
