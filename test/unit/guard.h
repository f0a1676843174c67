/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of guard/: watched blocks at will. */
#ifndef HAK_TEST_UNIT_GUARD_H
#define HAK_TEST_UNIT_GUARD_H

#include "guard/slot.h"
#include "os/optional.h"
#include "unit/fatal.h"
#include "unit/front.h"

/* A watched block, or NULL. */
static inline char *guard_sample(size_t bytes, size_t align) {
    hak_request_t request = {.bytes = bytes, .align = align};
    hak_tcache_t *tcache = self();
    hak_store_relaxed(&hak_knobs.guard_rate, 1);
    tcache->guard_left = -1000; /* due, also if the generator was not begun */
    return hak_services.guard_sample(tcache, &request);
}

static inline bool guard_is_watched(const void *block) {
    return hak_pagemap_get(hak_pagemap_base(), block) == HAK_KIND_GUARD;
}

static inline char *guard_page(const void *block) {
    return (char *)hak_align_down((uintptr_t)block, hak_os_page_bytes());
}

/* A watched block that begins with its OS page, or ends near its end. */
static inline char *guard_sample_at(size_t bytes, bool is_left) {
    for (unsigned i = 0; i < 1000; i++) {
        char *block = guard_sample(bytes, HAK_BLOCK_ALIGN);
        assert_non_null(block);
        if ((block == guard_page(block)) == is_left) {
            return block;
        }
        hak_fast_free(block);
    }
    fail();
    return NULL;
}

#endif
