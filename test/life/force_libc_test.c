/* SPDX-License-Identifier: MIT
 *
 * Under HAKMEM_OPTIONS=force_libc:1 the C library's own functions must do the work, each its own:
 * its calloc leaves fresh memory of the kernel untouched.
 */
#include "api/family.h"

enum { RSS_ALLOWED = 64 << 20 };

static void force_libc_calloc_of_a_gibibyte_touches_little(void) {
    const size_t size = (size_t)1 << 30;
    size_t before = expect_rss_bytes();
    unsigned char *block = family.calloc(1 << 10, 1 << 20);
    if (block == NULL) {
        expect_skip("no address space for 1 GiB");
    }
    expect_rss_at_most(before, RSS_ALLOWED);
    for (size_t at = 0; at < size; at += size / 64) {
        EXPECT_EQ(block[at], 0);
    }
    EXPECT_EQ(block[size - 1], 0);
    family.free(block);
}

static void force_libc_calloc_of_used_memory_is_zero(void) {
    for (size_t size = 1; size <= 1 << 17; size = size * 2 + 1) {
        for (size_t round = 0; round < 10; ++round) {
            unsigned char *block = family.calloc(1, size);
            EXPECT(block != NULL);
            for (size_t at = 0; at < size; ++at) {
                EXPECT_EQ(block[at], 0);
            }
            memset(block, 0xff, size);
            family.free(block);
        }
    }
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(force_libc_calloc_of_a_gibibyte_touches_little);
    RUN(force_libc_calloc_of_used_memory_is_zero);
    return expect_status();
}
