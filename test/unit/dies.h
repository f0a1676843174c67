/* SPDX-License-Identifier: MIT
 *
 * What a write to memory does that must not be written to, in a child. */
#ifndef HAK_TEST_UNIT_DIES_H
#define HAK_TEST_UNIT_DIES_H

#include "unit/unit.h"

#include <sys/resource.h>

/* The signal a child of this process dies of when it writes there; 0: none. */
static inline int unit_write_signal(void *address) {
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)address = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

#endif
