/* SPDX-License-Identifier: MIT
 *
 * Cold exits of malloc. Each serves the request, or returns NULL with errno ENOMEM: the hit path
 * leaves by tail call, so api/ cannot set errno. Success and every free leave errno alone. */
#ifndef HAK_FRONT_MALLOC_H
#define HAK_FRONT_MALLOC_H

#include "base/compiler.h"
#include "base/words.h"

/* More than any user address space holds. */
static const size_t HAK_SLOW_MOST_BYTES = (size_t)1 << 47;

/* The bin of the class is empty, or the thread has no tcache. */
HAK_COLD void *hak_slow_malloc(size_t size);
/* size > HAK_SC_SMALL_SIZE; tries the bin first. */
HAK_NOINLINE void *hak_malloc_medium(size_t size);
/* Zeroed memory of `size` bytes; a large block that reads as zero is not touched. */
void *hak_slow_calloc(size_t size);
/* `align` is a power of two above HAK_BLOCK_ALIGN. */
void *hak_slow_aligned(size_t align, size_t size);

#endif
