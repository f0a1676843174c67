/* SPDX-License-Identifier: MIT
 *
 * More than 2^20 blocks above 1 MiB at once, hardly any memory behind them: is each one served? Is
 * what they needed of metadata there for the next ones? Is a pointer that is not ours recognised as
 * fast as without them?
 */
#include <dlfcn.h>
#include <time.h>

#include "api/family.h"
#include "api/figure.h"
#include "limits/mappings.h"

enum {
    COUNT = (1 << 20) + (1 << 15),
    SIZE = (1 << 20) + 1,
    RSS_MOST = 256, /* a block: its record, its part of the page map */
    LOOKS = 300,
    LOOK_TIMES = 20, /* as slow; if all records were looked at, thousands */
};

static void *blocks[COUNT];

/* Of blocks of the C library's own malloc: below ours, and a mapping among them. */
static double look_seconds(void) {
    static void *foreign[2];
    struct timespec start, end;
    void *(*libc_malloc)(size_t);
    *(void **)&libc_malloc = dlsym(RTLD_DEFAULT, "__libc_malloc");
    for (size_t i = 0; i < 2 && foreign[i] == NULL; ++i) {
        foreign[i] = libc_malloc != NULL ? libc_malloc(100 + i * SIZE) : family.malloc(100);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    for (size_t i = 0; i < LOOKS; ++i) {
        EXPECT(family.usable_size(foreign[i % 2]) >= 100);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
}

static void huge_blocks_in_any_number_are_served(void) {
    size_t rss = expect_rss_bytes();
    double seconds = look_seconds();
    for (size_t i = 0; i < COUNT; ++i) {
        blocks[i] = family.malloc(SIZE);
        EXPECT(blocks[i] != NULL);
    }
    expect_rss_at_most(rss, (size_t)COUNT * RSS_MOST);
    double slow_seconds = look_seconds();
    expect_say("  a foreign pointer: %.2f us, among them %.2f us\n", seconds / LOOKS * 1e6,
               slow_seconds / LOOKS * 1e6);
    EXPECT(slow_seconds <= seconds * LOOK_TIMES);
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
