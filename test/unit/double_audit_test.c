/* SPDX-License-Identifier: MIT
 *
 * The audit passes on a healthy core and finds each invariant that is broken on purpose. The test
 * mends what it broke, so each starts from a healthy state again. */
#include "double/audit.h"

#include "front/fast.h"
#include "front/flush.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "slab/remote.h"
#include "unit/unit.h"

enum { COUNT = 300 };

static void *block[COUNT];
static hak_slab_t *slab;     /* of class 1024, full or partial */
static hak_slab_t *multiple; /* of several units */
static hak_tcache_t *tcache;

static void *leave_blocks(void *context) {
    void **left = context;
    left[0] = hak_malloc(64 - HAK_CANARY_BYTES);
    left[1] = hak_malloc(64 - HAK_CANARY_BYTES);
    return NULL;
}

UNIT_AROUND(expect_healthy) {
    hak_audit_t audit;
    assert_true(hak_audit_walk(&audit));
    assert_null(audit.broken);
    return 0;
}

static void expect_broken(const char *invariant) {
    hak_audit_t audit;
    assert_false(hak_audit_walk(&audit));
    assert_string_equal(audit.broken, invariant);
    assert_non_null(audit.where);
}

/* While the place has a wrong value. */
#define EXPECT_BREAKS(place, wrong, invariant)                                                     \
    do {                                                                                           \
        __typeof__(place) right = (place);                                                         \
        (place) = (__typeof__(place))(wrong);                                                      \
        expect_broken(invariant);                                                                  \
        (place) = right;                                                                           \
    } while (0)

#define AUDIT_TEST(name) UNIT_TEST_WITH(name, NULL, expect_healthy)

UNIT_AROUND(begin) {
    if (HAK_HARDEN) { /* nothing is held back */
        hak_free(hak_malloc(1));
        hak_tcache_self(hak_pagemap_base())->quarantine = NULL;
    }
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hak_malloc(i < 250 ? 1000 : i < 290 ? 28000 : 100000);
    }
    for (unsigned i = 1; i < 250; i += 2) {
        if (i % 4 == 1) {
            hak_free(block[i]); /* is marked when flushed */
        } else {
            hak_remote_send_block(hak_slab_of(block[i]), block[i], NULL); /* and when received */
        }
    }
    hak_collect_thread();
    for (unsigned i = 2; i < 62; i += 4) { /* these wait */
        hak_remote_send_block(hak_slab_of(block[i]), block[i], NULL);
    }
    slab = hak_slab_of(block[0]);
    multiple = hak_slab_of(block[260]);
    tcache = hak_tcache_self(hak_pagemap_base());
    assert_true(slab->free_count > 2 && multiple->units > 1);
    assert_true(hak_remote_waiting(hak_pagemap_superslab(slab->base), slab->unit) > 2);
    return 0;
}

UNIT_TEST(healthy_core_passes) {
    hak_audit_t audit;
    assert_true(hak_audit_walk(&audit));
    assert_null(audit.broken);
    assert_true(audit.slabs > 5);
    assert_true(audit.free_blocks >= 124);
    assert_int_equal(audit.cached_blocks, 0);
    void *one = hak_malloc(16);
    assert_true(hak_audit_walk(&audit));
    assert_int_equal(audit.cached_blocks, 7); /* the rest of a first refill: half the capacity */
    hak_free(one);
    hak_collect_thread();
}

AUDIT_TEST(wrong_counts_and_marks_break_slab_1) {
    EXPECT_BREAKS(slab->free_count, right + 1, "SLAB-1");
    EXPECT_BREAKS(slab->free_count, right - 1, "SLAB-1");
    EXPECT_BREAKS(slab->bits[0], right & (right - 1), "SLAB-1"); /* a free block is lost */
    EXPECT_BREAKS(slab->bits[0], right | 1ull << hak_slab_index(slab, block[0]), "SLAB-1");
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    uint64_t sent = *hak_remote_word(superslab, slab->unit, 0);
    EXPECT_BREAKS(slab->bits[0], right ^ ((sent & -sent) | (right & -right)),
                  "SLAB-1"); /* as many, but one was sent as well */
    uint64_t *number = hak_remote_number(superslab, slab->unit);
    EXPECT_BREAKS(*number, right + 1, "SLAB-1");
    EXPECT_BREAKS(*number, right - 1, "SLAB-1");
}

