/* SPDX-License-Identifier: MIT
 *
 * Holes of slabs: what goes back to the kernel, what stays, and that blocks in use are not touched.
 */
#include "reclaim/slabs.h"
#include "unit/fatal.h"
#include "unit/purged_pages.h"

static size_t purge_class(unsigned sc, uint32_t slabs) {
    hak_slabs_order_t order = {.wanted = SIZE_MAX, .is_all = true};
    hak_slabs_take(&owner, sc, slabs, &order);
    return order.given_back;
}

/* Of all partial slabs. */
static size_t purge_idle(void) {
    size_t given_back = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        given_back += purge_class(sc, owner.partial_count[sc]);
    }
    return given_back;
}

ONE_OWNER_TEST(idle_pages_go_back_and_blocks_in_use_stay) {
    static const unsigned classes[] = {SC_16, SC_64, SC_1024, SC_2048, SC_57344};
    static const unsigned everies[] = {2, 3, 64, 1000};
    for (unsigned c = 0; c < UNIT_COUNT(classes); c++) {
        for (unsigned e = 0; e < UNIT_COUNT(everies); e++) {
            unsigned sc = classes[c], every = everies[e];
            hak_slab_t *slab = partly_used_slab(sc, every);
            uint32_t free_count = slab->free_count;
            assert_int_equal(purge_idle(), purged_pages_expected(slab, every));
            assert_int_equal(slab->free_count, free_count);
            for (unsigned i = 0; i < held.count; i += every) {
                check_filled(held.block[i], hak_sc_info[sc].bytes, i);
            }
            give_the_rest(every);
        }
    }
}

ONE_OWNER_TEST(purged_blocks_are_handed_out_again) {
    enum { EVERY = 200 };
    hak_slab_t *slab = partly_used_slab(SC_64, EVERY);
    uint32_t count = slab->free_count;
    assert_true(purge_idle() > 0);
    hak_blocks_t blocks = hak_slab_refill(&owner, SC_64, UINT32_MAX);
    assert_int_equal(blocks.count, count);
    assert_int_equal(unit_list_length(blocks.head), count);
    for (void *block = blocks.head, *next; block != NULL; block = next) {
        next = hak_link_get(block);
        assert_ptr_equal(hak_slab_of(block), slab);
        fill(block, 64, 9);
        unit_give(&owner, block);
    }
}

ONE_OWNER_TEST(idle_pages_go_back_once) {
    enum { EVERY = 500 };
    partly_used_slab(SC_64, EVERY);
    assert_true(purge_idle() > 0);
    assert_int_equal(purge_idle(), 0);
    unit_give(&owner, held.block[EVERY]); /* now there is more */
    held.block[EVERY] = held.block[0];
    assert_true(purge_idle() > 0);
    hak_blocks_t some = unit_blocks(&owner, SC_64, 5); /* and here it was in use in between */
    for (void *block = some.head, *next; block != NULL; block = next) {
        next = hak_link_get(block);
        unit_give(&owner, block);
    }
    hak_slab_release_current(&owner);
    assert_true(purge_idle() > 0);
}

/* In sections of a few slabs, each is looked at once, and the order stays. */
ONE_OWNER_TEST(slabs_are_looked_at_in_turn) {
    enum { SLABS = 5 };
    uint32_t capacity = hak_sc_info[SC_1024].blocks;
    const hak_slab_t *order[SLABS];
    unit_take(&owner, SC_1024, &held, SLABS * capacity + 1);
    for (unsigned i = 0; i < SLABS; i++) { /* an OS page of each */
        for (unsigned k = 0; k < 4; k++) {
            unit_give(&owner, held.block[i * capacity + k]);
        }
        order[SLABS - 1 - i] = hak_slab_of(held.block[i * capacity]);
    }
    assert_int_equal(purge_class(SC_1024, 2), 2 * hak_os_page_bytes());
    assert_int_equal(purge_class(SC_1024, 2), 2 * hak_os_page_bytes());
    assert_int_equal(purge_class(SC_1024, 1), hak_os_page_bytes());
    const hak_list_t *link = owner.partial[SC_1024].next;
    for (unsigned i = 0; i < SLABS; i++, link = link->next) {
        assert_ptr_equal(HAK_CONTAINER_OF(link, hak_slab_t, link), order[i]);
    }
    assert_int_equal(purge_class(SC_1024, SLABS), 0);
}

