/* SPDX-License-Identifier: MIT
 *
 * The family, with its rules for arguments and errno: the hak_ names, and the standard ones as
 * aliases of them. Below api/ only the exits of the hit path (front/malloc.c) set errno. */
#include "base/bits.h"
#include "base/check.h"
#include "front/fast.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "reclaim/reclaim.h"

#include <errno.h>
#include <string.h>

HAK_EXPORT HAK_HOT void *hak_malloc(size_t size) {
    return hak_fast_malloc(size);
}

HAK_EXPORT HAK_HOT void hak_free(void *block) {
    hak_fast_free(block);
}

HAK_EXPORT void hak_free_sized(void *block, size_t size) {
    hak_fast_free_sized(block, 0, size);
}

HAK_EXPORT void hak_free_aligned_sized(void *block, size_t alignment, size_t size) {
    hak_fast_free_sized(block, alignment, size);
}

static HAK_COLD void *result_no_memory(void) {
    errno = ENOMEM;
    return NULL;
}

static HAK_COLD void *result_invalid(void) {
    errno = EINVAL;
    return NULL;
}

HAK_INLINE void *result_of(void *block) {
    return HAK_LIKELY(block != NULL) ? block : result_no_memory();
}

HAK_EXPORT void *hak_calloc(size_t count, size_t size) {
    size_t bytes;
    if (HAK_UNLIKELY(!hak_mul(count, size, &bytes))) {
        return result_no_memory();
    }
    if (HAK_UNLIKELY(bytes > HAK_SC_SMALL_SIZE)) {
        return result_of(hak_slow_calloc(bytes));
    }
    void *block = hak_fast_malloc(bytes);
    return HAK_LIKELY(block != NULL) ? memset(block, 0, bytes) : result_no_memory();
}

static HAK_NOINLINE void *realloc_rest(void *block, size_t size) {
    if (block == NULL) {
        return result_of(hak_fast_malloc(size));
    }
    if (size == 0) {
        hak_fast_free(block);
        return NULL;
    }
    return result_of(hak_resize(block, size));
}

HAK_EXPORT void *hak_realloc(void *block, size_t size) {
    return HAK_LIKELY(hak_realloc_in_place(block, size)) ? block : realloc_rest(block, size);
}

/* NULL: no size class, or its bin is empty. Size 0 and overflow fail the compares, too. */
HAK_INLINE void *aligned_pop(size_t align, size_t size) {
    uintptr_t base = hak_pagemap_base();
    size_t last = hak_sc_aligned_last(size, align);
    if (hak_tag_is_left_out(align) || (HAK_HARDEN && size == 0)) {
        return NULL; /* hak_slow_aligned clears the tag; with a canary size 0 has a class */
    }
    if (last < HAK_SC_SMALL_SIZE) {
        return hak_bin_pop(hak_tcache_self(base), hak_bin_offset_of(base, last + 1));
    }
    if (last < HAK_SC_MAX_SIZE && HAK_LIKELY(hak_load_relaxed(&hak_profile_rate) == 0)) {
        return hak_fast_pop_class(hak_tcache_self(base), hak_sc_of_medium(last + 1));
    }
    return NULL;
}

static HAK_NOINLINE void *aligned_rest(size_t align, size_t size) {
    if (HAK_UNLIKELY(size > PTRDIFF_MAX || align > PTRDIFF_MAX - size)) {
        return result_no_memory();
    }
    return result_of(align <= HAK_BLOCK_ALIGN ? hak_fast_malloc(size)
                                              : hak_slow_aligned(align, size));
}

static void *aligned_any(size_t align, size_t size) {
    void *block = aligned_pop(align, size);
    return HAK_LIKELY(block != NULL) ? block : aligned_rest(align, size);
}

HAK_EXPORT void *hak_aligned_alloc(size_t align, size_t size) {
    return HAK_LIKELY(hak_is_pow2(align)) ? aligned_any(align, size) : result_invalid();
}

static HAK_NOINLINE int posix_memalign_rest(void **block, size_t align, size_t size) {
    int saved = errno;
    void *result = aligned_rest(align, size);
    errno = saved;
    if (HAK_UNLIKELY(result == NULL)) {
        return ENOMEM;
    }
    *block = result;
    return 0;
}

HAK_EXPORT int hak_posix_memalign(void **block, size_t align, size_t size) {
    if (HAK_UNLIKELY(!hak_is_pow2(align) || align % sizeof(void *) != 0)) {
        return EINVAL;
    }
    void *result = aligned_pop(align, size);
    if (HAK_UNLIKELY(result == NULL)) {
        return posix_memalign_rest(block, align, size);
    }
    *block = result;
    return 0;
}

