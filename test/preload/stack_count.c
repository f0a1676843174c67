/* SPDX-License-Identifier: MIT
 *
 * Preloaded into real programs by stack_count_test.py: walks the stack in one of EVERY calls of
 * malloc. At the end of a process it writes how many walks there were, how many of them met the
 * start of the thread, and how many were too deep, into the file STACK_COUNT. */
#include "base/atomics.h"
#include "stack/row.h"
#include "stack/stack.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 2048, EVERY = 7 };

static bool is_ready;
static unsigned calls;
static unsigned long walks, whole, full;

__attribute__((constructor)) static void count_begin(void) {
    is_ready = true;
}

__attribute__((noinline)) static void count_walk(void) {
    static _Thread_local uintptr_t found[MOST];
    unsigned count = hak_stack_walk(found, MOST);
    hak_add_relaxed(&walks, 1);
    if (count == MOST) {
        hak_add_relaxed(&full, 1);
    } else if (count > 0 &&
               hak_row_find(found[count - 1] - 1, true, &(uint32_t){HAK_ROW_BYTES}).kind ==
                   HAK_ROW_END) {
        hak_add_relaxed(&whole, 1);
    }
}

__attribute__((visibility("default"))) void *malloc(size_t bytes) {
    if (is_ready && hak_add_relaxed(&calls, 1) % EVERY == 0) {
        count_walk();
    }
    static void *(*next)(size_t);
    if (next == NULL) {
        next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    }
    return next(bytes);
}

__attribute__((destructor)) static void count_end(void) {
    char line[80];
    const char *path = getenv("STACK_COUNT");
    int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    int length = snprintf(line, sizeof line, "%lu %lu %lu\n", walks, whole, full);
    if (file >= 0 && write(file, line, (size_t)length) != length) {
        _exit(3);
    }
}
