/* SPDX-License-Identifier: MIT
 *
 * The first foreign block of a process is freed by the child of a fork, while in the parent a
 * thread stood in a walk over the objects of the process, as of one that throws or records a stack:
 * the lock of that walk is held in the child for good.
 */
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/expect.h"

extern void *__libc_malloc(size_t) __attribute__((weak));

static atomic_bool is_walking, is_over;

static int stay(struct dl_phdr_info *info, size_t bytes, void *context) {
    (void)info, (void)bytes, (void)context;
    atomic_store(&is_walking, true);
    while (!atomic_load(&is_over)) {
        usleep(1000);
    }
    return 1;
}

static void *walk(void *unused) {
    dl_iterate_phdr(stay, NULL);
    return unused;
}

static void forked_child_frees_foreign_blocks_while_a_thread_walks_objects(void) {
    if (__libc_malloc == NULL) {
        expect_skip("the C library's own malloc has no other name");
    }
    void *block = __libc_malloc(40);
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, walk, NULL), 0);
    while (!atomic_load(&is_walking)) {
        usleep(1000);
    }
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        expect_watchdog();
        free(block);
        _exit(0);
    }
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    atomic_store(&is_over, true);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(status, 0);
    free(block);
}

int main(void) {
    RUN(forked_child_frees_foreign_blocks_while_a_thread_walks_objects);
    return expect_status();
}
