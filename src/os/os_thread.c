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
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

uint32_t hak_os_thread_id(void) {
    return (uint32_t)hak_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

uint32_t hak_os_process_id(void) {
    return (uint32_t)hak_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

const char *hak_os_program(void) {
    const char *path = (const char *)getauxval(AT_EXECFN);
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path != NULL ? path : "";
}

/* A thread may ask for its own name without a file. */
void hak_os_command(char command[HAK_OS_COMMAND_BYTES]) {
    memset(command, 0, HAK_OS_COMMAND_BYTES);
    if (hak_os_thread_id() == hak_os_process_id()) {
        hak_syscall(SYS_prctl, PR_GET_NAME, (long)command, 0, 0, 0, 0);
    } else {
        hak_os_read_file("/proc/self/comm", command, HAK_OS_COMMAND_BYTES);
    }
    command[strnlen(command, HAK_OS_COMMAND_BYTES - 1)] = '\0';
    command[strcspn(command, "\n")] = '\0';
}

void hak_os_wait(uint32_t *word, uint32_t expected) {
    hak_syscall(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, 0, 0, 0);
}

void hak_os_wait_at_most(uint32_t *word, uint32_t expected, uint64_t ns) {
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    hak_syscall(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, (long)&time, 0, 0);
}

void hak_os_wake_one(uint32_t *word) {
    hak_syscall(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* The futex call, as programs that forbid themselves system calls allow that one. */
void hak_os_sleep(uint64_t ns) {
    uint32_t never = 0;
    hak_os_wait_at_most(&never, 0, ns);
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
