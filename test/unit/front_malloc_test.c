/* SPDX-License-Identifier: MIT
 *
 * Cold exits of malloc, calloc and aligned allocation, and their events: by the hak_ names. */
#include "base/knobs.h"
#include "double/os_fault.h"
#include "front/event.h"
#include "front/fast.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "unit/unit.h"

#include <errno.h>
#include <pthread.h>

static unsigned event_runs;

static void count_event(hak_tcache_t *tcache) {
    assert_ptr_equal(tcache, hak_tcache_self(hak_pagemap_base()));
    event_runs++;
}

static int malloc_begin(void **state) {
    (void)state;
    hak_event_register(count_event, HAK_EVENT_PROCESS);
    hak_free(hak_malloc(1));
    return 0;
}

UNIT_TEST(calloc_of_every_size_after_dirty_blocks_is_zero) {
    for (size_t size = 0; size <= 3u * MIB; size = size * 9 / 8 + 7) {
        unsigned char *dirty = hak_malloc(size);
        assert_non_null(dirty);
        memset(dirty, 0xff, size);
        hak_free(dirty);
        unsigned char *block = hak_calloc(1, size);
        assert_non_null(block);
        UNIT_EXPECT(unit_is_filled(block, size, 0), "%zu", size);
        memset(block, 0xff, size);
        hak_free(block);
    }
}

UNIT_TEST(aligned_small_block_is_of_the_class_that_aligns) {
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

UNIT_TEST(out_of_memory_is_counted_and_reclaims) {
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
UNIT_TEST(small_request_that_fails_is_counted_once) {
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
    for (unsigned i = 0; i < REMOTE; i++) {
        hak_free(remote_block[i]);
    }
    return context;
}

/* 16 MiB that another thread freed wait in our queue: enough for 1 MiB. */
UNIT_TEST(out_of_memory_drains_what_others_gave_back) {
    enum { MOST = 400 };
    static void *large[MOST];
    unsigned count = 0;
    pthread_t thread;
    for (unsigned i = 0; i < REMOTE; i++) {
        remote_block[i] = hak_malloc(1024);
    }
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    while (count < MOST && (large[count] = hak_malloc(MIB)) != NULL) {
        count++;
    }
    assert_true(count < MOST);
    assert_int_equal(pthread_create(&thread, NULL, free_remote_blocks, NULL), 0);
    pthread_join(thread, NULL);
    void *block = hak_malloc(MIB);
    hak_os_fault_clear();
    assert_non_null(block);
    hak_free(block);
    while (count > 0) {
        hak_free(large[--count]);
    }
}

UNIT_TEST(events_run_every_256_slow_paths) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    hak_os_fault_stop_clock(); /* time brings them, too: front_event_test.c */
    hak_event_look(tcache, false);
    unsigned before = event_runs;
    uint32_t ticks = tcache->ticks;
    for (unsigned i = 0; i < 1000; i++) {
        hak_free(hak_malloc(200 * KIB));
    }
    assert_int_equal(event_runs - before, tcache->ticks / 256 - ticks / 256);
    assert_true(event_runs - before >= 3);
    hak_os_fault_clear();
}

UNIT_GROUP(malloc_begin)
