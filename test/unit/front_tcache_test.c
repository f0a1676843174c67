/* SPDX-License-Identifier: MIT
 *
 * Tcaches: attach, flush, detach, capacities, fallback. */
#include "front/attach.h"
#include "unit/front.h"

#include <signal.h>

/* Runs in a thread of its own, which never had a tcache. */
static void *no_tcache_yet(void *context) {
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    *(bool *)context = hak_tcache_is_empty(tcache) && tcache->first_entry == 0 &&
                       tcache->bin[0].head == NULL && tcache->bin[0].slots_left == 0 &&
                       tcache->bin[HAK_SC_COUNT - 1].slots_left == 0;
    return NULL;
}

FRONT_TEST(tcache_of_a_thread_without_is_the_empty_one) {
    bool is_empty = false;
    unit_pthread_create_and_join(no_tcache_yet, &is_empty);
    assert_true(is_empty);
    /* MAP-4: the whole of it lies in the part of the zero leaf that is only ever read */
    assert_true(sizeof(hak_tcache_t) <= sizeof(hak_pagemap_leaf_t));
}

static void expect_bin_of_each_kind(hak_tcache_t *tcache) {
    for (unsigned kind = 0; kind <= HAK_KIND_MASK; kind++) {
        hak_bin_t *bin = hak_bin_at(tcache, kind);
        unsigned sc = hak_sc_of_entry(1 << 8 | kind);
        if (hak_slab_is_ordinary(1 << 8 | kind) && kind % HAK_KIND_PER_CLASS == 0) {
            assert_ptr_equal(bin, &tcache->bin[sc]);
            assert_int_equal(kind, hak_sc_kind(sc));
        } else if (kind == 0 || (kind >= HAK_KIND_LARGE && kind < HAK_KIND_MASK)) {
            assert_false(hak_is_multiple(0, &bin->size_reciprocal));
        }
    }
}

/* TCACHE-6 */
FRONT_TEST(kinds_are_the_places_of_bins) {
    expect_bin_of_each_kind(self());
    expect_bin_of_each_kind((hak_tcache_t *)&hak_pagemap.zero);
    expect_bin_of_each_kind(&hak_tcache_fallback);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const uint32_t entries[] = {hak_sc_entry(77 << 8, sc), hak_sc_entry(HAK_KIND_PURGED, sc),
                                    hak_sc_entry(HAK_KIND_SAMPLED, sc)};
        for (unsigned i = 0; i < UNIT_COUNT(entries); i++) {
            assert_true(hak_slab_is_entry(entries[i]));
            assert_int_equal(hak_slab_is_ownerless(entries[i]), i != 0);
            assert_int_equal(hak_sc_of_entry(entries[i]), sc);
        }
    }
    static const uint32_t others[] = {0,
                                      HAK_KIND_LARGE,
                                      HAK_KIND_LARGE_BODY,
                                      HAK_KIND_GUARD,
                                      1 << 8 | HAK_KIND_HUGE,
                                      1 << 8 | HAK_KIND_ZERO_SIZE};
    for (unsigned i = 0; i < UNIT_COUNT(others); i++) {
        assert_false(hak_slab_is_entry(others[i]));
    }
}

/* As the hit path does it. */
static bool push_own(uintptr_t base, void *block) {
    uintptr_t index = hak_pagemap_index(base, block);
    hak_bin_t *bin = hak_bin_at(hak_tcache_self(base), hak_pagemap_kind_at(base, index));
    return hak_is_multiple((uint16_t)(uintptr_t)block, &bin->size_reciprocal) &&
           hak_bin_push(bin, block);
}

static void *free_without_tcache(void *context) {
    static char foreign[16];
    uintptr_t base = hak_pagemap_base();
    hak_free(NULL);
    bool any = push_own(base, NULL) || push_own(base, foreign) || push_own(base, context);
    hak_free(context);
    return any ? context : NULL;
}

