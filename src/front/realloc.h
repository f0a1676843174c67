/* SPDX-License-Identifier: MIT
 *
 * realloc and usable sizes. */
#ifndef HAK_FRONT_REALLOC_H
#define HAK_FRONT_REALLOC_H

#include "base/words.h"

/* realloc for block != NULL, size > 0; NULL leaves the block unchanged. */
void *hak_resize(void *block, size_t size);
extern bool hak_resize_has_kept; /* [atomic] a block could not shrink: memory was out */
/* Bytes the block can hold; NULL gives 0. */
size_t hak_usable_size(const void *block);
/* The usable size a request of `size` bytes would get; 0 above PTRDIFF_MAX. */
size_t hak_good_bytes(size_t size);

#endif
