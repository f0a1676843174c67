/* SPDX-License-Identifier: MIT
 *
 * A library's function by the name that a test program gives the allocator's clock. */
#include <stdlib.h>
#include <time.h>

int hak_test_clock(clockid_t clock, struct timespec *now);

int hak_test_clock(clockid_t clock, struct timespec *now) {
    (void)clock;
    (void)now;
    abort();
}