AUDIT_TEST(wrong_geometry_and_state_break_slab_2_and_4) {
    EXPECT_BREAKS(slab->block_bytes, right + 16, "SLAB-2");
    EXPECT_BREAKS(slab->capacity, right - 1, "SLAB-2");
    EXPECT_BREAKS(slab->state, right == HAK_SLAB_FULL ? HAK_SLAB_PARTIAL : HAK_SLAB_FULL, "SLAB-4");
    EXPECT_BREAKS(slab->state, HAK_SLAB_CURRENT, "SLAB-4"); /* and nobody's current */
}

AUDIT_TEST(empty_slab_that_did_not_retire_breaks_slab_3) {
    void *one = hak_malloc(8000);
    hak_collect_thread();
    hak_slab_t *lonely = hak_slab_of(one);
    assert_int_equal(lonely->state, HAK_SLAB_PARTIAL);
    uint32_t index = hak_slab_index(lonely, one);
    assert_true(hak_slab_mark_one(lonely, index));
    lonely->free_count++;
    expect_broken("SLAB-3");
    lonely->bits[index / 64] ^= 1ull << index % 64;
    lonely->free_count--;
    hak_free(one);
    hak_collect_thread();
}

AUDIT_TEST(wrong_entry_of_one_unit_breaks_map_2) {
    static hak_owner_t stranger = {.first_entry = 77 << 8};
    char *second = multiple->base + HAK_UNIT_BYTES;
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), second);
    hak_pagemap_set(second, 1, entry + 256);
    expect_broken("MAP-2");
    hak_pagemap_set(second, 1, entry);
    EXPECT_BREAKS(slab->owner, &stranger, "MAP-2");
}

AUDIT_TEST(wrong_way_to_the_head_breaks_slab_5) {
    hak_superslab_t *superslab = hak_pagemap_superslab(multiple->base);
    EXPECT_BREAKS(superslab->units_to_first[multiple->unit + multiple->units - 1], right - 1,
                  "SLAB-5");
}

AUDIT_TEST(wrong_superslab_of_an_address_breaks_map_1) {
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    static hak_superslab_t copy;
    copy = *superslab; /* slabs are still found */
    hak_pagemap_set_superslab(superslab->base, &copy);
    expect_broken("MAP-1");
    hak_pagemap_set_superslab(superslab->base, superslab);
}

AUDIT_TEST(wrong_bits_of_a_superslab_break_span_1_and_8) {
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    EXPECT_BREAKS(superslab->free_units, right ^ 1ull << slab->unit, "SPAN-1");
    if (superslab->free_units != 0) {
        EXPECT_BREAKS(superslab->free_units, right & (right - 1), "SPAN-1");
    }
    EXPECT_BREAKS(superslab->padding_units, right ^ 1ull << slab->unit, "SPAN-8");
}

AUDIT_TEST(block_of_another_class_in_a_bin_breaks_tcache_2) {
    hak_bin_begin(tcache, SC_64);
    uintptr_t first_word = *(uintptr_t *)block[0];
    hak_link_set(block[0], tcache->bin[SC_64].head);
    EXPECT_BREAKS(tcache->bin[SC_64].head, block[0], "TCACHE-2");
    memcpy(block[0], &first_word, sizeof first_word);
}

AUDIT_TEST(wrong_counts_break_tcache_2_and_7) {
    void *left[2];
    unit_pthread_create_and_join(leave_blocks, left);
    hak_bin_begin(tcache, SC_64);
    UNIT_FREE_ALL(left, 2);
    expect_healthy(state);
    EXPECT_BREAKS(tcache->bin[SC_64].slots_left, right + 1, "TCACHE-2");
    EXPECT_BREAKS(tcache->bin[SC_64].slots_left, right - 1, "TCACHE-2");
    EXPECT_BREAKS(tcache->drawn, right + 1, "TCACHE-7");
}

AUDIT_TEST(bin_of_no_class_that_takes_a_block_breaks_tcache_9) {
    EXPECT_BREAKS(tcache->none.size_reciprocal, 1, "TCACHE-9");
    EXPECT_BREAKS(tcache->others[1].head, block[0], "TCACHE-9");
}

UNIT_GROUP(begin)
