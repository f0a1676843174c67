/* SPDX-License-Identifier: MIT
 *
 * The cold exits of fast.h. Each serves the request completely, or returns NULL with errno ENOMEM:
 * the hit path leaves by tail call, so api/ has no chance to set errno after it. On success, and in
 * every free, errno is left alone. */
#ifndef HAK_FRONT_SLOW_H
#define HAK_FRONT_SLOW_H

#include "base/compiler.h"
#include "base/words.h"
#include "span/pagemap.h"

/* More than any user address space holds. */
static const size_t HAK_SLOW_MOST_BYTES = (size_t)1 << 47;

/* The bin of the class was empty, or the thread has no tcache. */
HAK_COLD void *hak_slow_malloc(size_t size);
/* size > HAK_SC_SMALL_SIZE: hits bins, too. */
HAK_NOINLINE void *hak_slow_malloc_medium(size_t size);
/* Not our own block, bin full, NULL, large, foreign, no tcache. */
HAK_NOINLINE void hak_slow_free(void *block);
/* An own block, or an address in a slab that looks as if it were none, or were free already. */
HAK_NOINLINE void hak_slow_free_suspect(void *block);
/* Not a block of this tcache; `difference` is that of its entry (TCACHE-6), `index` where the page
 * map has it: what hak_fast_free has in registers. */
HAK_NOINLINE void hak_slow_free_foreign(void *block, hak_tcache_t *tcache, int64_t difference,
                                        uintptr_t index);

/* A size that is not that of the block's class, or is not small; NULL, too. */
HAK_NOINLINE void hak_slow_free_sized(void *block, size_t align, size_t size);

/* Zeroed memory of `size` bytes; a large block that is known to be zero is not touched. */
void *hak_slow_calloc(size_t size);
/* `align` is a power of two above HAK_BLOCK_ALIGN. */
void *hak_slow_aligned(size_t align, size_t size);

/* The first block of a bin that was empty, or a guarded one; NULL: memory is out. */
HAK_NOINLINE void *hak_slow_refill(hak_tcache_t *tcache, unsigned sc, const hak_request_t *request);
/* If more is in use than ever: what can be spared goes (span/purge.c). */
void hak_slow_spare(void);
/* Memory is out: what may help is done, and true says to try again; attempts count from 0. */
HAK_COLD bool hak_slow_retry(hak_tcache_t *tcache, unsigned attempt);

/* Hardened builds, quarantine.c: all of free for a block of a slab, and whatever may be none. */
HAK_NOINLINE void hak_quarantine_free(void *block);

/* Whether the address lies in memory of ours; asked about addresses that are no block. */
bool hak_slow_is_inside(const void *address);

/* realloc for block != NULL, size > 0; NULL leaves the block as it was. */
void *hak_resize(void *block, size_t size);
extern bool hak_resize_has_kept; /* [atomic] a block that was to shrink stayed: no memory */
/* Bytes the block can hold; NULL gives 0. */
size_t hak_usable_size(const void *block);
/* The usable size a request of `size` bytes would get; 0 above PTRDIFF_MAX. */
size_t hak_good_bytes(size_t size);

#endif