HAK_EXPORT void *hak_memalign(size_t align, size_t size) {
    if (align > SIZE_MAX / 2 + 1) {
        return result_invalid(); /* no power of two is that large */
    }
    if (!hak_is_pow2(align)) {
        align = align == 0 ? 1 : (size_t)2 << hak_log2(align);
    }
    return aligned_any(align, size);
}

HAK_EXPORT void *hak_valloc(size_t size) {
    hak_life_process_start();
    return aligned_any(hak_os_page_bytes(), size);
}

HAK_EXPORT void *hak_pvalloc(size_t size) {
    hak_life_process_start();
    size_t page = hak_os_page_bytes();
    if (size > PTRDIFF_MAX - page) {
        return result_no_memory();
    }
    return aligned_any(page, size == 0 ? page : hak_align_up(size, page));
}

HAK_EXPORT void *hak_reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    return HAK_LIKELY(hak_mul(count, size, &bytes)) ? hak_realloc(block, bytes)
                                                    : result_no_memory();
}

HAK_EXPORT void *hak_reallocf(void *block, size_t size) {
    void *result = hak_realloc(block, size);
    if (result == NULL && size != 0 && block != NULL) {
        hak_fast_free(block);
    }
    return result;
}

/* Stores that the compiler may not drop: freed memory must not stay readable. */
static void clear(void *from, size_t bytes) {
    memset(from, 0, bytes);
    __asm__ volatile("" : : "r"(from) : "memory");
}

/* Usable bytes of a block, of which `bytes` are to be cleared. */
static size_t usable_for_clear(const void *block, size_t bytes) {
    size_t usable = hak_usable_size(block);
    hak_require(bytes <= usable, HAK_FATAL_CLEAR_SIZE, block);
    return usable;
}

HAK_EXPORT void *hak_recallocarray(void *block, size_t old_count, size_t count, size_t size) {
    size_t old_bytes, bytes;
    if (block == NULL) {
        return hak_calloc(count, size);
    }
    if (!hak_mul(count, size, &bytes)) {
        return result_no_memory();
    }
    if (!hak_mul(old_count, size, &old_bytes)) {
        return result_invalid();
    }
    size_t usable = usable_for_clear(block, old_bytes);
    if (bytes <= usable && bytes > usable / 2) {
        if (bytes < old_bytes) {
            clear((char *)block + bytes, old_bytes - bytes);
        } else {
            memset((char *)block + old_bytes, 0, bytes - old_bytes);
        }
        return block;
    }
    void *fresh = hak_calloc(1, bytes);
    if (fresh != NULL) {
        memcpy(fresh, block, old_bytes < bytes ? old_bytes : bytes);
        hak_freezero(block, old_bytes);
    }
    return fresh;
}

HAK_EXPORT void hak_freezero(void *block, size_t size) {
    if (block != NULL) {
        (void)usable_for_clear(block, size);
        clear(block, size);
        hak_fast_free(block);
    }
}

HAK_EXPORT int hak_malloc_trim(size_t keep) {
    return hak_reclaim_trim(keep) != 0;
}

/* --- the standard names ----------------------------------------------------------------------- */

#if HAK_OVERRIDE

#include <stdlib.h>

/* Of malloc.h, which declares others, too, where the C library is glibc: override.c. */
extern void *memalign(size_t align, size_t size) __attribute__((malloc));
extern void *pvalloc(size_t size) __attribute__((malloc));

#define FAMILY_ALIAS(name)                                                                         \
    HAK_EXPORT __typeof__(hak_##name) name __attribute__((alias("hak_" #name)));

FAMILY_ALIAS(malloc)
FAMILY_ALIAS(free)
FAMILY_ALIAS(calloc)
FAMILY_ALIAS(realloc)
FAMILY_ALIAS(aligned_alloc)
FAMILY_ALIAS(posix_memalign)
FAMILY_ALIAS(memalign)
FAMILY_ALIAS(valloc)
FAMILY_ALIAS(pvalloc)
FAMILY_ALIAS(free_sized)
FAMILY_ALIAS(free_aligned_sized)
FAMILY_ALIAS(reallocf)
FAMILY_ALIAS(recallocarray)
FAMILY_ALIAS(freezero)
FAMILY_ALIAS(malloc_trim)
HAK_EXPORT HAK_HOT __typeof__(hak_free) cfree __attribute__((alias("hak_free")));

/* As the C library's, by the realloc that everybody finds: that of a program which has its own. */
extern void *public_realloc(void *block, size_t size) __asm__("realloc");

HAK_EXPORT void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    bool fits = hak_mul(count, size, &bytes);
    return HAK_LIKELY(fits) ? public_realloc(block, bytes) : result_no_memory();
}

#endif
