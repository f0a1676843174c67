/* SPDX-License-Identifier: MIT
 *
 * A program that starts threads, and then forbids itself to make more, to open and close files and
 * to divide its descriptors: it allocates on, for as long as it may take until the library looks at
 * the machine again. Any such system call is named and fails the test.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <time.h>

#include "thread/block.h"

enum { KEPT = 3000, STEPS = 20000, SECONDS = 3, CLONE3 = 435, CLOSE_RANGE = 436 };

static const unsigned forbidden[] = {SYS_clone,  CLONE3,    CLOSE_RANGE, SYS_unshare,
                                     SYS_openat, SYS_close, SYS_fcntl,   SYS_dup3};

static bool is_over; /* [atomic] */

static void report_call(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    (void)context;
    expect_say("FAILED: system call %d in the sandbox\n", info->si_syscall);
    _exit(1);
}

/* For all threads. */
static bool lock_in(void) {
    enum { COUNT = sizeof forbidden / sizeof *forbidden };
    struct sigaction action = {.sa_sigaction = report_call, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter code[2 * COUNT + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (size_t i = 0; i < COUNT; ++i) {
        code[1 + 2 * i] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i], 0, 1);
        code[2 + 2 * i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    code[2 * COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static block_t *kept[2][KEPT];

static void *use(void *argument) {
    block_t **blocks = kept[(uintptr_t)argument];
    uint64_t state = (uintptr_t)argument + 1;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        blocks_churn(blocks, KEPT, STEPS, &state);
        if (argument == NULL) {
            break;
        }
    }
    blocks_unmake(blocks, KEPT, &state);
    memset(blocks, 0, sizeof kept[0]);
    return NULL;
}

static void sandbox_begun_with_threads_allows_what_both_do(void) {
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, use, (void *)1), 0);
    if (!lock_in()) {
        expect_skip("this kernel has no seccomp filters");
    }
    for (time_t last = time(NULL) + SECONDS; time(NULL) < last;) {
        use(NULL);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

int main(void) {
    family_load();
    expect_watchdog(100);
    RUN(sandbox_begun_with_threads_allows_what_both_do);
    _exit(expect_status());
}
