/* SPDX-License-Identifier: MIT
 *
 * Where every block is watched (guard_rate:1,bin_blocks:0), how many system calls is a malloc with
 * its free? A tracer counts them: one opens the OS page, one conceals it; and where the stack lies
 * so that frames end one OS page, each of the two finds out whether the next can be read.
 */
#include "api/family.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

enum { ROUNDS = 1000, SETTLED = 20, SLOTS = 1023, BLOCKS = 10, MOST_CALLS = 4 };

/* Blocks one by one, and several at once. */
static void load(size_t rounds) {
    void *block[BLOCKS] = {NULL};
    for (size_t i = 0; i < rounds; ++i) {
        size_t at = i % 2 == 0 ? 0 : i / 2 % BLOCKS;
        family.free(block[at]);
        block[at] = family.malloc(16 + i % 500);
        EXPECT(block[at] != NULL);
    }
    for (size_t i = 0; i < BLOCKS; ++i) {
        family.free(block[i]);
    }
}

/* Of a child that does so many rounds. */
static size_t count_calls(size_t rounds) {
    size_t stops = 0;
    int status = 0;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(77);
        }
        raise(SIGSTOP);
        load(rounds);
        _exit(0);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        ++stops;
        EXPECT(ptrace(PTRACE_SYSCALL, child, NULL, NULL) == 0);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        expect_skip("processes may not be traced here");
    }
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return stops / 2; /* at its beginning and at its end */
}

static void watched_block_costs_two_system_calls_and_one_for_each_stack(void) {
    load(4 * (size_t)SLOTS);           /* each slot was in use */
    size_t few = count_calls(SETTLED); /* the first walk on a path looks for its unwind rows */
    size_t many = count_calls(SETTLED + ROUNDS);
    expect_say("%zu system calls for %d blocks\n", many - few, ROUNDS);
    EXPECT(many - few >= ROUNDS); /* they are watched */
    EXPECT(many - few <= (size_t)MOST_CALLS * ROUNDS);
}

int main(void) {
    family_load();
    RUN(watched_block_costs_two_system_calls_and_one_for_each_stack);
    return expect_status();
}
