/* SPDX-License-Identifier: MIT
 *
 * Linux implementation of os.h: threads, waiting, signals. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "os/os.h"
#include "os/syscall.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

uint32_t hak_os_thread_id(void) {
    return (uint32_t)hak_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

void hak_os_wait(uint32_t *word, uint32_t expected) {
    hak_syscall(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, 0, 0, 0);
}

void hak_os_wake_one(uint32_t *word) {
    hak_syscall(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* The futex call, as programs that forbid themselves system calls allow that one. */
void hak_os_sleep(uint64_t ns) {
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    uint32_t never = 0;
    hak_syscall(SYS_futex, (long)&never, FUTEX_WAIT_PRIVATE, 0, (long)&time, 0, 0);
}

/* Those by which the C library cancels threads, and changes user IDs in all of them: who sends the
 * latter waits for every thread. */
enum { SIGNAL_CANCEL = 32, SIGNAL_SETXID = 33 };

uint64_t hak_os_block_signals(void) {
    uint64_t all = ~(1ull << (SIGNAL_CANCEL - 1) | 1ull << (SIGNAL_SETXID - 1)), before = 0;
    hak_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0, 0);
    return before;
}

void hak_os_restore_signals(uint64_t before) {
    hak_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
}

void hak_os_relax(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#else
    __asm__ volatile("yield");
#endif
}
