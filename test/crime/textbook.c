/* SPDX-License-Identifier: MIT
 *
 * The errors of textbooks, one per name, as a program makes them that knows nothing of us: with
 * profile debug each is found the first time, every time (textbook_test.py, textbook.tsv). One that
 * goes unnoticed ends with status 3. */
#include "crimes.h"

#include <stdlib.h>
#include <string.h>

static volatile char sink;

static char *filled(size_t bytes) {
    char *block = hide(malloc(bytes));
    memset(block, 'x', bytes);
    return block;
}

CRIME(read_after_free) {
    char *block = filled(40);
    free(block);
    sink = *(volatile char *)block;
}

CRIME(write_after_free) {
    char *block = filled(100);
    free(block);
    *(volatile char *)(block + 99) = 1;
}

CRIME(write_behind_by_one) {
    char *block = filled(24);
    *(volatile char *)(block + 24) = 0;
    free(block);
}

CRIME(write_before_by_one) {
    char *block = filled(24);
    *(volatile char *)(block - 1) = 0;
    free(block);
}

CRIME(double_free) {
    char *block = filled(40);
    free(block);
    free(hide(block));
}

CRIME(read_after_realloc) {
    char *block = filled(40);
    char *grown = hide(realloc(block, 400));
    sink = *(volatile char *)hide(block);
    free(grown);
}

/* A program that has run for a while, and has much. */
static void live(void) {
    for (size_t i = 0; i < 500; i++) {
        filled(16 + i);
    }
    for (size_t i = 0; i < 20000; i++) {
        free(filled(1 + i % 200));
    }
}

CRIME(read_after_free_in_a_program_at_work) {
    live();
    read_after_free();
}

CRIME(write_behind_by_one_in_a_program_at_work) {
    live();
    write_behind_by_one();
}

CRIME(double_free_in_a_program_at_work) {
    live();
    double_free();
}

static void *read_after_free_start(void *unused) {
    read_after_free();
    return unused;
}

CRIME(read_after_free_in_a_thread) {
    in_thread(read_after_free_start, NULL);
}
