/* SPDX-License-Identifier: MIT
 *
 * Allocates only when it is told to, by a letter on standard input, and says when it is done:
 *   t    slow paths enough for events
 *   f    a child that allocates nothing, and ends with its parent; prints its PID
 *   e    executes itself
 *   s    takes a seccomp filter, which allows everything
 *
 *   told */
#include "api/expect.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

enum { BLOCKS = 20000, LARGE = 300 };

static void tick(void) {
    static void *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(64 + i % 2000);
        EXPECT(block[i] != NULL);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    for (size_t i = 0; i < LARGE; i++) {
        free(malloc(100000));
    }
}

static int child_begin(void) {
    int parent = getpid(), ends[2];
    char is_up;
    EXPECT(pipe(ends) == 0);
    int child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        EXPECT(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        EXPECT(write(ends[1], "", 1) == 1); /* the C library's fork is over here, too */
        while (getppid() == parent) {
            pause();
        }
        _exit(0);
    }
    EXPECT(read(ends[0], &is_up, 1) == 1);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void sandbox(void) {
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = 1, .filter = &all};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(int argc, char **argv) {
    char order;
    (void)argc;
    EXPECT(write(1, "0\n", 2) == 2);
    while (read(0, &order, 1) == 1) {
        int child = 0;
        if (order == 't') {
            tick();
        } else if (order == 'f') {
            child = child_begin();
        } else if (order == 's') {
            sandbox();
        } else {
            execv("/proc/self/exe", argv);
        }
        EXPECT(dprintf(1, "%d\n", child) > 0);
    }
    _exit(0);
}
