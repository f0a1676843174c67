/* SPDX-License-Identifier: MIT
 *
 * The process has a clock that stands still: the allocator does nothing by time, however slow the
 * machine is. For one source file of a program, which has the same clock. */
#ifndef HAK_TEST_API_STILL_CLOCK_H
#define HAK_TEST_API_STILL_CLOCK_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int hak_test_clock(clockid_t clock, struct timespec *now);

int hak_test_clock(clockid_t clock, struct timespec *now) {
    if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    *now = (struct timespec){.tv_sec = 1000};
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    return hak_test_clock(clock, now);
}

#endif
