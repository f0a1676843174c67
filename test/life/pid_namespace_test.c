/* SPDX-License-Identifier: MIT
 *
 * A process whose ID is 2 makes a child by a bare clone() in a PID namespace of its own, as
 * container tools do, and the child a thread, whose ID there is 2, too: does each of the child's
 * threads have blocks of its own?
 */
#include <sched.h>
#include <sys/wait.h>

#include "thread/block.h"

enum { ROUNDS = 5, STEPS = 100000, KEPT = 200, SECOND = 2 };

static pthread_barrier_t both_are_there;

/* Without what the C library does around a fork. */
static pid_t bare_clone(unsigned long flags) {
    return (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

static int status_of(pid_t child) {
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static void *use(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    block_t *blocks[KEPT] = {NULL};
    pthread_barrier_wait(&both_are_there);
    blocks_churn(blocks, KEPT, STEPS, &state);
    blocks_unmake(blocks, KEPT, &state);
    return NULL;
}

/* Status 3: the thread has another ID, so nothing was tested. */
static void *use_as_second(void *argument) {
    if ((pid_t)syscall(SYS_gettid) != SECOND) {
        _exit(3);
    }
    return use(argument);
}

static void child_main(void) {
    expect_watchdog();
    pthread_barrier_init(&both_are_there, NULL, 2);
    pthread_t thread = thread_start(use_as_second, NULL);
    use(&thread);
    pthread_join(thread, NULL);
    _exit(0);
}

/* The process with ID 2. */
static void second_main(void) {
    uint64_t state = 1;
    block_unmake(block_make(&state), &state); /* it has a cache from here on */
    for (unsigned i = 0; i < ROUNDS; ++i) {
        pid_t child = bare_clone(CLONE_NEWPID);
        if (child == 0) {
            child_main();
        }
        if (status_of(child) != 0) {
            _exit(1);
        }
    }
    _exit(0);
}

/* The first process of a namespace, whose child is the second. */
static void first_main(void) {
    pid_t second = fork();
    if (second == 0) {
        if (getpid() != SECOND) {
            _exit(3);
        }
        second_main();
    }
    _exit(status_of(second) == 0 ? 0 : 1);
}

static void clone_in_a_pid_namespace_gives_each_thread_a_cache_of_its_own(void) {
    pid_t first = bare_clone(CLONE_NEWUSER | CLONE_NEWPID);
    if (first == 0) {
        first_main();
    }
    if (first < 0) {
        expect_skip("no user and PID namespaces here");
    }
    EXPECT_EQ(status_of(first), 0);
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(clone_in_a_pid_namespace_gives_each_thread_a_cache_of_its_own);
    return expect_status();
}
