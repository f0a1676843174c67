/* SPDX-License-Identifier: MIT
 * start_up COUNT [PROGRAM]
 *
 * Measures: what an allocator adds to the start and the end of a process. COUNT times a program is
 * started with the environment of this one (so on the same preloaded library) and waited for:
 * PROGRAM, found in PATH and run without arguments, or this program itself, which then does one
 * malloc, one free and exits. CPU time and page faults contain those of the programs started, and
 * with them the kernel's and the dynamic linker's share, which all allocators have in common.
 * Known from: shell scripts, compilers and build systems, which live on short processes.
 * Does not measure: work of any length, threads.
 * One operation is one process. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static char child_word[] = "child";

static int child(void) {
    enum { SIZE = 100 };
    unsigned char *volatile block = malloc(SIZE);
    if (block == NULL) {
        return 1;
    }
    memset(block, 1, SIZE);
    int status = block[SIZE - 1] == 1 ? 0 : 1;
    free(block);
    return status;
}

/* What the program prints must not get between our lines. */
static void silence(posix_spawn_file_actions_t *actions) {
    if (posix_spawn_file_actions_init(actions) != 0 ||
        posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0) != 0) {
        bench_fail("cannot prepare a process");
    }
}

/* Starts COUNT processes one after another; returns how many ended well: all, or the program ends
 * here. */
static uint64_t start_all(uint64_t count, const char *path, char **arguments,
                          const posix_spawn_file_actions_t *actions) {
    for (uint64_t i = 0; i < count; i++) {
        pid_t pid;
        int status = 0;
        int error = posix_spawnp(&pid, path, actions, NULL, arguments, environ);
        if (error != 0) {
            bench_fail("cannot start %s: %s", path, strerror(error));
        }
        while (waitpid(pid, &status, 0) < 0) {
            if (errno != EINTR) {
                bench_fail("cannot wait for %s: %s", path, strerror(errno));
            }
        }
        if (WIFSIGNALED(status)) {
            bench_fail("%s ended by signal %d", path, WTERMSIG(status));
        }
        if (WEXITSTATUS(status) != 0) {
            bench_fail("%s ended with status %d", path, WEXITSTATUS(status));
        }
    }
    return count;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], child_word) == 0) {
        return child();
    }
    bench_init(argc, argv, "COUNT [PROGRAM]");
    uint64_t count = bench_arg(1, 500, 1, UINT32_MAX, "COUNT");
    bool itself = argc < 3;
    const char *own_path = strchr(argv[0], '/') != NULL ? argv[0] : "/proc/self/exe";
    const char *path = itself ? own_path : argv[2];
    char *arguments[] = {itself ? argv[0] : argv[2], itself ? child_word : NULL, NULL};
    posix_spawn_file_actions_t actions;
    silence(&actions);

    uint64_t sum = start_all(1 + count / 10, path, arguments, &actions);
    bench_start();
    sum += start_all(count, path, arguments, &actions);
    bench_stop(count);

    posix_spawn_file_actions_destroy(&actions);
    return bench_finish(sum);
}