/* MAP-4: not even what counts down first */
FRONT_TEST(free_of_a_thread_without_writes_nothing_to_the_zero_leaf) {
    void *block = unit_malloc(64);
    void *pushed;
    pushed = unit_pthread_create_and_join(free_without_tcache, block);
    assert_null(pushed);
    assert_true(unit_is_filled(&hak_pagemap.zero, sizeof hak_pagemap.zero, 0));
}

FRONT_TEST(attach_twice_gives_the_same) {
    hak_tcache_t *tcache = self();
    assert_non_null(tcache);
    assert_true(tcache->first_entry >= 1 << 8 && (tcache->first_entry & 0xff) == 0);
    assert_int_equal(tcache->home->first_entry, tcache->first_entry);
    assert_true(tcache->is_attached);
    assert_int_equal(tcache->thread_id, hak_os_thread_id());
    hak_tcache_offset = 0; /* as when TLS is set up after the first allocation */
    assert_ptr_equal(hak_tcache_attach(), tcache);
    assert_ptr_equal(self(), tcache);
}

/* Its thread ended within a change, holding a lock; a later one has its TLS at the same address. */
static void *leave_in_a_change(void *context) {
    hak_tcache_t *left = self();
    left->changing = 1;
    hak_tcache_offset = 0;
    hak_tcache_t *other = hak_tcache_attach();
    *(bool *)context = other != NULL && other != left && other->begun == 0;
    left->changing = 0; /* as the test audits all */
    left->is_attached = false;
    return NULL;
}

FRONT_TEST(tcache_left_in_a_change_is_not_taken_over) {
    bool is_other = false;
    unit_pthread_create_and_join(leave_in_a_change, &is_other);
    assert_true(is_other);
}

FRONT_TEST(flush_empties_bins_into_slabs) {
    void *block[40];
    for (unsigned i = 0; i < 40; i++) {
        block[i] = unit_malloc(i * 100);
    }
    UNIT_FREE_ALL(block, 40);
    assert_true(audit().cached_blocks >= 20); /* large ones are two at most */
    hak_tcache_flush(self());
    assert_int_equal(audit().cached_blocks, 0);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        assert_null(self()->bin[sc].head);
        assert_int_equal(self()->bin[sc].slots_left, hak_bin_side(self(), sc)->capacity);
        assert_int_equal(hak_bin_side(self(), sc)->total, hak_bin_side(self(), sc)->capacity);
    }
}

/* TCACHE-8: what a thread does first with a class. */
static void *use_each_class_first(void *context) {
    void **block = context;
    hak_tcache_t *tcache = self();
    bool is_right = tcache->begun == 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        hak_bin_side_t *side = hak_bin_side(tcache, sc);
        side->counters.remote_out = 0;
        hak_free(block[sc]); /* of its home, or of another owner */
        is_right = is_right && tcache->begun == hak_mask(sc) && side->want == 0 &&
                   tcache->bin[sc].slots_left == 0 && side->counters.remote_out == 1;
        hak_free(unit_malloc(hak_sc_usable(&hak_sc_info[sc])));
        is_right = is_right && tcache->begun == hak_mask(sc + 1) && side->want != 0;
    }
    audit();
    hak_collect_thread();
    audit();
    return is_right ? context : NULL;
}

FRONT_TEST(class_begins_with_its_first_refill) {
    for (unsigned round = 0; round < 4; round++) {
        void *block[HAK_SC_COUNT], *result;
        for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
            block[sc] = unit_malloc(hak_sc_usable(&hak_sc_info[sc]));
        }
        result = unit_pthread_create_and_join(use_each_class_first, block);
        assert_ptr_equal(result, block);
        audit();
    }
}

/* --- threads come and go
 * --------------------------------------------------------------------------- */

typedef struct visitor {
    uint32_t first_entry;
    void *block[50];
    bool frees;
} visitor_t;

static void *visit(void *context) {
    visitor_t *visitor = context;
    for (unsigned i = 0; i < 50; i++) {
        if (visitor->frees) {
            hak_free(visitor->block[i]);
        } else {
            visitor->block[i] = unit_malloc(64);
        }
    }
    visitor->first_entry = self()->first_entry;
    return NULL;
}

static void run_visitor(visitor_t *visitor, bool frees) {
    visitor->frees = frees;
    unit_pthread_create_and_join(visit, visitor);
}

