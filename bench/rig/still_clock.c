/* SPDX-License-Identifier: MIT
 * In workloads whose instructions are counted: the coarse clocks stand still, for any allocator.
 *
 * Under valgrind a program is some 50 times slower, and what an allocator does after some time
 * comes 50 times as often between two operations, now in this run and now in that. With a clock
 * that stands, runs count the same. The fine clocks go on: workloads pause by them.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int hak_test_clock(clockid_t clock, struct timespec *now);

/* hakmem calls no clock_gettime but the C library's, or this (src/os/memory_linux.c). */
int hak_test_clock(clockid_t clock, struct timespec *now) {
    if (clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_REALTIME_COARSE) {
        *now = (struct timespec){.tv_sec = 1000};
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    return hak_test_clock(clock, now);
}
