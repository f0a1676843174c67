/* SPDX-License-Identifier: MIT
 *
 * Crimes with the last blocks that a process frees: noticed when it ends. */
#include "crimes.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 10 };

static void free_one_twice(void) {
    void *block[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hide(malloc(64));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        free(block[i]);
    }
    free(block[COUNT / 2]);
}

void double_free_seen_at_exit(void) {
    free_one_twice();
    exit(0);
}

/* The parent ends as its child did. */
void double_free_seen_at_exit_of_child(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        double_free_seen_at_exit();
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        raise(WTERMSIG(status));
    }
}

void write_after_free_seen_at_exit(void) {
    uint64_t *a = hide(malloc(64)), *b = hide(malloc(64));
    free(b);
    free(a);
    *(volatile uint64_t *)a = 0x4141414141414141u;
    exit(0);
}

/* a, b, a: the newest of the list is always another. */
static void interleave(void **a) {
    *a = hide(malloc(64));
    void *b = hide(malloc(64));
    free(*a);
    free(b);
    free(*a);
}

void double_free_interleaved_seen_at_exit(void) {
    void *a;
    interleave(&a);
    exit(0);
}

void double_free_interleaved_taken_again(void) {
    void *a;
    interleave(&a);
    for (unsigned i = 0; i < 3; i++) {
        (void)hide(malloc(64));
    }
}
