/* SPDX-License-Identifier: MIT
 *
 * The hak_ names: the family beside any other allocator, and what goes beyond the standard. */
#include "api/api.h"
#include "hakmem/hakmem.h"
#include "stat/stat.h"

#define HAK_NAME(name) hak_##name
#include "api/family.def"
#undef HAK_NAME

#define HAK_STRING(x) #x
#define HAK_DOTTED(a, b, c) HAK_STRING(a) "." HAK_STRING(b) "." HAK_STRING(c)

HAK_EXPORT size_t hak_malloc_usable_size(const void *block) {
    return hak_usable_size(block);
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
