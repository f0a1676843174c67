/* SPDX-License-Identifier: MIT
 *
 * The option observable: does a process that has it, and its forked child, make the call that lets
 * others look into it, does no other process make it, and may it be refused? A filter kills for
 * that call, as kernels without the module yama show no other trace of it. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "thread/block.h"

static char self_path[4096];

/* What the call returns from now on, also in programs that this one becomes. */
static void answer(unsigned action) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PTRACER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    EXPECT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

static int status_of(pid_t child) {
    int status = -1;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* This program again, with the options. */
static int start(const char *options, const char *mode, unsigned action) {
    pid_t child = fork();
    if (child == 0) {
        setenv("HAKMEM_OPTIONS", options, 1);
        if (action != 0) {
            answer(action);
        }
        execl(self_path, self_path, mode, (char *)NULL);
        _exit(99);
    }
    return status_of(child);
}

/* Forks under the filter; returns 0 if the child was killed by it. */
static int forks(void) {
    free(malloc(100));
    answer(SECCOMP_RET_KILL_PROCESS);
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    return status_of(child) == -SIGSYS ? 0 : 1;
}

static void process_with_the_option_lets_others_look(void) {
    EXPECT_EQ(start("observable:1", "nothing", SECCOMP_RET_KILL_PROCESS), -SIGSYS);
    EXPECT_EQ(start("observable:1", "forks", 0), 0);
}

static void process_without_it_does_not(void) {
    EXPECT_EQ(start("observable:0", "nothing", SECCOMP_RET_KILL_PROCESS), 0);
    EXPECT_EQ(start("observable:0", "forks", 0), 1);
}

static void refusal_changes_nothing(void) {
    EXPECT_EQ(start("observable:1", "nothing", SECCOMP_RET_ERRNO | 1), 0);
    EXPECT_EQ(start("observable:1", "nothing", SECCOMP_RET_ERRNO | 22), 0);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        return strcmp(argv[1], "forks") == 0 ? forks() : 0;
    }
    if (expect_is_emulated()) {
        expect_skip("the emulator has no seccomp filters");
    }
    expect_watchdog();
    EXPECT(readlink("/proc/self/exe", self_path, sizeof self_path - 1) > 0);
    RUN(process_with_the_option_lets_others_look);
    RUN(process_without_it_does_not);
    RUN(refusal_changes_nothing);
    return expect_status();
}
