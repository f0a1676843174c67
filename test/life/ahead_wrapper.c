/* SPDX-License-Identifier: MIT
 *
 * Malloc's family in the program (ahead_test.c), by the functions that come after it. */
#include <dlfcn.h>
#include <stddef.h>

#define NEXT(name)                                                                                 \
    static __typeof__(name) *next;                                                                 \
    if (next == NULL) {                                                                            \
        *(void **)&next = dlsym(RTLD_NEXT, #name);                                                 \
    }

void *malloc(size_t size) {
    NEXT(malloc)
    return next(size);
}

void *calloc(size_t count, size_t size) {
    NEXT(calloc)
    return next(count, size);
}

void *realloc(void *block, size_t size) {
    NEXT(realloc)
    return next(block, size);
}

void free(void *block) {
    NEXT(free)
    next(block);
}

size_t malloc_usable_size(void *block) {
    NEXT(malloc_usable_size)
    return next(block);
}
