/* SPDX-License-Identifier: MIT
 *
 * Blocks of the underlying allocator; os/libc.h has the functions that allocate from it. */
#ifndef HAK_FRONT_UNDERLYING_H
#define HAK_FRONT_UNDERLYING_H

#include "base/words.h"

bool hak_underlying_owns(const void *block);
bool hak_underlying_free(void *block); /* false: it is nobody's, and force_libc is off */
/* These two take a block that has an owner. */
void *hak_underlying_realloc(void *block, size_t bytes);
size_t hak_underlying_usable_size(void *block);

#endif
