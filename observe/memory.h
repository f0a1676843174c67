/* SPDX-License-Identifier: MIT
 *
 * The observer's own memory. Of the program it is malloc's (memory_program.c). Of the library,
 * which looks at the process that it is in, it is none of malloc's (memory_library.c): the heap
 * does not change because it is looked at. One thread at a time. */
#ifndef OBS_MEMORY_H
#define OBS_MEMORY_H

#include <stddef.h>

/* All zero. NULL: there is none. */
void *obs_take(size_t bytes);
/* As realloc; what is added may hold anything. NULL: there is none, and the block stays. */
void *obs_grow(void *block, size_t bytes);
void obs_drop(void *block);
/* Heap sort: qsort of some C libraries takes memory. */
void obs_sort(void *base, size_t count, size_t bytes, int (*compare)(const void *, const void *));

#endif
