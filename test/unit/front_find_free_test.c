/* SPDX-License-Identifier: MIT
 *
 * Searches: what they find, and what they may cost when what a program stores looks like a link. */
#include "double/os_fault.h"
#include "front/find_free.h"
#include "unit/fatal.h"
#include "unit/front.h"

#include "base/knobs.h"

#include <pthread.h>

enum { BYTES = 64, DEEP = 12, SEARCHES_MOST = 1 << 18, SEARCHES_BETWEEN_LOOKS = 64 };

static void *blocks[DEEP];

static int no_guard(void **state) {
    (void)state;
    self();
    hak_store_relaxed(&hak_knobs.guard, false);
    return 0;
}

/* In one slab with others in use, so that it stays. */
static void make_blocks(void) {
    for (unsigned i = 0; i < DEEP; i++) {
        blocks[i] = hak_malloc(BYTES);
        assert_non_null(blocks[i]);
    }
}

static void free_blocks(void) {
    for (unsigned i = 0; i < DEEP; i++) {
        hak_free(blocks[i]);
    }
}

/* A block in use that looks like the last one of a list. */
static void *make_imitation(void) {
    void *block = hak_malloc(BYTES);
    assert_non_null(block);
    hak_link_set(block, NULL);
    return block;
}

static void free_imitation(void *block) {
    hak_link_clear(block);
    hak_free(block);
}

/* The newest are in front of the bin, the first one is at its end. */
static void search_beyond_the_budget_looks_at_a_few_blocks_only(void **state) {
    (void)state;
    if (HAK_HARDEN) {
        skip(); /* walks no list */
    }
    hak_os_fault_stop_clock();
    void *imitation = make_imitation();
    make_blocks();
    free_blocks();
    assert_true(hak_find_free_block(blocks[0]));
    unsigned searches = 0;
    while (searches < SEARCHES_MOST && hak_find_free_block(blocks[0])) {
        assert_false(hak_find_free_block(imitation));
        searches++;
    }
    assert_true(searches < SEARCHES_MOST);
    assert_true(hak_find_free_block(blocks[DEEP - 1]));
    for (searches = 0; searches < SEARCHES_MOST; searches++) {
        assert_false(hak_find_free_block(imitation)); /* however often */
        assert_false(hak_find_free_block(blocks[0]));
    }
    free_imitation(imitation);
    hak_os_fault_clear();
}

static void search_after_a_step_of_time_finds_all_again(void **state) {
    (void)state;
    if (HAK_HARDEN) {
        skip();
    }
    hak_os_fault_stop_clock();
    make_blocks();
    free_blocks();
    unsigned searches = 0;
    while (searches < SEARCHES_MOST && hak_find_free_block(blocks[0])) {
        searches++;
    }
    hak_os_fault_advance_clock(HAK_EVENT_STEP_NS);
    for (searches = 0; searches <= SEARCHES_BETWEEN_LOOKS && !hak_find_free_block(blocks[0]);
         searches++) {
    }
    assert_true(searches <= SEARCHES_BETWEEN_LOOKS);
    hak_os_fault_clear();
}

enum { ENDED = 200, STEPS_MOST = 1 << 14 };

static pthread_barrier_t barrier;

static void *have_a_cache(void *unused) {
    (void)unused;
    hak_free(hak_malloc(BYTES));
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Their caches stay in the registry, and looking at one takes as long as at a block. */
static void searches_beside_caches_of_ended_threads_pay_for_them(void **state) {
    (void)state;
    if (HAK_HARDEN) {
        skip();
    }
    static pthread_t threads[ENDED];
    pthread_barrier_init(&barrier, NULL, ENDED);
    for (unsigned i = 0; i < ENDED; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, have_a_cache, NULL), 0);
    }
    for (unsigned i = 0; i < ENDED; i++) {
        pthread_join(threads[i], NULL);
    }
    hak_os_fault_stop_clock();
    void *imitation = make_imitation();
    make_blocks();
    free_blocks();
    unsigned searches = 0;
    while (searches < SEARCHES_MOST && hak_find_free_block(blocks[0])) {
        assert_false(hak_find_free_block(imitation));
        searches++;
    }
    assert_in_range(searches, 0, STEPS_MOST / ENDED + 1);
    free_imitation(imitation);
    hak_os_fault_clear();
}

