/* SPDX-License-Identifier: MIT
 *
 * Memory tags of aarch64: which memory has which. Run with the argument "on" where processor and
 * options give tags, else with "off": then no address has any, and all else is the same. What
 * programs meet that use wrong ones is in crimes_tags.c. */
#include "double/os_fault.h"
#include "front/fast.h"
#include "front/find_free.h"
#include "hakmem/hakmem.h"
#include "unit/fatal.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 56, KEPT = 3000, BLOCKS = 64, LARGE = 600000, HUGE = 3 << 20 };

static unsigned memory_tag(const void *at) {
    return hak_tags_are_on() ? hak_tag_load(at) : 0;
}

/* Every 16 bytes from there on have the tag. */
static void expect_tag(const void *from, size_t bytes, unsigned tag) {
    for (size_t at = 0; at < bytes; at += HAK_TAG_GRANULE) {
        UNIT_EXPECT(memory_tag((const char *)from + at) == tag, "%zu of %zu", at, bytes);
    }
}

static void tags_are_on_where_they_should_be(void **state) {
    hak_free(hak_malloc(1));
    assert_int_equal(hak_tags_are_on(), strcmp(*state, "on") == 0);
}

/* TAG-1, TAG-2 */
static void block_of_each_class_has_its_tag_until_it_is_freed(void **state) {
    (void)state;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        size_t bytes = hak_sc_info[sc].bytes, usable = hak_sc_usable(&hak_sc_info[sc]);
        char *block = hak_malloc(usable);
        assert_non_null(block);
        assert_int_equal(hak_tag_of(block) != 0, hak_tags_are_on());
        expect_tag(block, bytes, hak_tag_of(block));
        assert_int_equal(hak_malloc_usable_size(block), usable);
        memset(block, 0xa5, usable);
        hak_free(block);
        expect_tag(block, bytes, 0);
    }
}

static void neighbours_on_an_os_page_never_have_the_same_tag(void **state) {
    (void)state;
    static char *block[KEPT];
    for (unsigned i = 0; i < KEPT; i++) {
        block[i] = hak_malloc(SMALL);
    }
    for (unsigned i = 0; i < KEPT && hak_tags_are_on(); i++) {
        const char *end = (char *)hak_tag_strip(block[i]) + SMALL + HAK_CANARY_BYTES;
        bool is_last = (uintptr_t)end % hak_os_page_bytes() == 0;
        assert_true(is_last || memory_tag(end) != hak_tag_of(block[i]));
    }
    for (unsigned i = 0; i < KEPT; i++) {
        hak_free(block[i]);
    }
}

/* Guards of stacks: the memory beside what is handed out may not be accessible. */
static void memory_beside_what_the_program_protects_is_handed_out(void **state) {
    (void)state;
    size_t page = hak_os_page_bytes();
    char *block[BLOCKS];
    for (size_t size = 8000; size < LARGE; size += 53000) {
        for (char **at = block; at < block + BLOCKS; at++) {
            *at = hak_aligned_alloc(page, size);
        }
        for (unsigned i = 0; i < BLOCKS; i += 2) {
            assert_int_equal(mprotect(block[i], page, PROT_NONE), 0);
            hak_free(block[i + 1]);
        }
        for (unsigned i = 0; i < BLOCKS; i += 2) {
            block[i + 1] = hak_malloc(size);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            assert_int_equal(i % 2 == 1 ? 0 : mprotect(block[i], page, PROT_READ | PROT_WRITE), 0);
            hak_free(block[i]);
        }
    }
}

/* TAG-2: the kernel may take tags away then. */
static void block_at_an_os_page_bears_madvise(void **state) {
    (void)state;
    size_t page = hak_os_page_bytes();
    for (unsigned i = 0; i < 40 * BLOCKS; i++) {
        size_t size = (2 + i % 13) * page;
        hak_free(hak_malloc(size)); /* in the class's bin, sooner or later */
        char *block = hak_aligned_alloc(page, size);
        assert_int_equal(hak_tag_of(block), 0);
        assert_int_equal(madvise(block, page, MADV_DONTNEED), 0);
        hak_free(hak_realloc(memset(block, 2, 1), 70000));
    }
}

