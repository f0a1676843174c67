/* SPDX-License-Identifier: MIT
 *
 * A program that starts threads, and then forbids itself to make more, to open and close files and
 * to divide its descriptors: it allocates on, for as long as it may take until the library looks at
 * the machine again. Any such system call is named and fails the test.
 */
#include <time.h>

#include "life/sandbox.h"

enum { KEPT = 3000, STEPS = 20000, SECONDS = 3, CLONE3 = 435, CLOSE_RANGE = 436 };

static const unsigned forbidden[] = {SYS_clone,  CLONE3,    CLOSE_RANGE, SYS_unshare,
                                     SYS_openat, SYS_close, SYS_fcntl,   SYS_dup3};

static bool is_over; /* [atomic] */

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
    enum { COUNT = sizeof forbidden / sizeof *forbidden };
    if (!sandbox_enter(forbidden, COUNT, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW,
                       SECCOMP_FILTER_FLAG_TSYNC)) {
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
    expect_watchdog();
    RUN(sandbox_begun_with_threads_allows_what_both_do);
    _exit(expect_status());
}