static void search_of_a_marked_block_finds_it_without_the_lock_of_its_owner(void **state) {
    (void)state;
    make_blocks();
    void *kept = hak_malloc(BYTES);
    free_blocks();
    hak_tcache_t *tcache = self();
    hak_tcache_flush(tcache);
    hak_owner_t *owner = hak_owner_lock(tcache->home);
    assert_true(hak_find_free_block(blocks[1]));
    assert_false(hak_find_free_block(kept));
    UNIT_EXPECT_FATAL(hak_check_not_marked(blocks[1]), "double free"); /* leaves the owner */
    hak_check_not_marked(kept);
    assert_ptr_equal(owner, tcache->home);
    hak_free(kept);
}

static void search_of_a_block_sent_to_its_owner_finds_it_without_the_lock(void **state) {
    (void)state;
    void *sent = hak_malloc(BYTES), *kept = hak_malloc(BYTES);
    hak_owner_t *owner = hak_owner_lock(self()->home);
    assert_false(hak_find_free_block(sent));
    hak_remote_send_block(hak_slab_of(sent), sent);
    assert_true(hak_find_free_block(sent));
    assert_false(hak_find_free_block(kept));
    UNIT_EXPECT_FATAL(hak_check_not_marked(sent), "double free"); /* leaves the owner */
    assert_ptr_equal(owner, self()->home);
    hak_owner_collect();
    assert_true(hak_find_free_block(sent));
    hak_free(kept);
}

static void search_where_no_superslab_is_any_more_finds_nothing(void **state) {
    (void)state;
    char *base = hak_os_map(HAK_SUPERSLAB_BYTES, HAK_SUPERSLAB_BYTES);
    assert_non_null(base);
    assert_true(hak_pagemap_prepare(base, HAK_SUPERSLAB_BYTES));
    /* as a thread sees it that read the entry before its slab retired */
    hak_pagemap_set(base, 1, hak_sc_entry(self()->home->first_entry, hak_sc_of(BYTES)));
    hak_link_set(base, NULL);
    assert_false(hak_find_free_block(base));
    void *imitation = make_imitation();
    hak_link_set(imitation, base);
    assert_false(hak_find_free_block(imitation));
    UNIT_EXPECT_FATAL(hak_check_not_marked(base), "double free");
    free_imitation(imitation);
    hak_pagemap_set(base, 1, 0);
    hak_os_unmap(base, HAK_SUPERSLAB_BYTES);
}

static void usable_size_of_an_imitation_is_told_of_a_free_block_fatal(void **state) {
    (void)state;
    void *imitation = make_imitation();
    make_blocks();
    assert_int_equal(hak_malloc_usable_size(imitation), hak_malloc_usable_size(blocks[0]));
    free_blocks();
    UNIT_EXPECT_FATAL((void)!hak_malloc_usable_size(blocks[DEEP - 1]),
                      hak_fatal_text(HAK_FATAL_FREED_USABLE_SIZE));
    free_imitation(imitation);
}

static void realloc_of_an_imitation_keeps_the_block(void **state) {
    (void)state;
    void *imitation = make_imitation();
    uintptr_t word = *(uintptr_t *)imitation;
    for (unsigned i = 0; i < 100; i++) {
        assert_ptr_equal(hak_realloc(imitation, BYTES - HAK_CANARY_BYTES - i % 4), imitation);
        assert_int_equal(*(uintptr_t *)imitation, word);
    }
    hak_free(imitation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(search_of_a_marked_block_finds_it_without_the_lock_of_its_owner),
        cmocka_unit_test(search_where_no_superslab_is_any_more_finds_nothing),
        cmocka_unit_test(usable_size_of_an_imitation_is_told_of_a_free_block_fatal),
        cmocka_unit_test(realloc_of_an_imitation_keeps_the_block),
        cmocka_unit_test(search_beyond_the_budget_looks_at_a_few_blocks_only),
        cmocka_unit_test(search_after_a_step_of_time_finds_all_again),
        cmocka_unit_test(search_of_a_block_sent_to_its_owner_finds_it_without_the_lock),
        cmocka_unit_test(searches_beside_caches_of_ended_threads_pay_for_them),
    };
    return cmocka_run_group_tests(tests, no_guard, NULL) == 0 ? 0 : 1;
}
