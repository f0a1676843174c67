/* SPDX-License-Identifier: MIT
 *
 * The hak_ names beyond the family. */
#include "base/fmt.h"
#include "base/version.h"
#include "conf/conf.h"
#include "front/fast.h"
#include "hakmem/hakmem.h"
#include "profile/profile.h"

#include <errno.h>
#include <string.h>

HAK_EXPORT size_t hak_malloc_usable_size(const void *block) {
    return hak_usable_size(block);
}

HAK_EXPORT size_t hak_good_size(size_t size) {
    return hak_good_bytes(size);
}

HAK_EXPORT const char *hak_version(void) {
    return HAK_VERSION_TEXT;
}

/* While the heap profiler samples. Threads without a tcache have no labels. */
static HAK_NOINLINE void *alloc_labelled(size_t size, const void *site) {
    hak_tcache_t *tcache = hak_tcache_own();
    if (tcache != NULL) {
        tcache->profile_label = site;
    }
    void *block = hak_fast_malloc(size);
    if (tcache != NULL) {
        tcache->profile_label = NULL;
    }
    return block;
}

HAK_EXPORT void *hak_alloc_at(size_t size, const void *site) {
    return HAK_LIKELY(hak_load_relaxed(&hak_profile_rate) == 0) ? hak_fast_malloc(size)
                                                                : alloc_labelled(size, site);
}

/* For the names with tokens (token.c, entry_cxx.cpp), which label sites so. */
HAK_HIDDEN void *hak_token_alloc(size_t align, size_t size, size_t token, bool is_plain);

void *hak_token_alloc(size_t align, size_t size, size_t token, bool is_plain) {
    uintptr_t before = hak_partition_enter_plain(is_plain);
    void *block = align == 0 ? hak_alloc_at(size, (const void *)token) : hak_memalign(align, size);
    hak_partition_leave(before);
    return block;
}

HAK_EXPORT void hak_free_at(void *block, size_t size, const void *site) {
    (void)size, (void)site;
    hak_fast_free(block);
}

enum { OPTION_VALUE_BYTES = 257 /* longest value and a zero: none is cut */ };

HAK_EXPORT int hak_option_get(const char *name, char *value, size_t bytes) {
    HAK_TEXT(text, OPTION_VALUE_BYTES);
    hak_life_process_start();
    if (!hak_conf_put(&text, name)) {
        return ENOENT;
    }
    if (text.length >= bytes) {
        return ERANGE;
    }
    memcpy(value, text.data, text.length);
    value[text.length] = '\0';
    return 0;
}

HAK_EXPORT int hak_option_set(const char *name, const char *value) {
    static const int errors[] = {
        [HAK_CONF_DONE] = 0,
        [HAK_CONF_UNKNOWN] = ENOENT,
        [HAK_CONF_FIXED] = EPERM,
        [HAK_CONF_INVALID] = EINVAL,
    };
    hak_life_process_start();
    hak_conf_result_t result = hak_conf_set(name, value);
    hak_profile_follow(NULL); /* acts at once on profile_rate */
    return errors[result];
}

HAK_EXPORT void hak_collect_thread(void) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (!hak_tcache_is_empty(tcache)) {
        hak_tcache_flush(tcache);
        hak_owner_collect();
        hak_wanted_serve();
    }
}
