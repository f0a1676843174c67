/* SPDX-License-Identifier: MIT
 *
 * Cold exits of malloc and free, usable size, events: by the hak_ names. */
#include "base/knobs.h"
#include "double/os_fault.h"
#include "front/event.h"
#include "front/fast.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "unit/fatal.h"

#include <errno.h>
#include <pthread.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

static unsigned event_runs;

static void count_event(hak_tcache_t *tcache) {
    assert_ptr_equal(tcache, hak_tcache_self(hak_pagemap_base()));
    event_runs++;
}

static int begin(void **state) {
    (void)state;
    hak_event_register(count_event, HAK_EVENT_PROCESS);
    hak_free(hak_malloc(1));
    return 0;
}

static void calloc_of_every_size_after_dirty_blocks_is_zero(void **state) {
    (void)state;
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

static void usable_size_equals_good_size(void **state) {
    (void)state;
    for (size_t size = 0; size <= 4u * MIB; size = size * 17 / 16 + 1) {
        void *block = hak_malloc(size);
        assert_int_equal(hak_malloc_usable_size(block), hak_good_size(size));
        assert_true(hak_good_size(size) >= size);
        hak_free(block);
    }
    assert_int_equal(hak_malloc_usable_size(NULL), 0);
    assert_int_equal(hak_good_size(SIZE_MAX), 0);
    assert_int_equal(hak_good_size(PTRDIFF_MAX), 0);
}

static void aligned_small_block_is_of_the_class_that_aligns(void **state) {
    (void)state;
    for (size_t align = 32; align <= 65536; align *= 2) {
        for (size_t size = 0; size <= 65536; size = size * 2 + 33) {
            void *block = hak_memalign(align, size);
            unsigned sc = hak_sc_of_aligned(size != 0 ? size : 1, align);
            assert_int_equal((uintptr_t)block % align, 0);
            assert_int_equal(hak_malloc_usable_size(block),
                             sc < HAK_SC_COUNT ? hak_sc_usable(&hak_sc_info[sc]) : 65536u);
            hak_free(block);
        }
    }
}

static void out_of_memory_is_counted_and_reclaims(void **state) {
    (void)state;
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

enum { REMOTE = 16000 };
static void *remote_block[REMOTE];

static void *free_remote_blocks(void *context) {
    for (unsigned i = 0; i < REMOTE; i++) {
        hak_free(remote_block[i]);
    }
    return context;
}

/* 16 MiB that another thread freed wait in our queue: enough for 1 MiB. */
static void out_of_memory_drains_what_others_gave_back(void **state) {
    (void)state;
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

static void events_run_every_256_slow_paths(void **state) {
    (void)state;
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

/* --- user errors the slow paths see -------------------------------------------------------------
 */

static void *free_in_thread(void *block) {
    UNIT_EXPECT_FATAL(hak_free(block), "free of an address inside a block: 0x");
    return NULL;
}

static void misuse_inside_blocks_is_fatal(void **state) {
    (void)state;
    pthread_t thread;
    char *small = hak_malloc(100);
    char *large = hak_malloc(300 * KIB);
    char *huge = hak_malloc(3u * MIB);
    assert_int_equal(pthread_create(&thread, NULL, free_in_thread, small + 16), 0);
    pthread_join(thread, NULL);
    UNIT_EXPECT_FATAL(hak_free(large + 16), "free of an address inside a block");
    UNIT_EXPECT_FATAL(hak_free(large + 64 * KIB), "free of an address inside a block");
    UNIT_EXPECT_FATAL(hak_free(huge + 16), "free of an address inside a block");
    UNIT_EXPECT_FATAL(hak_realloc(small + 16, 5), "realloc of an address");
    UNIT_EXPECT_FATAL(hak_realloc(large + 64 * KIB, 5), "(inside a block");
    UNIT_EXPECT_FATAL(hak_malloc_usable_size(huge + 16), "malloc_usable_size of an address");
    hak_free(small);
    hak_free(large);
    hak_free(huge);
}

static void misuse_of_foreign_addresses_is_fatal(void **state) {
    (void)state;
    static _Alignas(16) char area[256];
    UNIT_EXPECT_FATAL(hak_free(area + 64), "free of an address that no allocator");
    UNIT_EXPECT_FATAL(hak_realloc(area + 64, 5), "realloc of an address that no allocator");
    UNIT_EXPECT_FATAL(hak_malloc_usable_size(area + 64), "malloc_usable_size of an address that");
    UNIT_EXPECT_FATAL(hak_free((void *)16), "free of an address that no allocator");
}

static void free_all(void **block, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        hak_free(block[i]);
    }
}

static void misuse_by_an_immediate_second_free_is_fatal(void **state) {
    (void)state;
    enum { COUNT = 5000, MORE = 100 };
    static void *block[COUNT], *more[MORE];
    for (unsigned i = 0; i < MORE; i++) {
        more[i] = hak_malloc(64);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hak_malloc(64);
    }
    free_all(block, COUNT);
    /* noticed when the list is sorted */
    UNIT_EXPECT_FATAL((hak_free(block[COUNT - 1]), free_all(more, MORE)), "double free: 0x");
}

/* What the C library handed out goes back to it. */
static void block_of_libc_is_passed_on(void **state) {
    (void)state;
    if (UNIT_IS_TSAN) {
        skip(); /* malloc is the sanitizer's */
    }
    uint64_t before = hak_counters.foreign_free;
    for (size_t size = 1; size < 1u << 20; size *= 3) {
        char *block = malloc(size);
        memset(block, 1, size);
        assert_true(hak_malloc_usable_size(block) >= size);
        block = hak_realloc(block, size + 5);
        assert_true(unit_is_filled(block, size, 1));
        hak_free(block);
    }
    assert_true(hak_counters.foreign_free > before);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(calloc_of_every_size_after_dirty_blocks_is_zero),
    cmocka_unit_test(usable_size_equals_good_size),
    cmocka_unit_test(aligned_small_block_is_of_the_class_that_aligns),
    cmocka_unit_test(out_of_memory_is_counted_and_reclaims),
    cmocka_unit_test(out_of_memory_drains_what_others_gave_back),
    cmocka_unit_test(events_run_every_256_slow_paths),
    cmocka_unit_test(misuse_inside_blocks_is_fatal),
    cmocka_unit_test(misuse_of_foreign_addresses_is_fatal),
    cmocka_unit_test(misuse_by_an_immediate_second_free_is_fatal),
    cmocka_unit_test(block_of_libc_is_passed_on),
};

int main(void) {
    return cmocka_run_group_tests(tests, begin, NULL) == 0 ? 0 : 1;
}
