/* SPDX-License-Identifier: MIT
 *
 * Cold exits of free. */
#ifndef HAK_FRONT_FREE_H
#define HAK_FRONT_FREE_H

#include "front/hooks.h"

/* Every free that is not a push (free.c has the table). `index` is the place of the block's entry
 * in the page map. */
HAK_NOINLINE void hak_slow_free(void *block, hak_tcache_t *tcache, uintptr_t index);
/* `size` is not of the block's class, or not small; or the block is NULL. */
HAK_NOINLINE void hak_slow_free_sized(void *block, size_t align, size_t size, uintptr_t index);
/* Fatal as `kind` unless the block, whose entry is not ours, is the underlying allocator's. */
void hak_slow_require_foreign(const void *block, hak_fatal_kind_t kind);
/* Fatal as `kind` if a block of a slab that is freed, or asked for its size, is free already. */
void hak_slow_require_used(const void *block, uint32_t entry, hak_fatal_kind_t kind);

#endif
