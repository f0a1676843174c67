/* SPDX-License-Identifier: MIT
 *
 * The bytes behind the size that was asked for, up to the end of its OS page: they hold a pattern,
 * or zeros. No fault brings memory for them: fresh memory is zero, and only an OS page that holds
 * something else, so is resident, gets the pattern. Either is right at the free, as the pages of a
 * block may have been purged. */
#ifndef HAK_LARGE_CANARY_H
#define HAK_LARGE_CANARY_H

#include "base/words.h"

/* The block has `size` bytes from now on, and what is behind them is not known to be zero. */
void hak_large_canary_set(char *block, size_t size);
/* Fatal if bytes behind its `size` bytes were written to. */
void hak_large_canary_check(const char *block, size_t size);

#endif
