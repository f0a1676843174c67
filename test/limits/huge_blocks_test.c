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
    MEASUREMENTS = 20, /* of which the shortest counts: others may have had the processor */
    LOOK_TIMES = 20,   /* as slow; if all records were looked at, thousands */
};

static void *blocks[COUNT];

/* Of the C library's own malloc. */
static void *foreign_malloc(size_t size) {
    void *(*libc_malloc)(size_t);
    *(void **)&libc_malloc = dlsym(RTLD_DEFAULT, "__libc_malloc");
    return libc_malloc != NULL ? libc_malloc(size) : family.malloc(100);
}

static double look_seconds_once(void *const foreign[2]) {
    struct timespec start, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    for (size_t i = 0; i < LOOKS; ++i) {
        EXPECT(family.usable_size(foreign[i % 2]) >= 100);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
}

static double look_seconds(void *const foreign[2]) {
    double least = look_seconds_once(foreign);
    for (size_t i = 1; i < MEASUREMENTS; ++i) {
        double seconds = look_seconds_once(foreign);
        least = seconds < least ? seconds : least;
    }
    return least;
}

static void expect_not_slow(double seconds, double slow_seconds) {
    expect_say("  a foreign pointer: %.2f us, among them %.2f us\n", seconds / LOOKS * 1e6,
               slow_seconds / LOOKS * 1e6);
    EXPECT(slow_seconds <= seconds * LOOK_TIMES);
}

static void blocks_take(size_t from, size_t end, size_t size) {
    for (size_t i = from; i < end; ++i) {
        blocks[i] = family.malloc(size);
        EXPECT(blocks[i] != NULL);
    }
}

static void blocks_give(size_t from, size_t end) {
    for (size_t i = from; i < end; ++i) {
        family.free(blocks[i]);
    }
}

static void huge_blocks_in_any_number_are_served(void) {
    /* below ours, and a mapping among them */
    void *const foreign[] = {foreign_malloc(100), foreign_malloc(100 + SIZE)};
    size_t rss = expect_rss_bytes();
    double seconds = look_seconds(foreign);
    blocks_take(0, COUNT, SIZE);
    expect_rss_at_most(rss, (size_t)COUNT * RSS_MOST);
    expect_not_slow(seconds, look_seconds(foreign));
    blocks_give(0, COUNT);
}

/* Of the page map's entries for the addresses below the pointer 2^24 are read, of blocks that were
 * freed, before one names a block, unless that is given up. The first blocks are few enough for all
 * of them to be looked at. */
static void foreign_pointer_above_a_sparse_tebibyte_is_recognised_fast(void) {
    enum { FEW = 1000, MANY = 1100, ABOVE = 64 << 20, GIBIBYTE = 1 << 30 };
    void *above = foreign_malloc(ABOVE), *const foreign[] = {above, above};
    blocks_take(0, FEW, GIBIBYTE);
    double seconds = look_seconds(foreign);
    blocks_take(FEW, MANY, GIBIBYTE);
    blocks_give(0, MANY - 1);
    if (family.trim) {
        family.trim(0);
    }
    expect_not_slow(seconds, look_seconds(foreign));
    blocks_give(MANY - 1, MANY);
}

int main(int argc, char **argv) {
    family_load();
    if (expect_is_emulated()) {
        expect_skip("mappings are the emulator's");
    }
    skip_without_addresses((size_t)1 << 41);
    expect_watchdog();
    if (argc > 1 && strcmp(argv[1], "sparse") == 0) {
        RUN(foreign_pointer_above_a_sparse_tebibyte_is_recognised_fast);
    } else {
        RUN(huge_blocks_in_any_number_are_served);
    }
    return expect_status();
}
