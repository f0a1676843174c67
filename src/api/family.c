/* SPDX-License-Identifier: MIT
 *
 * The rules of the family beyond malloc and free. */
#include "api/api.h"

#include "base/check.h"

void *hak_api_no_memory(void) {
    errno = ENOMEM;
    return NULL;
}

void *hak_api_invalid(void) {
    errno = EINVAL;
    return NULL;
}

void *hak_api_calloc(size_t count, size_t size) {
    size_t bytes;
    if (HAK_UNLIKELY(!hak_mul(count, size, &bytes))) {
        return hak_api_no_memory();
    }
    if (HAK_UNLIKELY(bytes > HAK_SC_SMALL_SIZE)) {
        return hak_api_result(hak_slow_calloc(bytes));
    }
    void *block = hak_fast_malloc(bytes);
    return HAK_LIKELY(block != NULL) ? memset(block, 0, bytes) : hak_api_no_memory();
}

void *hak_api_realloc_rest(void *block, size_t size) {
    if (block == NULL) {
        return hak_api_result(hak_fast_malloc(size));
    }
    if (size == 0) {
        hak_fast_free(block);
        return NULL;
    }
    return hak_api_result(hak_resize(block, size));
}

/* NULL: no size class, or its bin is empty. Size 0 and overflow fail the compares, too. */
HAK_INLINE void *aligned_pop(size_t align, size_t size) {
    uintptr_t base = hak_pagemap_base();
    size_t last = hak_sc_aligned_last(size, align);
    if (hak_tag_is_left_out(align)) {
        return NULL; /* hak_slow_aligned clears the tag */
    }
    if (last < HAK_SC_SMALL_SIZE) {
        return hak_bin_pop(hak_tcache_self(base), hak_bin_offset_of(base, last + 1));
    }
    if (last < HAK_SC_MAX_SIZE) {
        return hak_fast_pop_class(hak_tcache_self(base), hak_sc_of_medium(last + 1));
    }
    return NULL;
}

static HAK_NOINLINE void *aligned_rest(size_t align, size_t size) {
    if (HAK_UNLIKELY(size > PTRDIFF_MAX || align > PTRDIFF_MAX - size)) {
        return hak_api_no_memory();
    }
    return hak_api_result(align <= HAK_BLOCK_ALIGN ? hak_fast_malloc(size)
                                                   : hak_slow_aligned(align, size));
}

void *hak_api_aligned(size_t align, size_t size) {
    void *block = aligned_pop(align, size);
    return HAK_LIKELY(block != NULL) ? block : aligned_rest(align, size);
}

void *hak_api_aligned_alloc(size_t align, size_t size) {
    return HAK_LIKELY(hak_is_pow2(align)) ? hak_api_aligned(align, size) : hak_api_invalid();
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

int hak_api_posix_memalign(void **block, size_t align, size_t size) {
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

void *hak_api_memalign(size_t align, size_t size) {
    if (align > SIZE_MAX / 2 + 1) {
        return hak_api_invalid(); /* no power of two is that large */
    }
    if (!hak_is_pow2(align)) {
        align = align == 0 ? 1 : (size_t)2 << hak_log2(align);
    }
    return hak_api_aligned(align, size);
}

void *hak_api_valloc(size_t size) {
    hak_life_process_start();
    return hak_api_aligned(hak_os_page_bytes(), size);
}

void *hak_api_pvalloc(size_t size) {
    hak_life_process_start();
    size_t page = hak_os_page_bytes();
    if (size > PTRDIFF_MAX - page) {
        return hak_api_no_memory();
    }
    return hak_api_aligned(page, size == 0 ? page : hak_align_up(size, page));
}

void *hak_api_reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    return HAK_LIKELY(hak_mul(count, size, &bytes)) ? hak_api_realloc(block, bytes)
                                                    : hak_api_no_memory();
}

void *hak_api_reallocf(void *block, size_t size) {
    void *result = hak_api_realloc(block, size);
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
    if (HAK_UNLIKELY(bytes > usable)) {
        hak_fatal(HAK_FATAL_CLEAR_SIZE, block, NULL);
    }
    return usable;
}

void *hak_api_recallocarray(void *block, size_t old_count, size_t count, size_t size) {
    size_t old_bytes, bytes;
    if (block == NULL) {
        return hak_api_calloc(count, size);
    }
    if (!hak_mul(count, size, &bytes)) {
        return hak_api_no_memory();
    }
    if (!hak_mul(old_count, size, &old_bytes)) {
        return hak_api_invalid();
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
    void *fresh = hak_api_calloc(1, bytes);
    if (fresh != NULL) {
        memcpy(fresh, block, old_bytes < bytes ? old_bytes : bytes);
        hak_api_freezero(block, old_bytes);
    }
    return fresh;
}

void hak_api_freezero(void *block, size_t size) {
    if (block != NULL) {
        (void)usable_for_clear(block, size);
        clear(block, size);
        hak_fast_free(block);
    }
}
