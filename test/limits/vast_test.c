/* SPDX-License-Identifier: MIT
 *
 * What stays of many huge blocks that were never touched, after they were freed and malloc_trim
 * was called? Each wrote a word of the page map, in an OS page of its own, and had a record.
 * Argument: GiB of addresses (default 256).
 */
#include "api/family.h"

enum { MEBIBYTE = 1 << 20, BLOCK_BYTES = 64 * MEBIBYTE };

static size_t block_count;

static void untouched_blocks_leave_nothing_behind(void) {
    EXPECT_HAS(trim);
    void **blocks = family.calloc(block_count, sizeof *blocks);
    EXPECT(blocks != NULL);
    memset(blocks, 0, block_count * sizeof *blocks);
    family.trim(0);
    size_t before = expect_rss_bytes();
    for (size_t i = 0; i < block_count; ++i) {
        blocks[i] = family.malloc(BLOCK_BYTES);
        if (blocks[i] == NULL) {
            expect_skip("the kernel grants too few addresses");
        }
    }
    size_t full = expect_rss_bytes();
    for (size_t i = 0; i < block_count; ++i) {
        family.free(blocks[i]);
    }
    family.trim(0);
    expect_say("  %zu KiB in use, %zu before\n", full >> 10, before >> 10);
    expect_rss_at_most(before, MEBIBYTE);
    family.free(blocks);
}

int main(int argc, char **argv) {
    block_count = (expect_arg(argc, argv, 1, 256) << 30) / BLOCK_BYTES;
    family_load();
    expect_watchdog();
    RUN(untouched_blocks_leave_nothing_behind);
    return expect_status();
}
