/* SPDX-License-Identifier: MIT
 *
 * User errors with blocks that the sampled guard watches, one per name; run preloaded, with
 * guard_rate:1, by guard_test.py, which knows what must be said about each (guard.tsv). A crime
 * that goes unnoticed prints so and ends with status 3. */
#include "crimes.h"

#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_readable(const char *at) {
    int ends[2];
    char byte;
    if (pipe(ends) != 0) {
        abort();
    }
    bool is_done = write(ends[1], at, 1) == 1 && read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return is_done;
}

typedef enum end { LEFT, RIGHT } end_t;

static void *zeroed(size_t bytes) {
    return calloc(1, bytes);
}

static void *aligned(size_t bytes) {
    return aligned_alloc(64, bytes);
}

static void *grown(size_t bytes) {
    return realloc(NULL, bytes);
}

/* A watched block at that end of its OS page. The others stay allocated. */
static char *guarded_from(void *(*allocate)(size_t bytes), size_t bytes, end_t end) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < 1000000; i++) {
        char *block = hide(allocate(bytes));
        char *left = (char *)((uintptr_t)block & ~(page - 1)), *right = left + page;
        bool is_at_end = end == LEFT ? block == left : (size_t)(right - block) < bytes + 16;
        if (is_at_end && !is_readable(left - 1) && !is_readable(right)) {
            memset(block, 'x', bytes);
            return block;
        }
    }
    puts("no block is watched");
    exit(4);
}

static char *guarded(size_t bytes, end_t end) {
    return guarded_from(malloc, bytes, end);
}

static volatile char sink;

CRIME(read_after_free) {
    char *block = guarded(24, RIGHT);
    free(block);
    sink = *(volatile char *)(block + 3);
}

CRIME(write_after_free) {
    char *block = guarded(100, LEFT);
    free(block);
    *(volatile char *)(block + 99) = 1;
}

static void read_after_free_of(void *(*allocate)(size_t bytes)) {
    char *block = guarded_from(allocate, 128, RIGHT);
    free(block);
    sink = *(volatile char *)(block + 1);
}

CRIME(read_after_free_of_zeroed) {
    read_after_free_of(zeroed);
}

CRIME(read_after_free_of_aligned) {
    read_after_free_of(aligned);
}

CRIME(read_after_free_of_grown) {
    read_after_free_of(grown);
}

CRIME(use_after_free_by_another_thread) {
    char *block = guarded(64, RIGHT);
    free_in_thread(block);
    sink = *(volatile char *)block;
}

CRIME(read_behind) {
    sink = *(volatile char *)(guarded(32, RIGHT) + 32);
}

CRIME(write_far_behind) {
    *(volatile char *)(guarded(48, RIGHT) + 48 + 1000) = 1;
}

CRIME(write_before) {
    *(volatile char *)(guarded(40, LEFT) - 1) = 1;
}

static void write_and_free(char *block, ptrdiff_t at, char value) {
    *(volatile char *)(block + at) = value;
    free(block);
}

CRIME(write_into_slack) {
    write_and_free(guarded(24, RIGHT), 24, 0);
}

CRIME(write_behind_on_the_left) {
    write_and_free(guarded(200, LEFT), 203, 0);
}

CRIME(write_before_on_the_right) {
    write_and_free(guarded(32, RIGHT), -2, 'y');
}

CRIME(free_twice) {
    char *block = guarded(32, RIGHT);
    free(block);
    free(hide(block));
}

CRIME(free_twice_by_another_thread) {
    char *block = guarded(32, RIGHT);
    free_in_thread(block);
    free(hide(block));
}

CRIME(free_inside) {
    free(guarded(160, LEFT) + 16);
}

CRIME(free_inside_freed) {
    char *block = guarded(160, LEFT);
    free(block);
    free(hide(block + 16));
}

CRIME(free_of_guard) {
    free(guarded(32, RIGHT) + 64);
}

CRIME(realloc_of_freed) {
    char *block = guarded(32, RIGHT);
    free(block);
    (void)!hide(realloc(hide(block), 64));
}

CRIME(usable_size_of_freed) {
    char *block = guarded(32, RIGHT);
    free(block);
    sink = (char)malloc_usable_size(hide(block));
}

CRIME(free_of_stack_with_backtrace) {
    _Alignas(16) char area[256] = {0};
    free(hide(area + 64));
}

/* Registers that the library saves point into the stack, as frame pointers do. */
CRIME(free_inside_with_backtrace) {
    _Alignas(16) char area[256] = {0};
    char *low = hide(area), *middle = hide(area + 64), *high = hide(area + 128);
    char *top = hide(area + 192), *block = malloc(100);
    free(hide(block + 16));
    sink = (char)(*low + *middle + *high + *top + *block);
}
