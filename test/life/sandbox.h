/* SPDX-License-Identifier: MIT
 *
 * Shared by programs that restrict their own system calls: a call that is refused is named and
 * fails the test. */
#ifndef HAK_TEST_LIFE_SANDBOX_H
#define HAK_TEST_LIFE_SANDBOX_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "thread/block.h"

enum { SANDBOX_CALLS_MOST = 320 };

static void sandbox_report_call(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    (void)context;
    expect_say("FAILED: system call %d in the sandbox\n", info->si_syscall);
    _exit(1);
}

/* From now on the listed calls, of this thread or of all (SECCOMP_FILTER_FLAG_TSYNC), return
 * `listed`, and all others `other`: SECCOMP_RET_ALLOW or SECCOMP_RET_TRAP. The watchdog, which
 * makes calls of its own at each tick, leaves the process to ctest's time limit. */
static bool sandbox_enter(const unsigned *calls, unsigned count, unsigned listed, unsigned other,
                          unsigned flags) {
    const struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    struct sigaction action = {.sa_sigaction = sandbox_report_call, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter code[2 * SANDBOX_CALLS_MOST + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned length = 1;
    EXPECT(count <= SANDBOX_CALLS_MOST);
    for (unsigned i = 0; i < count; i++) {
        code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
    }
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, other);
    struct sock_fprog program = {.len = (unsigned short)length, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
}

#endif
