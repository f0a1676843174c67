/* SPDX-License-Identifier: MIT
 *
 * Crimes with the size of a block, of what is none and of freed ones; and with blocks of size 0,
 * which can neither be read nor written. */
#include "crimes.h"

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

extern void freezero(void *, size_t) __attribute__((weak));
enum { LARGE_BYTES = 300000, HUGE_BYTES = 3 << 20 };

CRIME(usable_size_of_stack) {
    _Alignas(16) char area[256] = {0};
    (void)!malloc_usable_size(hide(area + 64));
}

CRIME(usable_size_inside_small) {
    (void)!malloc_usable_size((char *)hide(malloc(100)) + 8);
}

CRIME(usable_size_inside_large) {
    (void)!malloc_usable_size((char *)hide(malloc(LARGE_BYTES)) + 65536);
}

CRIME(usable_size_of_freed_small) {
    void *block = hide(malloc(100));
    free(block);
    (void)!malloc_usable_size(block);
}

/* It is marked in the bitmap of its slab, which others keep. */
CRIME(usable_size_of_sorted) {
    extern void hak_collect_thread(void) __attribute__((weak));
    void *block[10];
    for (unsigned i = 0; i < 10; i++) {
        block[i] = hide(malloc(64));
    }
    free(block[5]);
    hak_collect_thread();
    (void)!malloc_usable_size(block[5]);
}

CRIME(usable_size_of_freed_medium) {
    void *block[3] = {hide(malloc(20000)), hide(malloc(20000)), hide(malloc(20000))};
    free(block[1]);
    free(block[2]);
    (void)!malloc_usable_size(block[1]);
}

CRIME(usable_size_of_freed_by_another_thread) {
    void *block = hide(malloc(100));
    free_in_thread(block);
    (void)!malloc_usable_size(block);
}

CRIME(usable_size_of_freed_large) {
    void *block = hide(malloc(LARGE_BYTES));
    free(block);
    (void)!malloc_usable_size(block);
}

CRIME(usable_size_of_freed_huge) {
    void *block = hide(malloc(HUGE_BYTES));
    free(block);
    (void)!malloc_usable_size(block);
}

CRIME(freezero_of_freed_small) {
    void *block = hide(malloc(100));
    free(block);
    freezero(block, 100);
}

CRIME(freezero_of_more_than_the_block) {
    freezero(hide(malloc(64)), 1000);
}

CRIME(freezero_of_more_than_the_large_block) {
    freezero(hide(malloc(LARGE_BYTES)), 10 * LARGE_BYTES);
}

CRIME(recallocarray_of_more_than_the_block) {
    extern void *recallocarray(void *, size_t, size_t, size_t) __attribute__((weak));
    hide(recallocarray(hide(malloc(64)), 1000, 10, 1));
}

/* --- size 0 ------------------------------------------------------------------------------------
 */

static volatile char sink;

CRIME(read_of_zero_size) {
    sink = *(volatile char *)hide(malloc(0));
}

CRIME(write_to_zero_size) {
    *(volatile char *)hide(malloc(0)) = 1;
}

CRIME(write_to_zero_size_of_calloc) {
    *(volatile char *)hide(calloc(0, 8)) = 1;
}

CRIME(write_to_zero_size_of_realloc) {
    *(volatile char *)hide(realloc(hide(NULL), 0)) = 1;
}

CRIME(write_to_zero_size_of_memalign) {
    *(volatile char *)hide(memalign(256, 0)) = 1;
}

CRIME(write_to_zero_size_of_new) {
    extern void *_Znam(size_t) __attribute__((weak));
    *(volatile char *)hide(_Znam(0)) = 1;
}

CRIME(overflow_of_zero_size) {
    *(volatile char *)((char *)hide(malloc(0)) + 100) = 1;
}

CRIME(double_free_of_zero_size) {
    void *block = hide(malloc(0));
    free(block);
    free(block);
}

CRIME(double_free_of_old_zero_size) {
    void *block = hide(malloc(0));
    free(block);
    churn(0);
    free_in_thread(block);
}

CRIME(free_inside_zero_size) {
    free((char *)hide(malloc(0)) + 8);
}

CRIME(realloc_of_freed_zero_size) {
    void *block = hide(malloc(0));
    free(block);
    (void)!realloc(block, 100);
}

CRIME(usable_size_of_freed_zero_size) {
    void *block = hide(malloc(0));
    free(block);
    (void)!malloc_usable_size(block);
}

CRIME(sized_free_of_zero_size) {
    extern void free_sized(void *, size_t) __attribute__((weak));
    free_sized(hide(malloc(0)), 1);
}
