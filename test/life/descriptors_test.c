/* SPDX-License-Identifier: MIT
 *
 * Which file descriptors does a process have that opened none? None after start, and none more
 * after heavy use, by threads, in a forked child, also when the standard ones are closed: then
 * their numbers must stay free for the program; but for files of control groups with a limit. The
 * program runs itself with those it names.
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include "thread/block.h"

enum { DESCRIPTORS = 1100, LOW = 232, STANDARD = 3, THREADS = 4, STEPS = 30000, KEPT = 2000 };

/* A file of a control group with a limit, which the library keeps open under a high number. */
static bool is_of_group(int fd) {
    static const char folder[] = "/sys/fs/cgroup/";
    char link[40], path[sizeof folder] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return fd >= LOW && readlink(link, path, sizeof path - 1) > 0 && strcmp(path, folder) == 0;
}

/* Numbers of those that are open, as bits; higher ones count as the highest. */
static uint64_t open_descriptors(void) {
    uint64_t open = 0;
    for (int fd = 0; fd < DESCRIPTORS; ++fd) {
        if (fcntl(fd, F_GETFD) >= 0 && !is_of_group(fd)) {
            open |= 1ull << (fd < 63 ? fd : 63);
        }
    }
    return open;
}

static void *use(void *seed) {
    uint64_t state = (uintptr_t)seed + 1;
    block_t **blocks = family.calloc(KEPT, sizeof *blocks);
    EXPECT(blocks != NULL);
    blocks_churn(blocks, KEPT, STEPS, &state);
    blocks_unmake(blocks, KEPT, &state);
    family.free(blocks);
    unsigned char *block = NULL;
    for (size_t bytes = 1000; bytes < 40u << 20; bytes *= 2) {
        block = family.realloc(block, bytes);
        EXPECT(block != NULL);
        memset(block + bytes / 2, 1, bytes / 2);
    }
    family.free(block);
    family.trim(0);
    return NULL;
}

static void use_by_threads(void) {
    pthread_t threads[THREADS];
    threads_start(threads, THREADS, use, 0);
    threads_join(threads, THREADS);
}

/* In the program that was started with `expected` only. Status 1: others are open at start; 2:
 * after use; 3: in a child after use. */
static int check(uint64_t expected) {
    family_load();
    if (open_descriptors() != expected) {
        return 1;
    }
    use(NULL);
    use_by_threads();
    if (open_descriptors() != expected) {
        return 2;
    }
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        use(NULL);
        _exit(open_descriptors() != expected);
    }
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 3;
}

static void expect_checked(const char *open) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        uint64_t expected = strtoull(open, NULL, 10);
        for (int fd = 0; fd < DESCRIPTORS; ++fd) {
            if (fd >= STANDARD || (expected >> fd & 1) == 0) {
                close(fd);
            }
        }
        execl("/proc/self/exe", "descriptors", open, (char *)NULL);
        _exit(99);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

static void descriptors_are_those_of_the_program(void) {
    expect_checked("7");
}

static void descriptors_without_standard_error_are_those_of_the_program(void) {
    expect_checked("3");
}

static void descriptors_without_any_stay_none(void) {
    expect_checked("0");
}

int main(int argc, char **argv) {
    if (argc > 1) {
        return check(strtoull(argv[1], NULL, 10));
    }
    expect_watchdog();
    for (int fd = 0; fd < STANDARD; ++fd) { /* all there, whatever the test was started with */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) {
            expect_skip("no standard descriptors, and no /dev/null");
        }
    }
    RUN(descriptors_are_those_of_the_program);
    RUN(descriptors_without_standard_error_are_those_of_the_program);
    RUN(descriptors_without_any_stay_none);
    return expect_status();
}
