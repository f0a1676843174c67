/* SPDX-License-Identifier: MIT
 *
 * Crimes that memory tags find when they are committed: any access to a freed block, by the address
 * of an earlier use, and across the end of a block. A program of its own, for crime_test.py with
 * tags.tsv. */
#include "crimes.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static volatile char sink;

static void read_at(const char *block, ptrdiff_t at) {
    sink = *(const volatile char *)(block + at);
}

static char *freed(size_t bytes) {
    char *block = hide(malloc(bytes));
    free(block);
    return hide(block);
}

static uintptr_t place(const char *block) {
    return (uintptr_t)block << 8; /* without a tag */
}

/* Its place is another block's now, the same bytes of it. */
static char *reused(size_t bytes) {
    char *block = freed(bytes), *other = hide(malloc(bytes));
    while (place(other) != place(block)) {
        free(other);
        other = hide(malloc(bytes));
    }
    memset(other, 0, bytes);
    return block;
}

CRIME(read_of_freed) {
    read_at(freed(100), 60);
}

CRIME(read_of_freed_medium_in_the_middle) {
    read_at(freed(20000), 9999);
}

CRIME(read_of_freed_by_the_c_library) {
    sink = (char)strlen(freed(100));
}

CRIME(read_of_zeroed_and_freed) {
    char *block = hide(calloc(10, 100));
    free(block);
    read_at(hide(block), 999);
}

CRIME(read_of_aligned_and_freed) {
    char *block = hide(aligned_alloc(1024, 5120));
    free(block);
    read_at(hide(block), 0);
}

CRIME(read_of_what_realloc_moved) {
    char *block = hide(malloc(100));
    (void)!hide(realloc(block, 5000));
    read_at(hide(block), 0);
}

static void *read_there(void *block) {
    read_at(block, 0);
    return NULL;
}

CRIME(read_of_freed_by_another_thread) {
    in_thread(read_there, freed(100));
}

CRIME(read_of_reused) {
    read_at(reused(100), 0);
}

CRIME(free_of_reused) {
    free(reused(100));
}

CRIME(realloc_of_reused) {
    (void)!hide(realloc(reused(100), 5000));
}

CRIME(usable_size_of_freed) {
    sink = (char)malloc_usable_size(freed(100));
}

CRIME(read_behind_small) {
    char *block = hide(malloc(100));
    read_at(block, (ptrdiff_t)malloc_usable_size(block) + 8);
}

CRIME(read_behind_medium) {
    char *block = hide(malloc(20000));
    read_at(block, (ptrdiff_t)malloc_usable_size(block) + 8);
}

/* Not of the first of a superslab: nothing is accessible before it. */
CRIME(read_before_small) {
    char *a = hide(malloc(100)), *b = hide(malloc(100));
    read_at(place(a) > place(b) ? a : b, -1);
    free(a);
}

CRIME(copy_across_the_end) {
    char *block = hide(malloc(100)), *from = hide(malloc(200));
    memset(from, 1, 200);
    memcpy(block, from, 200);
    read_at(block, 0);
}
