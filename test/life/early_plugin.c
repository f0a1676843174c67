/* SPDX-License-Identifier: MIT
 *
 * One of two libraries that allocate before main (EARLY_NAME differs): in a constructor of priority
 * 101 and in a plain one; frees in destructors. early_test.c looks at what it left.
 */
#include <stdlib.h>
#include <string.h>

#define JOIN_WORDS(a, b) a##b
#define JOIN(a, b) JOIN_WORDS(a, b)
#define EARLY_BLOCK JOIN(early_block_, EARLY_NAME)

extern unsigned char *EARLY_BLOCK;
unsigned char *EARLY_BLOCK;

static unsigned char *first_block;

__attribute__((constructor(101))) static void open_first(void) {
    first_block = malloc(200);
    if (first_block != NULL) {
        memset(first_block, 0x33, 200);
    }
}

__attribute__((constructor)) static void open_second(void) {
    EARLY_BLOCK = realloc(first_block, 70000);
    free(calloc(100, 100));
}

__attribute__((destructor(101))) static void close_last(void) {
    free(malloc(400));
    if (EARLY_BLOCK == NULL || EARLY_BLOCK[199] != 0x33) {
        abort();
    }
    free(EARLY_BLOCK);
}
