/* SPDX-License-Identifier: MIT
 *
 * Searches: what they find, and what they may cost when what a program stores looks like a link. */
#include "front/find_free.h"
#include "unit/fatal.h"
#include "unit/front.h"

enum { LISTED_BYTES = 64, DEEP = 12, SEARCHES_MOST = 1 << 18, SEARCHES_BETWEEN_LOOKS = 64 };

static void *listed[DEEP];

UNIT_AROUND(no_guard) {
    self();
    hak_store_relaxed(&hak_knobs.guard, false);
    return 0;
}

/* In one slab with others in use, so that it stays. */
static void listed_make(void) {
    UNIT_TAKE_ALL(listed, DEEP, unit_malloc(LISTED_BYTES));
}

static void listed_free(void) {
    UNIT_FREE_ALL(listed, DEEP);
}

/* A block in use that looks like the last one of a list. */
static void *make_imitation(void) {
    void *block = unit_malloc(LISTED_BYTES);
    assert_non_null(block);
    hak_link_set(block, NULL);
    return block;
}

static void free_imitation(void *block) {
    hak_link_clear(block);
    hak_free(block);
}

/* The newest are in front of the bin, the first one is at its end. */
UNIT_TEST(search_beyond_the_budget_looks_at_a_few_blocks_only) {
    if (HAK_HARDEN) {
        skip(); /* walks no list */
    }
    hak_os_fault_stop_clock();
    void *imitation = make_imitation();
    listed_make();
    listed_free();
    assert_true(hak_find_free_block(listed[0]));
    unsigned searches = 0;
    while (searches < SEARCHES_MOST && hak_find_free_block(listed[0])) {
        assert_false(hak_find_free_block(imitation));
        searches++;
    }
    assert_true(searches < SEARCHES_MOST);
    assert_true(hak_find_free_block(listed[DEEP - 1]));
    for (searches = 0; searches < SEARCHES_MOST; searches++) {
        assert_false(hak_find_free_block(imitation)); /* however often */
        assert_false(hak_find_free_block(listed[0]));
    }
    free_imitation(imitation);
    hak_os_fault_clear();
}

UNIT_TEST(search_after_a_step_of_time_finds_all_again) {
    if (HAK_HARDEN) {
        skip();
    }
    hak_os_fault_stop_clock();
    listed_make();
    listed_free();
    unsigned searches = 0;
    while (searches < SEARCHES_MOST && hak_find_free_block(listed[0])) {
        searches++;
    }
    hak_os_fault_advance_clock(HAK_EVENT_STEP_NS);
    for (searches = 0; searches <= SEARCHES_BETWEEN_LOOKS && !hak_find_free_block(listed[0]);
         searches++) {
    }
    assert_true(searches <= SEARCHES_BETWEEN_LOOKS);
    hak_os_fault_clear();
}

enum { ENDED = 200, STEPS_MOST = 1 << 14 };

static pthread_barrier_t all_have_one;

static void *have_a_cache(void *unused) {
    (void)unused;
    hak_free(unit_malloc(LISTED_BYTES));
    pthread_barrier_wait(&all_have_one);
    return NULL;
}

/* Their caches stay in the registry, and looking at one takes as long as at a block. */
UNIT_TEST(searches_beside_caches_of_ended_threads_pay_for_them) {
    if (HAK_HARDEN) {
        skip();
    }
    pthread_t threads[ENDED];
    pthread_barrier_init(&all_have_one, NULL, ENDED);
    unit_pthread_create_all(threads, ENDED, have_a_cache, NULL, 0);
    unit_pthread_join_all(threads, ENDED);
    hak_os_fault_stop_clock();
    void *imitation = make_imitation();
    listed_make();
    listed_free();
    unsigned searches = 0;
    while (searches < SEARCHES_MOST && hak_find_free_block(listed[0])) {
        assert_false(hak_find_free_block(imitation));
        searches++;
    }
    assert_in_range(searches, 0, STEPS_MOST / ENDED + 1);
    free_imitation(imitation);
    hak_os_fault_clear();
}

UNIT_TEST(search_of_a_marked_block_finds_it_without_the_lock_of_its_owner) {
    listed_make();
    void *kept = unit_malloc(LISTED_BYTES);
    listed_free();
    hak_tcache_t *tcache = self();
    hak_tcache_flush(tcache);
    hak_owner_t *owner = hak_owner_lock(tcache->home);
    assert_true(hak_find_free_block(listed[1]));
    assert_false(hak_find_free_block(kept));
    UNIT_EXPECT_FATAL(hak_check_not_marked(listed[1]), "double free"); /* leaves the owner */
    hak_check_not_marked(kept);
    assert_ptr_equal(owner, tcache->home);
    hak_free(kept);
}

UNIT_TEST(search_of_a_block_sent_to_its_owner_finds_it_without_the_lock) {
    void *sent = unit_malloc(LISTED_BYTES), *kept = unit_malloc(LISTED_BYTES);
    hak_owner_t *owner = hak_owner_lock(self()->home);
    assert_false(hak_find_free_block(sent));
    hak_remote_send_block(hak_slab_of(sent), sent, NULL);
    assert_true(hak_find_free_block(sent));
    assert_false(hak_find_free_block(kept));
    UNIT_EXPECT_FATAL(hak_check_not_marked(sent), "double free"); /* leaves the owner */
    assert_ptr_equal(owner, self()->home);
    hak_owner_collect();
    assert_true(hak_find_free_block(sent));
    hak_free(kept);
}

UNIT_TEST(search_where_no_superslab_is_any_more_finds_nothing) {
    char *base = hak_os_map(HAK_SUPERSLAB_BYTES, HAK_SUPERSLAB_BYTES);
    assert_non_null(base);
    assert_true(hak_pagemap_prepare(base, HAK_SUPERSLAB_BYTES));
    /* as a thread sees it that read the entry before its slab retired */
    hak_pagemap_set(base, 1, hak_sc_entry(self()->home->first_entry, hak_sc_of(LISTED_BYTES)));
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

UNIT_TEST(usable_size_of_an_imitation_is_told_of_a_free_block_fatal) {
    void *imitation = make_imitation();
    listed_make();
    assert_int_equal(hak_malloc_usable_size(imitation), hak_malloc_usable_size(listed[0]));
    listed_free();
    UNIT_EXPECT_FATAL((void)!hak_malloc_usable_size(listed[DEEP - 1]),
                      hak_fatal_text(HAK_FATAL_FREED_USABLE_SIZE));
    free_imitation(imitation);
}

UNIT_TEST(realloc_of_an_imitation_keeps_the_block) {
    void *imitation = make_imitation();
    uintptr_t word = *(uintptr_t *)imitation;
    for (unsigned i = 0; i < 100; i++) {
        assert_ptr_equal(hak_realloc(imitation, LISTED_BYTES - HAK_CANARY_BYTES - i % 4),
                         imitation);
        assert_int_equal(*(uintptr_t *)imitation, word);
    }
    hak_free(imitation);
}

UNIT_GROUP(no_guard)
