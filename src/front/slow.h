/* SPDX-License-Identifier: MIT
 *
 * The cold exits of fast.h. Each serves the request, or returns NULL with errno ENOMEM: the hit
 * path leaves by tail call, so api/ cannot set errno. Success and every free leave errno alone. */
#ifndef HAK_FRONT_SLOW_H
#define HAK_FRONT_SLOW_H

#include "base/compiler.h"
#include "front/hooks.h"

/* More than any user address space holds. */
static const size_t HAK_SLOW_MOST_BYTES = (size_t)1 << 47;

/* The bin of the class is empty, or the thread has no tcache. */
HAK_COLD void *hak_slow_malloc(size_t size);
/* size > HAK_SC_SMALL_SIZE; tries the bin first. */
HAK_NOINLINE void *hak_malloc_medium(size_t size);
/* Every free that is not a push (free.c has the table). `index` is the place of the block's entry
 * in the page map. */
HAK_NOINLINE void hak_slow_free(void *block, hak_tcache_t *tcache, uintptr_t index);
/* `size` is not of the block's class, or not small; or the block is NULL. */
HAK_NOINLINE void hak_slow_free_sized(void *block, size_t align, size_t size, uintptr_t index);
/* Fatal as `kind` unless the block, whose entry is not ours, is the underlying allocator's. */
void hak_slow_require_foreign(const void *block, hak_fatal_kind_t kind);

/* Zeroed memory of `size` bytes; a large block that reads as zero is not touched. */
void *hak_slow_calloc(size_t size);
/* `align` is a power of two above HAK_BLOCK_ALIGN. */
void *hak_slow_aligned(size_t align, size_t size);

/* Refills an empty bin and returns a block, perhaps a guarded one; NULL: memory is out. */
HAK_NOINLINE void *hak_slow_refill(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request);

/* realloc for block != NULL, size > 0; NULL leaves the block unchanged. */
void *hak_resize(void *block, size_t size);
extern bool hak_resize_has_kept; /* [atomic] a block could not shrink: memory was out */
/* Bytes the block can hold; NULL gives 0. */
size_t hak_usable_size(const void *block);
/* The usable size a request of `size` bytes would get; 0 above PTRDIFF_MAX. */
size_t hak_good_bytes(size_t size);

#endif
