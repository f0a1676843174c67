/* SPDX-License-Identifier: MIT
 *
 * Preloaded into real programs by stack_count_test.py: walks the stack in one of STACK_COUNT_EVERY
 * calls of malloc. At the end of a process it writes how many walks there were, and how many of
 * them met the start of the thread, into the file STACK_COUNT. */
#include "base/atomics.h"
#include "stack/row.h"
#include "stack/stack.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 2048 };

static unsigned calls, every;
static unsigned long walks, whole, frames, full, nanoseconds;

__attribute__((constructor)) static void count_begin(void) {
    const char *text = getenv("STACK_COUNT_EVERY");
    every = text != NULL ? (unsigned)atoi(text) : 0;
}

static unsigned long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long)time.tv_sec * 1000000000 + (unsigned long)time.tv_nsec;
}

__attribute__((noinline)) static void count_walk(void) {
    static _Thread_local uintptr_t found[MOST];
    unsigned long begin = now();
    unsigned count = hak_stack_walk(found, MOST);
    hak_add_relaxed(&nanoseconds, now() - begin);
    hak_add_relaxed(&walks, 1);
    hak_add_relaxed(&frames, count);
    if (count == MOST) {
        hak_add_relaxed(&full, 1);
    } else if (count > 0 && hak_row_find(found[count - 1] - 1, true).kind == HAK_ROW_END) {
        hak_add_relaxed(&whole, 1);
    }
}

__attribute__((visibility("default"))) void *malloc(size_t bytes) {
    if (every != 0 && hak_add_relaxed(&calls, 1) % every == 0) {
        count_walk();
    }
    static void *(*next)(size_t);
    if (next == NULL) {
        next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    }
    return next(bytes);
}

__attribute__((destructor)) static void count_end(void) {
    char line[160];
    const char *path = getenv("STACK_COUNT");
    int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    int length = snprintf(line, sizeof line, "%lu %lu %lu %lu %lu\n", walks, whole, full, frames,
                          nanoseconds);
    if (file >= 0 && write(file, line, (size_t)length) != length) {
        _exit(3);
    }
}