FRONT_TEST(tcache_of_an_exited_thread_is_taken_over) {
    static visitor_t first, second;
    run_visitor(&first, false);
    run_visitor(&second, false);
    assert_int_not_equal(first.first_entry, self()->first_entry);
    assert_int_equal(second.first_entry, first.first_entry);
    audit();
    run_visitor(&first, true); /* its own blocks, as it has the tag again */
    run_visitor(&second, true);
}

FRONT_TEST(exit_sends_the_blocks_of_others) {
    static visitor_t visitor;
    for (unsigned i = 0; i < 50; i++) {
        visitor.block[i] = unit_malloc(3000);
    }
    hak_slab_t *slab = hak_slab_of(visitor.block[0]);
    run_visitor(&visitor, true);
    assert_int_not_equal(visitor.first_entry, self()->first_entry);
    assert_true(hak_remote_is_pending(self()->home));
    assert_true(hak_remote_waiting(hak_pagemap_superslab(slab->base), slab->unit) != 0);
    hak_owner_collect();
    assert_int_equal(hak_remote_waiting(hak_pagemap_superslab(slab->base), slab->unit), 0);
}

FRONT_TEST(fallback_serves_and_gets_back) {
    hak_tcache_t *fallback = hak_tcache_fallback_lock();
    assert_int_equal(fallback->first_entry, fallback->home->first_entry);
    hak_owner_t *owner = hak_tcache_lock_home(fallback);
    assert_ptr_equal(owner, fallback->home);
    assert_int_equal(owner->lock.is_taken, 1);
    hak_blocks_t blocks = hak_slab_refill(owner, SC_64, UINT32_MAX);
    assert_true(blocks.count > 0);
    hak_owner_unlock(owner);
    hak_tcache_fallback_unlock();
    assert_int_equal(owner->lock.is_taken, 0);
    assert_int_equal(hak_locks[HAK_LOCK_FALLBACK].state, 0);
    if (blocks.stride != 0) {
        hak_slab_link(&blocks);
    }
    for (void *block = blocks.head; block != NULL;) {
        void *next = hak_link_get(block);
        if (HAK_HARDEN) { /* as when it leaves a bin */
            hak_link_clear(block);
            hak_harden_hand_out(block, hak_sc_info[SC_64].bytes);
        }
        hak_free(block);
        block = next;
    }
}

static bool fallback_is_handled, fallback_was_inside;

static void fallback_signalled(int signal) {
    (void)signal;
    fallback_is_handled = true;
    fallback_was_inside = hak_lock_holds(HAK_LOCK_FALLBACK);
}

/* A handler that allocates would wait for its own thread. */
FRONT_TEST(fallback_is_held_without_signals) {
    struct sigaction action = {.sa_handler = fallback_signalled}, before;
    if (UNIT_IS_TSAN) { /* which calls handlers later */
        skip();
    }
    sigaction(SIGUSR1, &action, &before);
    (void)hak_tcache_fallback_lock();
    raise(SIGUSR1);
    assert_false(fallback_is_handled);
    hak_tcache_fallback_unlock();
    assert_true(fallback_is_handled && !fallback_was_inside);
    sigaction(SIGUSR1, &before, NULL);
}

/* TCACHE-1: the fallback tcache is no thread, and counts as no user, wherever it moves. */
FRONT_TEST(fallback_that_moves_leaves_the_users_alone) {
    hak_owner_t *first = hak_owner_start();
    hak_tcache_t *fallback = hak_tcache_fallback_lock();
    uint32_t users = first->users;
    assert_ptr_equal(fallback->home, first);
    hak_store_relaxed(&first->lock.is_taken, 1); /* somebody keeps it */
    hak_owner_t *other = hak_tcache_lock_home(fallback);
    assert_ptr_not_equal(other, first);
    assert_ptr_equal(fallback->home, other);
    hak_owner_unlock(other);
    hak_store_relaxed(&first->lock.is_taken, 0);
    hak_tcache_fallback_unlock();
    assert_int_equal(first->users, users);
}
