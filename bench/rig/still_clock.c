/* SPDX-License-Identifier: MIT
 * libstill_clock.so, preloaded where instructions are counted: the coarse clocks stand still.
 *
 * Under valgrind a program is some 50 times slower, and what an allocator does after some time
 * comes 50 times as often between two operations, now in this run and now in that. With a clock
 * that stands, runs count the same. The fine clocks go on: workloads pause by them.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_REALTIME_COARSE) {
        *now = (struct timespec){.tv_sec = 1000};
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}
