/* SPDX-License-Identifier: MIT
 *
 * Crimes with the size of a block: of what is none, and of freed ones. */
#include "crimes.h"

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

extern void freezero(void *, size_t) __attribute__((weak));
enum { LARGE_BYTES = 300000, HUGE_BYTES = 3 << 20 };

void usable_size_of_stack(void) {
    _Alignas(16) char area[256] = {0};
    (void)!malloc_usable_size(hide(area + 64));
}

void usable_size_inside_small(void) {
    (void)!malloc_usable_size((char *)hide(malloc(100)) + 8);
}

void usable_size_inside_large(void) {
    (void)!malloc_usable_size((char *)hide(malloc(LARGE_BYTES)) + 65536);
}

void usable_size_of_freed_small(void) {
    void *block = hide(malloc(100));
    free(block);
    (void)!malloc_usable_size(block);
}

/* It is marked in the bitmap of its slab, which others keep. */
void usable_size_of_sorted(void) {
    extern void hak_collect_thread(void) __attribute__((weak));
    void *block[10];
    for (unsigned i = 0; i < 10; i++) {
        block[i] = hide(malloc(64));
    }
    free(block[5]);
    hak_collect_thread();
    (void)!malloc_usable_size(block[5]);
}

void usable_size_of_freed_medium(void) {
    void *block[3] = {hide(malloc(20000)), hide(malloc(20000)), hide(malloc(20000))};
    free(block[1]);
    free(block[2]);
    (void)!malloc_usable_size(block[1]);
}

void usable_size_of_freed_by_another_thread(void) {
    void *block = hide(malloc(100));
    free_in_thread(block);
    (void)!malloc_usable_size(block);
}

void usable_size_of_freed_large(void) {
    void *block = hide(malloc(LARGE_BYTES));
    free(block);
    (void)!malloc_usable_size(block);
}

void usable_size_of_freed_huge(void) {
    void *block = hide(malloc(HUGE_BYTES));
    free(block);
    (void)!malloc_usable_size(block);
}

void freezero_of_freed_small(void) {
    void *block = hide(malloc(100));
    free(block);
    freezero(block, 100);
}

void freezero_of_more_than_the_block(void) {
    freezero(hide(malloc(64)), 1000);
}

void freezero_of_more_than_the_large_block(void) {
    freezero(hide(malloc(LARGE_BYTES)), 10 * LARGE_BYTES);
}

void recallocarray_of_more_than_the_block(void) {
    extern void *recallocarray(void *, size_t, size_t, size_t) __attribute__((weak));
    hide(recallocarray(hide(malloc(64)), 1000, 10, 1));
}
