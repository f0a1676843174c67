/* SPDX-License-Identifier: MIT
 *
 * The numbers of arenas and of caches that a program made; private to this folder. */
#ifndef HAK_COMPAT_NUMBERS_H
#define HAK_COMPAT_NUMBERS_H

#include "base/atomics.h"
#include "base/words.h"

uint32_t hak_compat_arenas(void); /* how many there are */
/* Whether an arena has that number; in names one more stands for all, as does 4096. */
bool hak_compat_is_arena(size_t arena);
bool hak_compat_is_arena_name(size_t arena);
/* The arena that has all blocks, or all arenas. */
bool hak_compat_is_heap(size_t arena);
int hak_compat_arena_create(uint64_t *value);
bool hak_compat_is_tcache(unsigned tcache); /* of tcache.create */
int hak_compat_tcache_create(uint64_t *value);
void hak_compat_tcache_end(unsigned tcache);

#endif
