/* SPDX-License-Identifier: MIT
 *
 * A program allocates, then locks what it has (MCL_CURRENT), so that it takes no page fault later.
 * Is all of each block resident then? The kernel populates a mapping up to the first page that it
 * cannot, and leaves out the rest without an error.
 */
#include "api/family.h"

#include <sys/mman.h>
#include <unistd.h>

enum { LARGE = 40, LARGE_BYTES = 2 << 20, SMALL_EACH = 5000, OS_PAGE = 4096 };

static void *large[LARGE];

static size_t resident_pages(void *block) {
    static unsigned char is_in[LARGE_BYTES / OS_PAGE];
    size_t count = 0;
    EXPECT(mincore(block, LARGE_BYTES, is_in) == 0);
    for (size_t i = 0; i < LARGE_BYTES / OS_PAGE; ++i) {
        count += is_in[i] & 1;
    }
    return count;
}

/* Small blocks lie between, and some of them are watched. */
static void locking_what_there_is_makes_every_block_resident(void) {
    for (size_t i = 0; i < LARGE; ++i) {
        large[i] = family.malloc(LARGE_BYTES);
        EXPECT(large[i] != NULL);
        for (size_t k = 0; k < SMALL_EACH; ++k) {
            EXPECT(family.malloc(16 + k % 500) != NULL);
        }
    }
    void *plain =
        mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (plain == MAP_FAILED || mlockall(MCL_CURRENT) != 0) {
        expect_skip("memory cannot be locked here");
    }
    if (resident_pages(plain) != LARGE_BYTES / OS_PAGE) {
        expect_skip("locked memory is not resident here");
    }
    for (size_t i = 0; i < LARGE; ++i) {
        EXPECT_EQ(resident_pages(large[i]), LARGE_BYTES / OS_PAGE);
    }
}

int main(void) {
    family_load();
    if (sysconf(_SC_PAGESIZE) != OS_PAGE) {
        expect_skip("OS pages are larger");
    }
    expect_watchdog();
    RUN(locking_what_there_is_makes_every_block_resident);
    return expect_status();
}
