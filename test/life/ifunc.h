/* SPDX-License-Identifier: MIT
 *
 * A resolver that allocates. It runs while the dynamic linker still relocates: no library function
 * but the malloc family is safe there, and not even errno or stack protection may exist yet.
 */
#ifndef HAK_TEST_LIFE_IFUNC_H
#define HAK_TEST_LIFE_IFUNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { IFUNC_BLOCK_COUNT = 40 };

/* Allocates over several size ranges, checks and frees; leaves one block in *kept. */
static inline bool ifunc_allocate(unsigned char **kept) {
    unsigned char *blocks[IFUNC_BLOCK_COUNT];
    bool is_good = true;
    for (size_t i = 0; i < IFUNC_BLOCK_COUNT; ++i) {
        size_t size = (i % 4 == 3 ? 3000 : 17) * (i + 1);
        blocks[i] = i % 3 == 0 ? calloc(1, size) : malloc(size);
        is_good = is_good && blocks[i] != NULL && (i % 3 != 0 || blocks[i][size - 1] == 0);
        if (blocks[i] != NULL) {
            blocks[i][0] = blocks[i][size - 1] = (unsigned char)i;
        }
    }
    for (size_t i = 0; i < IFUNC_BLOCK_COUNT; ++i) {
        is_good = is_good && blocks[i] != NULL && blocks[i][0] == i;
        blocks[i] = realloc(blocks[i], 500);
        is_good = is_good && blocks[i] != NULL && blocks[i][0] == i;
        free(blocks[i]);
    }
    *kept = malloc(100);
    if (*kept != NULL) {
        (*kept)[99] = 0x77;
    }
    return is_good && *kept != NULL;
}

#endif
