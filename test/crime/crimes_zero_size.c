/* SPDX-License-Identifier: MIT
 *
 * Crimes with blocks of size 0, which can neither be read nor written. */
#include "crimes.h"

#include <malloc.h>
#include <stdlib.h>

static volatile char sink;

void read_of_zero_size(void) {
    sink = *(volatile char *)hide(malloc(0));
}

void write_to_zero_size(void) {
    *(volatile char *)hide(malloc(0)) = 1;
}

void write_to_zero_size_of_calloc(void) {
    *(volatile char *)hide(calloc(0, 8)) = 1;
}

void write_to_zero_size_of_realloc(void) {
    *(volatile char *)hide(realloc(hide(NULL), 0)) = 1;
}

void write_to_zero_size_of_memalign(void) {
    *(volatile char *)hide(memalign(256, 0)) = 1;
}

void write_to_zero_size_of_new(void) {
    extern void *_Znam(size_t) __attribute__((weak));
    *(volatile char *)hide(_Znam(0)) = 1;
}

void overflow_of_zero_size(void) {
    *(volatile char *)((char *)hide(malloc(0)) + 100) = 1;
}

void double_free_of_zero_size(void) {
    void *block = hide(malloc(0));
    free(block);
    free(block);
}

void double_free_of_old_zero_size(void) {
    void *block = hide(malloc(0));
    free(block);
    churn(0);
    free_in_thread(block);
}

void free_inside_zero_size(void) {
    free((char *)hide(malloc(0)) + 8);
}

void realloc_of_freed_zero_size(void) {
    void *block = hide(malloc(0));
    free(block);
    (void)!realloc(block, 100);
}

void usable_size_of_freed_zero_size(void) {
    void *block = hide(malloc(0));
    free(block);
    (void)!malloc_usable_size(block);
}

void sized_free_of_zero_size(void) {
    extern void free_sized(void *, size_t) __attribute__((weak));
    free_sized(hide(malloc(0)), 1);
}
