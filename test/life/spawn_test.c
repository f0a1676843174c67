/* SPDX-License-Identifier: MIT
 *
 * Starting programs while threads allocate: do vfork + exec, posix_spawn, system and popen leave
 * the parent's allocator as it was, and does the child (this program again) allocate?
 */
#include <spawn.h>
#include <sys/wait.h>

#include "thread/block.h"

extern char **environ;

enum { START_COUNT = 60, THREAD_COUNT = 4 };

static atomic_bool stop;
static char self_path[4096];

static void *allocate_until_stopped(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        block_unmake(block_make(&state), &state);
    }
    return NULL;
}

static int child_main(void) {
    uint64_t state = 3;
    for (size_t i = 0; i < 500; ++i) {
        block_unmake(block_make(&state), &state);
    }
    return 7;
}

static void check_exit(pid_t child, int want) {
    int status = -1;
    EXPECT(child > 0);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), want);
}

static void vfork_and_exec_leaves_the_parent_working(void) {
    uint64_t state = 1;
    for (size_t i = 0; i < START_COUNT; ++i) {
        block_t *block = block_make(&state);
        pid_t child = vfork();
        if (child == 0) {
            execl(self_path, self_path, "child", (char *)NULL);
            _exit(1);
        }
        check_exit(child, 7);
        block_unmake(block, &state);
    }
}

/* Not portable, but programs do it: allocate in the vfork child, which shares our memory. */
static void vfork_child_that_allocates_disturbs_nothing(void) {
    for (size_t i = 0; i < START_COUNT; ++i) {
        char *volatile block = NULL;
        pid_t child = vfork();
        if (child == 0) {
            block = family.malloc(1000 + i);
            family.free(family.malloc(50));
            _exit(block == NULL);
        }
        check_exit(child, 0);
        memset(block, 1, 1000 + i);
        family.free(block);
    }
}

static void posix_spawn_starts_programs(void) {
    char *arguments[] = {self_path, "child", NULL};
    for (size_t i = 0; i < START_COUNT; ++i) {
        pid_t child;
        EXPECT_EQ(posix_spawn(&child, self_path, NULL, NULL, arguments, environ), 0);
        check_exit(child, 7);
    }
}

static void system_and_popen_start_shells(void) {
    for (size_t i = 0; i < START_COUNT / 6; ++i) {
        int status = system("exit 5");
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 5);
        FILE *pipe_file = popen("echo words of a shell", "r");
        EXPECT(pipe_file != NULL);
        char *line = NULL;
        size_t capacity = 0;
        EXPECT(getline(&line, &capacity, pipe_file) > 0);
        EXPECT_EQ(strcmp(line, "words of a shell\n"), 0);
        free(line);
        EXPECT_EQ(pclose(pipe_file), 0);
    }
}

int main(int argc, char **argv) {
    family_load();
    if (argc > 1 && strcmp(argv[1], "child") == 0) {
        return child_main();
    }
    expect_watchdog();
    EXPECT(readlink("/proc/self/exe", self_path, sizeof self_path - 1) > 0);
    pthread_t threads[THREAD_COUNT];
    threads_start(threads, THREAD_COUNT, allocate_until_stopped, 0);
    RUN(vfork_and_exec_leaves_the_parent_working);
    RUN(vfork_child_that_allocates_disturbs_nothing);
    RUN(posix_spawn_starts_programs);
    RUN(system_and_popen_start_shells);
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREAD_COUNT; ++i) {
        pthread_join(threads[i], NULL);
    }
    return expect_status();
}
