/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of holes: slabs of which some blocks stay in use, and what of them may go. */
#ifndef HAK_TEST_UNIT_PURGED_PAGES_H
#define HAK_TEST_UNIT_PURGED_PAGES_H

#include "unit/one_owner.h"

static inline void fill(void *block, uint32_t bytes, unsigned stamp) {
    memset(block, (int)(stamp % 251 + 1), bytes);
}

static inline void check_filled(const void *block, uint32_t bytes, unsigned stamp) {
    const unsigned char *byte = block;
    for (uint32_t i = 0; i < bytes; i++) {
        assert_int_equal(byte[i], stamp % 251 + 1);
    }
}

/* All blocks of one slab, written to; those for which i % every == 0 stay in use. */
static inline hak_slab_t *partly_used_slab(unsigned sc, unsigned every) {
    uint32_t bytes = hak_sc_info[sc].bytes;
    unit_take(&owner, sc, &held, hak_sc_info[sc].blocks);
    for (unsigned i = 0; i < held.count; i++) {
        fill(held.block[i], bytes, i);
    }
    hak_slab_t *slab = hak_slab_of(held.block[0]);
    for (unsigned i = 0; i < held.count; i++) {
        if (i % every != 0) {
            unit_give(&owner, held.block[i]);
        }
    }
    hak_slab_release_current(&owner);
    return slab;
}

static inline void give_the_rest(unsigned every) {
    for (unsigned i = 0; i < held.count; i += every) {
        unit_give(&owner, held.block[i]);
    }
    held.count = 0;
}

/* What of the OS pages of the slab no block in use touches, by another way than the sources'. */
static inline size_t purged_pages_expected(const hak_slab_t *slab, unsigned every) {
    size_t page = hak_os_page_bytes(), bytes = hak_sc_info[slab->sc].bytes, expected = 0;
    for (size_t at = 0; at < (size_t)slab->units * HAK_UNIT_BYTES; at += page) {
        bool is_used = false;
        for (size_t i = at / bytes; i <= (at + page - 1) / bytes && i < held.count; i++) {
            is_used |= i % every == 0;
        }
        expected += is_used ? 0 : page;
    }
    return expected;
}

#endif