ONE_OWNER_TEST(kernel_that_takes_nothing_back_is_survived) {
    enum { EVERY = 64 };
    hak_slab_t *slab = partly_used_slab(SC_1024, EVERY);
    hak_os_fault_plan(HAK_OS_CALL_PURGE, 0, UINT64_MAX);
    assert_int_equal(purge_idle(), 0);
    hak_os_fault_clear();
    check_filled(held.block[0], 1024, 0);
    assert_false(slab->is_purged); /* asked again next time */
}

/* Holes in front of a locked page and behind it go, at every request, and are told of once. */
ONE_OWNER_TEST(locked_page_keeps_only_its_range) {
    enum { EVERY = 32 }; /* two holes */
    hak_slab_t *slab = partly_used_slab(SC_1024, EVERY);
    size_t page = hak_os_page_bytes(), all = purged_pages_expected(slab, EVERY);
    if (!unit_lock_memory(slab->base + 2 * page, 1)) {
        skip();
    }
    size_t other = HAK_UNIT_BYTES / 2 - page;
    assert_int_equal(purge_idle(), other);
    assert_int_equal(slab->purged_bytes, other);
    assert_int_equal(purge_idle(), 0);
    assert_true(unit_unlock_memory(slab->base + 2 * page, 1));
    assert_int_equal(purge_idle(), all - other);
    assert_int_equal(slab->purged_bytes, all);
    for (unsigned i = 0; i < held.count; i += EVERY) {
        check_filled(held.block[i], 1024, i);
    }
}

ONE_OWNER_TEST(huge_page_with_purged_pages_is_none_any_more) {
    enum { EVERY = 200 };
    hak_slab_t *slab = partly_used_slab(SC_64, EVERY);
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    unsigned range = slab->unit / HAK_HUGE_PAGE_UNITS;
    hak_lock_acquire(HAK_LOCK_SPAN);
    bool is_huge = (superslab->huge_pages >> range & 1) != 0;
    uint64_t clean = superslab->clean_units;
    if (!is_huge) { /* as if it had been opened as one */
        superslab->huge_pages |= (uint8_t)(1u << range);
        superslab->clean_units &= ~hak_span_huge_page(range);
        hak_span_state.huge_page_count++;
        uint64_t dirty = clean & ~superslab->clean_units & superslab->free_units;
        (void)hak_span_count_given(0, hak_popcount(dirty));
        hak_fit_promise(superslab->index, HAK_PARTITION_ANY, 1, superslab->free_units, true);
    }
    hak_lock_release(HAK_LOCK_SPAN);
    assert_true(purge_idle() > 0);
    assert_int_equal(superslab->huge_pages >> range & 1, 0);
    unit_span_check();
}

/* SLAB-9: a message may be under way when the last counted block is taken. */
ONE_OWNER_TEST(purged_page_of_a_message_under_way_keeps_the_slab_checked) {
    enum { EVERY = 200 };
    hak_slab_t *slab = partly_used_slab(SC_64, EVERY);
    uint32_t count = slab->free_count;
    hak_slab_mark_one(slab, 0); /* block 0 is marked by another thread, and received */
    assert_true(purge_idle() > 0);
    assert_true(slab->has_purged_pages);
    hak_blocks_t blocks = hak_slab_refill(&owner, SC_64, UINT32_MAX);
    assert_int_equal(blocks.count, count);
    assert_int_equal(unit_marked(slab), 1);
    assert_true(slab->has_purged_pages);
    hak_slab_count_free(&owner, slab, 1, slab->base); /* its number comes */
    hak_blocks_t last = hak_slab_refill(&owner, SC_64, UINT32_MAX);
    assert_int_equal(last.count, 1);
    assert_false(slab->has_purged_pages);
    unit_give(&owner, last.head);
}

UNIT_GROUP(unit_slab_begin)
