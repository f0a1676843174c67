/* SPDX-License-Identifier: MIT
 *
 * Argument and errno rules of the family, once; entry.c gives them their hak_ names, override.c the
 * standard ones. Below api/ only front/malloc.c sets errno (front/slow.h). */
#ifndef HAK_API_API_H
#define HAK_API_API_H

#include "base/bits.h"
#include "front/fast.h"
#include "life/life.h"
#include "os/os.h"
#include "reclaim/reclaim.h"

#include <errno.h>
#include <string.h>

HAK_COLD void *hak_api_no_memory(void);
HAK_COLD void *hak_api_invalid(void);

HAK_INLINE void *hak_api_result(void *block) {
    return HAK_LIKELY(block != NULL) ? block : hak_api_no_memory();
}

void *hak_api_calloc(size_t count, size_t size);
HAK_NOINLINE void *hak_api_realloc_rest(void *block, size_t size);
void *hak_api_aligned(size_t align, size_t size);
void *hak_api_aligned_alloc(size_t align, size_t size);
int hak_api_posix_memalign(void **block, size_t align, size_t size);
void *hak_api_memalign(size_t align, size_t size);
void *hak_api_valloc(size_t size);
void *hak_api_pvalloc(size_t size);
void *hak_api_reallocarray(void *block, size_t count, size_t size);
void *hak_api_reallocf(void *block, size_t size);
void *hak_api_recallocarray(void *block, size_t old_count, size_t count, size_t size);
void hak_api_freezero(void *block, size_t size);

HAK_INLINE void *hak_api_realloc(void *block, size_t size) {
    return HAK_LIKELY(hak_realloc_in_place(block, size)) ? block
                                                         : hak_api_realloc_rest(block, size);
}

#endif
