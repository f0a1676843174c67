/* SPDX-License-Identifier: MIT
 *
 * A handler of SIGSEGV that two libraries install, one before watched blocks (guard_rate:1) and one
 * after, and that passes on what it does not know to the handler that it found.
 */
#include <signal.h>
#include <sys/wait.h>

#include "api/family.h"

enum { BLOCKS = 1000, NESTED_MOST = 10, NESTED = 99 };

static struct sigaction before;

static void pass_on(int number, siginfo_t *info, void *context) {
    static unsigned calls;
    if (++calls > NESTED_MOST) { /* else until the stack ends */
        _exit(NESTED);
    }
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(number, info, context);
    } else {
        signal(number, SIG_DFL); /* the access is repeated, and ends the process */
    }
}

static void install(void) {
    struct sigaction ours = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO}, found;
    EXPECT_EQ(sigaction(SIGSEGV, &ours, &found), 0);
    if (found.sa_sigaction != pass_on) {
        before = found;
    }
}

static void fault_ends_a_process_whose_handler_was_installed_twice(void) {
    pid_t child = fork();
    if (child == 0) {
        install();
        for (unsigned i = 0; i < BLOCKS; i++) {
            family.free(family.malloc(100));
        }
        install();
        *(volatile int *)8 = 1;
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGSEGV);
}

int main(void) {
    family_load();
    RUN(fault_ends_a_process_whose_handler_was_installed_twice);
    return expect_status();
}