/* TAG-4, in bins, in the quarantine, in slabs and in slabs that were others. */
static void block_has_another_tag_than_the_last_time(void **state) {
    (void)state;
    enum { PLACES = 1 << 16 };
    static uint8_t last[PLACES]; /* by address, 64 bytes each of a superslab */
    static char *block[KEPT];
    uintptr_t base = 0;
    unsigned again = 0;
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < KEPT; i++) {
            block[i] = hak_malloc(SMALL);
        }
        base = base != 0 ? base : (uintptr_t)hak_tag_strip(block[0]) / HAK_SUPERSLAB_BYTES;
        for (unsigned i = 0; i < KEPT; i++) {
            uintptr_t address = (uintptr_t)hak_tag_strip(block[i]);
            uint8_t *tag = &last[address / 64 % PLACES];
            if (address / HAK_SUPERSLAB_BYTES == base && hak_tags_are_on()) {
                again += *tag != 0;
                UNIT_EXPECT(*tag != hak_tag_of(block[i]), "%u, round %u", i, round);
                *tag = (uint8_t)hak_tag_of(block[i]);
            }
        }
        for (unsigned i = 0; i < KEPT; i++) {
            hak_free(block[i]);
        }
        if (round % 8 == 7) {
            hak_collect_thread(); /* slabs retire */
        }
    }
    assert_int_equal(again > KEPT, hak_tags_are_on());
}

static void large_block_has_no_tag_however_it_moves(void **state) {
    (void)state;
    static const size_t sizes[] = {100000, LARGE, HUGE, 3 * HUGE, LARGE, 200000, 300, 70000};
    unsigned char *block = hak_malloc(40000);
    memset(block, 0x5a, 300);
    for (unsigned i = 0; i < UNIT_COUNT(sizes); i++) {
        block = hak_realloc(block, sizes[i]);
        bool is_small = sizes[i] <= HAK_SC_MAX_SIZE;
        assert_int_equal(hak_tag_of(block) != 0, is_small && hak_tags_are_on());
        assert_true(unit_is_filled(block, 300, 0x5a));
        assert_int_equal(memory_tag(block), hak_tag_of(block));
        memset(block, 0x5a, sizes[i]);
    }
    hak_free(block);
}

/* Blocks of what was large, and the other way round. */
static void memory_changes_between_small_and_large_blocks(void **state) {
    (void)state;
    for (unsigned round = 0; round < 8; round++) {
        char *block[64];
        size_t bytes = round % 2 == 0 ? 30000 : 250000;
        for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
            block[i] = hak_calloc(1, bytes);
            assert_true(unit_is_filled(block[i], bytes, 0));
            memset(block[i], 0xa5, bytes);
        }
        for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
            hak_free(block[i]);
        }
        hak_collect_thread();
    }
}

/* The kernel takes tags back with the memory. */
static void memory_that_was_given_back_has_tags_again(void **state) {
    (void)state;
    static char *block[KEPT];
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < KEPT; i++) {
            block[i] = block[i] != NULL ? block[i] : hak_malloc(1000);
            memset(block[i], 1, 1000);
            expect_tag(block[i], 1000, hak_tag_of(block[i]));
        }
        for (unsigned i = 0; i < KEPT; i++) {
            if (i % 100 != 0 || round == 1) {
                hak_free(block[i]);
                block[i] = NULL;
            }
        }
        assert_int_equal(hak_malloc_trim(0), 1);
    }
}

static void memory_without_tags_serves_as_well(void **state) {
    (void)state;
    char *block[200];
    unsigned untagged = 0;
    hak_os_fault_plan(HAK_OS_CALL_COMMIT, 0, UINT64_MAX);
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) { /* more than two superslabs */
        block[i] = hak_malloc(60000);
        assert_non_null(block[i]);
        memset(block[i], 1, 60000);
        untagged += hak_tag_of(block[i]) == 0;
    }
    hak_os_fault_clear();
    assert_int_not_equal(untagged, 0);
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
        hak_free(block[i]);
    }
}

static void *exchange(void *freed) {
    hak_free(freed);
    char *block = hak_malloc(SMALL);
    memset(block, 1, SMALL);
    return block;
}

