/* SPDX-License-Identifier: MIT
 *
 * The hak_ names: the family beside any other allocator, and what goes beyond the standard. */
#include "api/api.h"
#include "hakmem/hakmem.h"
#include "stat/stat.h"

#define HAK_STRING(x) #x
#define HAK_DOTTED(a, b, c) HAK_STRING(a) "." HAK_STRING(b) "." HAK_STRING(c)

HAK_EXPORT HAK_HOT void *hak_malloc(size_t size) {
    return hak_fast_malloc(size);
}

HAK_EXPORT HAK_HOT void hak_free(void *block) {
    hak_fast_free(block);
}

HAK_EXPORT void *hak_calloc(size_t count, size_t size) {
    return hak_api_calloc(count, size);
}

HAK_EXPORT void *hak_realloc(void *block, size_t size) {
    return hak_api_realloc(block, size);
}

HAK_EXPORT void *hak_aligned_alloc(size_t alignment, size_t size) {
    return hak_api_aligned_alloc(alignment, size);
}

HAK_EXPORT int hak_posix_memalign(void **block, size_t alignment, size_t size) {
    return hak_api_posix_memalign(block, alignment, size);
}

HAK_EXPORT void *hak_memalign(size_t alignment, size_t size) {
    return hak_api_memalign(alignment, size);
}

HAK_EXPORT void *hak_valloc(size_t size) {
    return hak_api_valloc(size);
}

HAK_EXPORT void *hak_pvalloc(size_t size) {
    return hak_api_pvalloc(size);
}

HAK_EXPORT size_t hak_malloc_usable_size(const void *block) {
    return hak_usable_size(block);
}

HAK_EXPORT void *hak_reallocarray(void *block, size_t count, size_t size) {
    return hak_api_reallocarray(block, count, size);
}

HAK_EXPORT void hak_free_sized(void *block, size_t size) {
    hak_api_free_sized(block, size);
}

HAK_EXPORT void hak_free_aligned_sized(void *block, size_t alignment, size_t size) {
    (void)alignment;
    hak_api_free_sized(block, size);
}

HAK_EXPORT void *hak_reallocf(void *block, size_t size) {
    return hak_api_reallocf(block, size);
}

HAK_EXPORT void *hak_recallocarray(void *block, size_t old_count, size_t count, size_t size) {
    return hak_api_recallocarray(block, old_count, count, size);
}

HAK_EXPORT void hak_freezero(void *block, size_t size) {
    hak_api_freezero(block, size);
}

HAK_EXPORT int hak_malloc_trim(size_t keep) {
    return hak_api_trim(keep);
}

HAK_EXPORT size_t hak_good_size(size_t size) {
    return hak_good_bytes(size);
}

HAK_EXPORT const char *hak_version(void) {
    return HAK_DOTTED(HAK_VERSION_MAJOR, HAK_VERSION_MINOR, HAK_VERSION_PATCH);
}

HAK_EXPORT void *hak_alloc_at(size_t size, const void *site) {
    return hak_fast_malloc_at(size, site);
}

HAK_EXPORT void hak_free_at(void *block, size_t size, const void *site) {
    (void)size;
    hak_fast_free_at(block, site);
}

HAK_EXPORT void hak_stats_print(int fd) {
    hak_snapshot_t snapshot;
    hak_stat_collect(&snapshot);
    hak_stat_report_text(fd, &snapshot);
}

HAK_EXPORT void hak_collect_thread(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache)) {
        hak_tcache_flush(tcache);
        hak_owner_collect();
    }
}
