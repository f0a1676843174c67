/* SPDX-License-Identifier: MIT
 *
 * One user error per name; run preloaded by crime_test.py, which knows what must be said about each
 * (expected.tsv). A crime that goes unnoticed prints so and ends with status 3. */
#include "crimes.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE_BYTES = 300000, HUGE_BYTES = 3 << 20 };

static char static_area[256];
extern void hak_collect_thread(void) __attribute__((weak));

CRIME(free_of_stack) {
    _Alignas(16) char area[256] = {0};
    free(hide(area + 64));
}

CRIME(free_of_static) {
    free(hide(static_area + 64));
}

CRIME(free_of_constant) {
    static const _Alignas(16) char constant[256] = {0};
    free(hide((void *)(uintptr_t)(constant + 64)));
}

static void *unmapped(void) {
    char *base = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(base, 1 << 20);
    return base + (1 << 19);
}

CRIME(free_of_unmapped) {
    free(hide(unmapped()));
}

CRIME(free_of_small_number) {
    free(hide((void *)16));
}

CRIME(free_of_kernel_address) {
    free(hide((void *)0xffff800000001000u));
}

CRIME(free_inside_large_head) {
    free((char *)hide(malloc(LARGE_BYTES)) + 16);
}

CRIME(free_inside_large_body) {
    free((char *)hide(malloc(LARGE_BYTES)) + 2 * 65536);
}

CRIME(free_inside_huge_head) {
    free((char *)hide(malloc(HUGE_BYTES)) + 16);
}

CRIME(free_inside_huge_body) {
    free((char *)hide(calloc(1, HUGE_BYTES)) + (1 << 20));
}

CRIME(realloc_of_static) {
    (void)!realloc(hide(static_area + 64), 100);
}

CRIME(realloc_of_unmapped) {
    (void)!realloc(hide(unmapped()), 100);
}

CRIME(realloc_inside_small) {
    (void)!realloc((char *)hide(malloc(100)) + 16, 200);
}

CRIME(realloc_inside_small_that_fits) {
    (void)!realloc((char *)hide(malloc(100)) + 16, 100);
}

CRIME(realloc_inside_medium_that_fits) {
    (void)!realloc((char *)hide(malloc(20000)) + 4096, 20000);
}

CRIME(realloc_inside_large) {
    (void)!realloc((char *)hide(malloc(LARGE_BYTES)) + 65536, 200);
}

CRIME(realloc_inside_huge) {
    (void)!realloc((char *)hide(malloc(HUGE_BYTES)) + 32, 200);
}

/* More than a bin holds: noticed when the newest leave it. */
CRIME(double_free_of_overflowed) {
    enum { COUNT = 500, TWICE = 400 };
    void *block[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hide(malloc(64));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        free(block[i]);
        if (i == TWICE) {
            free(block[i]);
        }
    }
}

/* The first free was sorted long ago: noticed when the second is, though others are in use. */
CRIME(double_free_of_sorted) {
    enum { COUNT = 900, FREED = 300, TWICE = 200 };
    void *block[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hide(malloc(64));
    }
    for (unsigned i = 0; i < FREED; i++) {
        free(block[i]);
    }
    hak_collect_thread();
    free(block[TWICE]);
    hak_collect_thread();
}

/* Others were freed since: noticed when the list is sorted. */
CRIME(double_free_in_a_list) {
    void *block[10];
    for (unsigned i = 0; i < 10; i++) {
        block[i] = hide(malloc(64));
    }
    for (unsigned i = 0; i < 10; i++) {
        free(block[i]);
    }
    free(block[5]);
    hak_collect_thread();
}

CRIME(double_free_of_large) {
    void *block = hide(malloc(LARGE_BYTES));
    free(block);
    free(block);
}

CRIME(double_free_of_huge) {
    void *block = hide(malloc(HUGE_BYTES));
    free(block);
    free(block);
}

CRIME(realloc_of_freed_large) {
    void *block = hide(malloc(LARGE_BYTES));
    free(block);
    (void)!realloc(block, 2 * LARGE_BYTES);
}

CRIME(sized_free_of_wrong_size) {
    extern void free_sized(void *, size_t) __attribute__((weak));
    free_sized(hide(malloc(64)), 100);
}

/* operator delete with the size of a base class. */
CRIME(delete_as_base_class) {
    extern void _ZdlPvm(void *, size_t) __attribute__((weak));
    _ZdlPvm(hide(malloc(204)), 4);
}

CRIME(write_after_free) {
    uint64_t *a = hide(malloc(64));
    uint64_t *b = hide(malloc(64));
    free(b);
    free(a);
    *(volatile uint64_t *)a = 0x4141414141414141u;
    (void)!hide(malloc(64));
    (void)!hide(malloc(64));
    churn(64); /* it may have been held back */
}

/* --- the last blocks that a process frees: noticed when it ends --------------------------------
 */

enum { LAST = 10 };

static void free_one_of_the_last_twice(void) {
    void *block[LAST];
    for (unsigned i = 0; i < LAST; i++) {
        block[i] = hide(malloc(64));
    }
    for (unsigned i = 0; i < LAST; i++) {
        free(block[i]);
    }
    free(block[LAST / 2]);
}

CRIME(double_free_seen_at_exit) {
    free_one_of_the_last_twice();
    exit(0);
}

/* The parent ends as its child did. */
CRIME(double_free_seen_at_exit_of_child) {
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

CRIME(write_after_free_seen_at_exit) {
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

CRIME(double_free_interleaved_seen_at_exit) {
    void *a;
    interleave(&a);
    exit(0);
}

CRIME(double_free_interleaved_taken_again) {
    void *a;
    interleave(&a);
    for (unsigned i = 0; i < 3; i++) {
        (void)hide(malloc(64));
    }
}
