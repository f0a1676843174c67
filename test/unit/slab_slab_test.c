/* SPDX-License-Identifier: MIT */
#include "unit/one_owner.h"

ONE_OWNER_TEST(refill_of_every_class_carves_ascending_blocks) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        unit_owner_begin(&owner, 1);
        uint32_t bytes = hak_sc_info[sc].bytes;
        unsigned count = unit_refill(&owner, sc, &held);
        assert_int_equal(count, bytes >= 4096 ? 1 : 4096 / bytes);
        const hak_slab_t *slab = hak_slab_of(held.block[0]);
        assert_ptr_equal(owner.current[sc], slab);
        assert_int_equal(slab->state, HAK_SLAB_CURRENT);
        for (unsigned i = 0; i < count; i++) {
            assert_ptr_equal(held.block[i], slab->base + (size_t)i * bytes);
        }
        assert_int_equal(slab->carved, count);
        assert_int_equal(slab->free_count, 0);
        unit_give_all(&owner, &held);
        unit_owner_end(&owner);
    }
}

ONE_OWNER_TEST(slab_of_every_class_gives_exactly_its_capacity) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        unsigned capacity = hak_sc_info[sc].blocks;
        unit_take(&owner, sc, &held, capacity);
        assert_int_equal(held.count, capacity);
        hak_slab_t *slab = hak_slab_of(held.block[0]);
        for (unsigned i = 0; i < capacity; i++) {
            memset(held.block[i], (int)i, hak_sc_info[sc].bytes);
        }
        for (unsigned i = 0; i < capacity; i++) {
            assert_true(unit_is_filled(held.block[i], hak_sc_info[sc].bytes, (unsigned char)i));
            assert_ptr_equal(hak_slab_of(held.block[i]), slab);
            assert_ptr_equal(hak_slab_of((char *)held.block[i] + hak_sc_info[sc].bytes - 1), slab);
        }
        unit_refill(&owner, sc, &held); /* the next slab */
        assert_ptr_not_equal(hak_slab_of(held.block[capacity]), slab);
        assert_int_equal(slab->state, HAK_SLAB_FULL);
        unit_give_all(&owner, &held);
    }
}

ONE_OWNER_TEST(block_test_refuses_everything_but_carved_starts) {
    unsigned count = unit_refill(&owner, SC_64, &held);
    const hak_slab_t *slab = hak_slab_of(held.block[0]);
    for (size_t offset = 0; offset < HAK_UNIT_BYTES; offset += 8) {
        bool is_block = offset % 64 == 0 && offset < count * 64u;
        assert_int_equal(hak_slab_is_block(slab, slab->base + offset), is_block);
    }
    assert_false(hak_slab_is_block(slab, slab->base + 1));
    assert_false(hak_slab_is_block(slab, slab->base - 64));
    unit_give_all(&owner, &held);
}

ONE_OWNER_TEST(refill_takes_no_more_fresh_blocks_than_wanted) {
    for (unsigned want = 1; want < 5; want++) {
        assert_int_equal(unit_refill_some(&owner, SC_64, &held, want), want);
    }
    assert_int_equal(hak_slab_of(held.block[0])->carved, 1 + 2 + 3 + 4);
    unit_give_all(&owner, &held);
}

ONE_OWNER_TEST(refill_after_give_back_takes_what_is_wanted) {
    unit_take(&owner, SC_64, &held, 300);
    unsigned given = 0;
    for (unsigned i = 0; i < held.count; i += 3, given++) {
        unit_give(&owner, held.block[i]);
    }
    const hak_slab_t *slab = hak_slab_of(held.block[0]);
    assert_int_equal(slab->free_count, given);
    assert_int_equal(unit_marked(slab), given);
    hak_blocks_t blocks = hak_slab_refill(&owner, SC_64, given - 1);
    assert_int_equal(blocks.count, given - 1);
    assert_int_equal(unit_list_length(blocks.head), given - 1);
    assert_int_equal(slab->carved, held.count); /* none is fresh */
    assert_int_equal(slab->free_count, 1);
    assert_int_equal(hak_slab_refill(&owner, SC_64, UINT32_MAX).count, 1);
}

ONE_OWNER_TEST(full_slab_that_gets_a_block_back_is_partial_and_reused) {
    unsigned capacity = hak_sc_info[SC_4096].blocks;
    unit_take(&owner, SC_4096, &held, capacity + 1); /* the second slab is current */
    hak_slab_t *first = hak_slab_of(held.block[0]);
    hak_slab_t *second = hak_slab_of(held.block[capacity]);
    assert_int_equal(first->state, HAK_SLAB_FULL);
    unit_give(&owner, held.block[2]);
    assert_int_equal(first->state, HAK_SLAB_PARTIAL);
    assert_ptr_equal(owner.partial[SC_4096].next, &first->link);
    unit_give(&owner, held.block[3]);
    unit_take(&owner, SC_4096, &held, 2 * capacity); /* fills the second */
    assert_int_equal(unit_refill(&owner, SC_4096, &held), 2);
    assert_ptr_equal(owner.current[SC_4096], first);
    assert_int_equal(second->state, HAK_SLAB_FULL);
    assert_int_equal(owner.slab_count[SC_4096], 2);
    assert_true(hak_list_is_empty(&owner.partial[SC_4096]));
    held.block[2] = held.block[--held.count]; /* the two came a second time */
    held.block[3] = held.block[--held.count];
    unit_give_all(&owner, &held);
}

