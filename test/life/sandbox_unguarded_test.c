/* SPDX-License-Identifier: MIT
 *
 * A program that forbids itself the signal calls before its first allocation, under
 * cgroup:0,guard:0. Those calls are named and fail the test.
 */
#include "life/sandbox.h"

enum { KEPT = 3000, STEPS = 400000 };

static const unsigned forbidden[] = {SYS_rt_sigaction, SYS_rt_sigprocmask};

static block_t *kept[KEPT];

static void guard_0_needs_no_signal_calls(void) {
    uint64_t state = 1;
    blocks_churn(kept, KEPT, STEPS, &state);
    blocks_unmake(kept, KEPT, &state);
    family.trim(0);
}

int main(void) {
    family_load();
    expect_watchdog();
    enum { COUNT = sizeof forbidden / sizeof *forbidden };
    if (!sandbox_enter(forbidden, COUNT, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW, 0)) {
        expect_skip("this kernel has no seccomp filters");
    }
    RUN(guard_0_needs_no_signal_calls);
    _exit(expect_status());
}
