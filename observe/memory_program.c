/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdlib.h>

void *obs_take(size_t bytes) {
    return calloc(1, bytes);
}

void *obs_grow(void *block, size_t bytes) {
    return realloc(block, bytes);
}

void obs_drop(void *block) {
    free(block);
}