ONE_OWNER_TEST(empty_slab_retires_unless_current) {
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc += 6) {
        unsigned capacity = hak_sc_info[sc].blocks;
        unit_take(&owner, sc, &held, capacity + 1);
        char *first = held.block[0];
        char *second = held.block[capacity];
        assert_int_equal(owner.slab_count[sc], 2);
        unit_give_all(&owner, &held);
        assert_int_equal(owner.slab_count[sc], 1);
        for (unsigned unit = 0; unit < hak_sc_info[sc].units; unit++) {
            const char *at = first + (size_t)unit * HAK_UNIT_BYTES;
            assert_int_equal(hak_pagemap_get(hak_pagemap_base(), at), 0);
        }
        assert_int_equal(hak_pagemap_get(hak_pagemap_base(), second),
                         hak_sc_entry(owner.first_entry, sc));
        assert_int_equal(hak_slab_of(second)->state, HAK_SLAB_CURRENT);
        hak_slab_release_current(&owner);
        assert_int_equal(hak_pagemap_get(hak_pagemap_base(), second), 0);
        assert_int_equal(owner.slab_count[sc], 0);
        assert_int_equal(unit_span_check().in_use_bytes, 0);
    }
}

ONE_OWNER_TEST(release_current_with_blocks_in_use_keeps_the_slab) {
    unsigned count = unit_refill(&owner, SC_64, &held);
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    hak_slab_release_current(&owner);
    assert_null(owner.current[SC_64]);
    assert_int_equal(slab->state, HAK_SLAB_PARTIAL); /* fresh blocks are left */
    unit_refill(&owner, SC_64, &held);
    assert_ptr_equal(hak_slab_of(held.block[count]), slab);
    unit_take(&owner, SC_64, &held, hak_sc_info[SC_64].blocks);
    hak_slab_release_current(&owner); /* now full: in no list */
    assert_int_equal(slab->state, HAK_SLAB_FULL);
    assert_true(hak_list_is_empty(&owner.partial[SC_64]));
    unit_give_all(&owner, &held);
}

ONE_OWNER_TEST(retired_slab_tells_only_what_was_carved) {
    unsigned count = unit_refill(&owner, SC_57344, &held); /* 7 units, one block carved */
    assert_int_equal(count, 1);
    unit_give_all(&owner, &held);
    hak_slab_release_current(&owner);
    assert_int_equal(unit_span_check().unused_dirty_bytes % HAK_UNIT_BYTES, 0);
    hak_span_t span = unit_span(7, HAK_UNIT_BYTES);
    assert_false(span.is_zero && !unit_span_reads_zero(span.base, 7u * HAK_UNIT_BYTES));
    unit_span_free(&span, 7);
}

/* A class's first slabs may stay mostly untouched; one that fills those will fill the next. */
ONE_OWNER_TEST(slab_of_a_class_that_grows_opens_a_huge_page) {
    static const unsigned bytes[] = {64, 8192, 10240}; /* of the last, parts may stay untouched */
    for (unsigned i = 0; i < UNIT_COUNT(bytes) && hak_os_page_bytes() == 4096; i++) {
        unsigned sc = hak_sc_of(bytes[i] - HAK_CANARY_BYTES), capacity = hak_sc_info[sc].blocks;
        hak_span_purge(0);
        size_t opened = hak_span_state.huge_page_count;
        hak_span_t pins[2] = {unit_span(64, HAK_UNIT_BYTES), unit_span(64, HAK_UNIT_BYTES)};
        unit_take(&owner, sc, &held, 4 * capacity);
        hak_span_t rest = unit_span(28, HAK_UNIT_BYTES); /* the next slab opens a range */
        assert_int_equal(hak_span_state.huge_page_count, opened);
        unit_take(&owner, sc, &held, 4 * capacity + 1);
        assert_int_equal(hak_span_state.huge_page_count, opened + (bytes[i] <= 8192));
        assert_int_equal(owner.slab_count[sc], 5);
        unit_give_all(&owner, &held);
        hak_slab_release_current(&owner);
        unit_span_free(&rest, 0);
        unit_span_free(&pins[0], 0);
        unit_span_free(&pins[1], 0);
    }
}

ONE_OWNER_TEST(refill_without_memory_is_empty_and_recovers) {
    hak_span_purge(0);
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    assert_int_equal(hak_slab_refill(&owner, SC_57344, 1).count, 0);
    assert_null(owner.current[SC_57344]);
    assert_int_equal(hak_slab_refill(&owner, SC_57344, 1).count, 0);
    hak_os_fault_clear();
    unit_refill(&owner, SC_57344, &held);
    unit_give_all(&owner, &held);
}

UNIT_GROUP(unit_slab_begin)
