/* SPDX-License-Identifier: MIT
 *
 * Cold exits of malloc, calloc and aligned allocation, and their events: by the hak_ names. */
#include "unit/front.h"

UNIT_AROUND(malloc_begin) {
    hak_free(hak_malloc(1));
    return 0;
}

FRONT_TEST(aligned_small_block_is_of_the_class_that_aligns) {
    for (size_t align = 32; align <= 65536; align *= 2) {
        for (size_t size = 1; size <= 65536; size = size * 2 + 31) {
            void *block = hak_memalign(align, size);
            unsigned sc = hak_sc_of_aligned(size, align);
            assert_int_equal((uintptr_t)block % align, 0);
            assert_int_equal(hak_malloc_usable_size(block),
                             sc < HAK_SC_COUNT ? hak_sc_usable(&hak_sc_info[sc]) : 65536u);
            hak_free(block);
        }
    }
}

FRONT_TEST(out_of_memory_is_counted_and_reclaims) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    uint64_t before = tcache->counters.oom;
    hak_free(hak_malloc(4u * MIB)); /* cached; given back before we say no */
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    errno = 0;
    assert_null(hak_malloc(40u * MIB));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(tcache->counters.oom, before + 1);
    hak_os_fault_clear();
    hak_free(hak_malloc(40u * MIB));
}

/* Nor does a mapping of its own serve it. */
FRONT_TEST(small_request_that_fails_is_counted_once) {
    enum { BYTES = 50000 };
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    uint64_t before = tcache->counters.oom;
    void **all = NULL, **block;
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    while ((block = hak_malloc(BYTES)) != NULL) {
        *block = all;
        all = block;
    }
    assert_int_equal(tcache->counters.oom, before + 1);
    hak_os_fault_clear();
    while ((block = all) != NULL) {
        all = *block;
        hak_free(block);
    }
}

enum { REMOTE = 16000 };
static void *remote_block[REMOTE];

static void *free_remote_blocks(void *context) {
    UNIT_FREE_ALL(remote_block, REMOTE);
    return context;
}

/* 16 MiB that another thread freed wait in our queue: enough for 1 MiB. */
FRONT_TEST(out_of_memory_drains_what_others_gave_back) {
    enum { MOST = 400 };
    static void *large[MOST];
    unsigned count = 0;
    UNIT_TAKE_ALL(remote_block, REMOTE, hak_malloc(1024));
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    while (count < MOST && (large[count] = hak_malloc(MIB)) != NULL) {
        count++;
    }
    assert_true(count < MOST);
    unit_pthread_create_and_join(free_remote_blocks, NULL);
    void *block = hak_malloc(MIB);
    hak_os_fault_clear();
    assert_non_null(block);
    hak_free(block);
    while (count > 0) {
        hak_free(large[--count]);
    }
}

UNIT_GROUP(malloc_begin)
