/* SPDX-License-Identifier: MIT
 *
 * Blocks of size 0: addresses, 16 bytes apart, of a region that can neither be read nor written. A
 * bit in metadata says whether one is in use. No lock but to make a region; no state of threads.
 *
 * The table of bin offsets has HAK_KIND_ZERO_SIZE for size 0, the offset of a word of the tcache
 * that is always 0: the hit path finds an empty bin there, and leaves by its cold exit. */
#ifndef HAK_FRONT_ZERO_SIZE_H
#define HAK_FRONT_ZERO_SIZE_H

#include "front/tcache.h"

/* A place at a multiple of `align` (a power of two), the freed longest ago first, nearly. NULL:
 * none; a block of the smallest class will do. Any thread. */
HAK_COLD void *hak_zero_size_alloc(size_t align);
/* Frees a block whose entry is HAK_KIND_ZERO_SIZE; fatal unless it is in use. Any thread. */
HAK_COLD void hak_zero_size_free(const void *block, uint32_t entry);
/* Fatal as `kind` unless such a block is in use. */
HAK_COLD void hak_zero_size_check(const void *block, uint32_t entry, hak_fatal_kind_t kind);

#endif
