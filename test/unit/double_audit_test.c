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

#include <pthread.h>

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

static const char *broken(void) {
    hak_audit_t audit;
    bool is_healthy = hak_audit_walk(&audit);
    assert_int_equal(is_healthy, audit.broken == NULL);
    return audit.broken == NULL ? "" : audit.broken;
}

static void expect_broken(const char *invariant) {
    hak_audit_t audit;
    assert_false(hak_audit_walk(&audit));
    assert_string_equal(audit.broken, invariant);
    assert_non_null(audit.where);
}

static int begin(void **state) {
    (void)state;
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
            hak_remote_send_block(hak_slab_of(block[i]), block[i]); /* and when received */
        }
    }
    hak_collect_thread();
    for (unsigned i = 2; i < 62; i += 4) { /* these wait */
        hak_remote_send_block(hak_slab_of(block[i]), block[i]);
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

UNIT_TEST(wrong_free_count_breaks_slab_1) {
    slab->free_count++;
    expect_broken("SLAB-1");
    slab->free_count -= 2;
    expect_broken("SLAB-1");
    slab->free_count++;
    assert_string_equal(broken(), "");
}

UNIT_TEST(wrong_mark_breaks_slab_1) {
    uint64_t right = slab->bits[0];
    slab->bits[0] = right & (right - 1); /* a free block is lost */
    expect_broken("SLAB-1");
    slab->bits[0] = right | 1ull << hak_slab_index(slab, block[0]); /* one in use */
    expect_broken("SLAB-1");
    uint64_t sent = *hak_remote_word(hak_pagemap_superslab(slab->base), slab->unit, 0);
    slab->bits[0] = right ^ ((sent & -sent) | (right & -right));
    expect_broken("SLAB-1"); /* as many, but one was sent as well */
    slab->bits[0] = right;
    assert_string_equal(broken(), "");
}

UNIT_TEST(wrong_number_of_what_waits_breaks_slab_1) {
    uint64_t *number = hak_remote_number(hak_pagemap_superslab(slab->base), slab->unit);
    ++*number;
    expect_broken("SLAB-1");
    *number -= 2;
    expect_broken("SLAB-1");
    ++*number;
    assert_string_equal(broken(), "");
}

UNIT_TEST(wrong_geometry_breaks_slab_2) {
    slab->block_bytes += 16;
    expect_broken("SLAB-2");
    slab->block_bytes -= 16;
    slab->capacity--;
    expect_broken("SLAB-2");
    slab->capacity++;
    assert_string_equal(broken(), "");
}

UNIT_TEST(wrong_state_breaks_slab_4) {
    uint8_t right = slab->state;
    slab->state = right == HAK_SLAB_FULL ? HAK_SLAB_PARTIAL : HAK_SLAB_FULL;
    expect_broken("SLAB-4");
    slab->state = HAK_SLAB_CURRENT; /* and nobody's current */
    expect_broken("SLAB-4");
    slab->state = right;
    assert_string_equal(broken(), "");
}

UNIT_TEST(empty_slab_that_did_not_retire_breaks_slab_3) {
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
    assert_string_equal(broken(), "");
    hak_free(one);
    hak_collect_thread();
}

UNIT_TEST(wrong_entry_of_one_unit_breaks_map_2) {
    char *second = multiple->base + HAK_UNIT_BYTES;
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), second);
    hak_pagemap_set(second, 1, entry + 256);
    expect_broken("MAP-2");
    hak_pagemap_set(second, 1, entry);
    hak_owner_t *owner = slab->owner;
    static hak_owner_t stranger = {.first_entry = 77 << 8};
    slab->owner = &stranger;
    expect_broken("MAP-2");
    slab->owner = owner;
    assert_string_equal(broken(), "");
}

UNIT_TEST(wrong_way_to_the_head_breaks_slab_5) {
    hak_superslab_t *superslab = hak_pagemap_superslab(multiple->base);
    uint8_t *back = &superslab->units_to_first[multiple->unit + multiple->units - 1];
    --*back;
    expect_broken("SLAB-5");
    ++*back;
    assert_string_equal(broken(), "");
}

UNIT_TEST(wrong_superslab_of_an_address_breaks_map_1) {
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    static hak_superslab_t copy;
    copy = *superslab; /* slabs are still found */
    hak_pagemap_set_superslab(superslab->base, &copy);
    expect_broken("MAP-1");
    hak_pagemap_set_superslab(superslab->base, superslab);
    assert_string_equal(broken(), "");
}

UNIT_TEST(used_unit_marked_free_breaks_span_1) {
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    superslab->free_units ^= 1ull << slab->unit;
    expect_broken("SPAN-1");
    superslab->free_units ^= 1ull << slab->unit;
    unsigned unused = hak_ctz(superslab->free_units);
    if (superslab->free_units != 0) {
        superslab->free_units ^= 1ull << unused;
        expect_broken("SPAN-1");
        superslab->free_units ^= 1ull << unused;
    }
    assert_string_equal(broken(), "");
}

UNIT_TEST(used_unit_marked_padding_breaks_span_8) {
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    superslab->padding_units ^= 1ull << slab->unit;
    expect_broken("SPAN-8");
    superslab->padding_units ^= 1ull << slab->unit;
    assert_string_equal(broken(), "");
}

UNIT_TEST(block_of_another_class_in_a_bin_breaks_tcache_2) {
    hak_bin_begin(tcache, SC_64);
    void *head = tcache->bin[SC_64].head;
    uintptr_t first_word = *(uintptr_t *)block[0];
    hak_link_set(block[0], head);
    tcache->bin[SC_64].head = block[0];
    expect_broken("TCACHE-2");
    tcache->bin[SC_64].head = head;
    memcpy(block[0], &first_word, sizeof first_word);
    assert_string_equal(broken(), "");
}

UNIT_TEST(wrong_count_of_an_outbox_breaks_tcache_4) {
    void *left[2];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, leave_blocks, left), 0);
    pthread_join(thread, NULL);
    tcache->ticks = 0;
    hak_free(left[0]);
    hak_free(left[1]);
    hak_blocks_t *outbox = &tcache->side[SC_64].outbox;
    assert_int_equal(outbox->count, 2);
    assert_string_equal(broken(), "");
    for (uint32_t wrong = 0; wrong <= 3; wrong++) {
        outbox->count = wrong;
        if (wrong != 2) {
            expect_broken("TCACHE-4");
        }
    }
    outbox->count = 2;
    void *head = outbox->head;
    outbox->head = block[0];
    expect_broken("TCACHE-4");
    outbox->head = head;
    tcache->outbox_bytes++;
    expect_broken("TCACHE-5");
    tcache->outbox_bytes--;
    tcache->drawn++;
    expect_broken("TCACHE-7");
    tcache->drawn--;
    hak_outbox_flush(tcache);
    assert_string_equal(broken(), "");
}

UNIT_GROUP(begin)