static void blocks_pass_between_threads_and_to_a_child(void **state) {
    (void)state;
    void *block = hak_malloc(SMALL);
    for (unsigned i = 0; i < 10; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, exchange, block), 0);
        assert_int_equal(pthread_join(thread, &block), 0);
        assert_int_equal(hak_tag_of(block) != 0, hak_tags_are_on());
        assert_true(unit_is_filled(block, SMALL, 1));
    }
    pid_t child = unit_is_emulated() ? 0 : fork();
    hak_free(block);
    block = hak_malloc(SMALL);
    expect_tag(block, SMALL, hak_tag_of(block));
    hak_free(block);
    if (child == 0 && !unit_is_emulated()) {
        _exit(0);
    }
    int status = 0;
    assert_true(unit_is_emulated() || waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

/* What a program wrote: it is searched in lists of free blocks, and is none. */
static void block_that_looks_free_is_read_whatever_its_tag(void **state) {
    (void)state;
    uintptr_t *block = hak_malloc(SMALL), *next = hak_malloc(SMALL);
    for (unsigned i = 0; i < 2; i++) {
        uintptr_t link = (uintptr_t)hak_tag_strip(next) << HAK_LINK_MARKER_BITS | HAK_LINK_MARKER;
        *block = link ^ hak_link_mask(hak_tag_strip(block));
        assert_false(hak_find_free_block(hak_tag_strip(block)));
        assert_int_equal(hak_tag_link_word(block), link);
        if (i == 0) {
            block = hak_realloc(block, 2000);
        }
    }
    hak_free(block);
    hak_free(next);
}

/* TAG-3 */
static void address_with_another_tag_is_fatal(void **state) {
    (void)state;
    const char *freed = hak_fatal_text(HAK_FATAL_DOUBLE_FREE);
    char *block = hak_malloc(SMALL), *other = block;
    if (!hak_tags_are_on()) {
        hak_free(block);
        return;
    }
    UNIT_EXPECT_FATAL(hak_free(block + 16), hak_fatal_text(HAK_FATAL_INTERIOR_FREE));
    UNIT_EXPECT_FATAL(hak_free(hak_tag_strip(block)), "lost its tag");
    hak_free(block);
    UNIT_EXPECT_FATAL(hak_free(block), freed);
    UNIT_EXPECT_FATAL(hak_free(block), "the block is free");
    UNIT_EXPECT_FATAL((void)!hak_realloc(block, 1), hak_fatal_text(HAK_FATAL_FREED_REALLOC));
    UNIT_EXPECT_FATAL((void)!hak_realloc(block, 999), hak_fatal_text(HAK_FATAL_FREED_REALLOC));
    UNIT_EXPECT_FATAL((void)!hak_malloc_usable_size(block), "the block is free");
    for (other = hak_malloc(SMALL); hak_tag_strip(other) != hak_tag_strip(block);) {
        hak_free(other);
        other = hak_malloc(SMALL);
    }
    UNIT_EXPECT_FATAL(hak_free(block), freed);
    UNIT_EXPECT_FATAL(hak_free(block), "handed out again");
    UNIT_EXPECT_FATAL((void)!hak_realloc(block, 999), "handed out again");
    hak_free(other);
}

int main(int argc, char **argv) {
    void *expected = argc > 1 ? argv[1] : "off";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(tags_are_on_where_they_should_be, expected),
        cmocka_unit_test(block_of_each_class_has_its_tag_until_it_is_freed),
        cmocka_unit_test(neighbours_on_an_os_page_never_have_the_same_tag),
        cmocka_unit_test(memory_beside_what_the_program_protects_is_handed_out),
        cmocka_unit_test(block_at_an_os_page_bears_madvise),
        cmocka_unit_test(block_has_another_tag_than_the_last_time),
        cmocka_unit_test(large_block_has_no_tag_however_it_moves),
        cmocka_unit_test(memory_changes_between_small_and_large_blocks),
        cmocka_unit_test(memory_that_was_given_back_has_tags_again),
        cmocka_unit_test(blocks_pass_between_threads_and_to_a_child),
        cmocka_unit_test(block_that_looks_free_is_read_whatever_its_tag),
        cmocka_unit_test(address_with_another_tag_is_fatal),
        cmocka_unit_test(memory_without_tags_serves_as_well), /* others would get it */
    };
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1;
}
