/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of profile/: sampling with a sequence that is always the same. */
#ifndef HAK_TEST_UNIT_PROFILE_H
#define HAK_TEST_UNIT_PROFILE_H

#include "double/profile_state.h"
#include "profile/chance.h"
#include "unit/front.h"

extern hak_owner_t hak_sample_owner;

static inline void begin(size_t rate) {
    (void)self();
    assert_true(hak_profile_set_rate(rate));
    hak_profile_reset();
    hak_chance_seed(rate);
    self()->profile_rate = 0; /* draws anew */
}

static inline void finish(void) {
    assert_true(hak_profile_set_rate(0));
    (void)audit();
}

static inline bool is_sampled(const void *block) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    return hak_slab_is_entry(entry) && hak_slab_entry_is_sampled(entry);
}

static inline uint64_t live(void) {
    hak_profile_state_t state;
    hak_profile_look(&state);
    return state.live;
}

/* Large blocks that have a record. */
static inline unsigned large_records(void) {
    unsigned sum = 0;
    for (unsigned i = 0; i < HAK_PROFILE_PLACES; i++) {
        sum += hak_profile_large_count[i];
    }
    return sum;
}

/* The square root, by Newton's method from above. */
static inline double root_of(double x) {
    double root = x > 1 ? x : 1, next = (root + x / root) / 2;
    for (; next < root; next = (root + x / root) / 2) {
        root = next;
    }
    return root;
}

#endif
