/* SPDX-License-Identifier: MIT
 *
 * A forked child that must end with status 0, and within CHILD_SECONDS, which no child needs on the
 * slowest machine: one that does not is said with where it is, killed and a failure.
 */
#ifndef HAK_TEST_THREAD_CHILD_H
#define HAK_TEST_THREAD_CHILD_H

#include <sys/wait.h>
#include <time.h>

#include "api/expect.h"

enum { CHILD_SECONDS = 120, CHILD_POLL_US = 200 };

/* In the child, where a deadline of its own is too early by nothing: the parent may be gone. */
static inline void child_begin(void) {
    expect_watchdog(CHILD_SECONDS);
}

static inline void child_expect_end(pid_t child) {
    struct timespec start, now;
    int status = -1;
    pid_t ended;
    EXPECT(child > 0);
    clock_gettime(CLOCK_MONOTONIC, &start);
    while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > CHILD_SECONDS + 10) {
            expect_say("child %d hangs\n", (int)child);
            where_tell(child);
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            EXPECT(!"a child hangs");
        }
        usleep(CHILD_POLL_US);
    }
    EXPECT_EQ(ended, child);
    EXPECT_EQ(status, 0);
}

#endif
