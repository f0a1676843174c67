/* SPDX-License-Identifier: MIT
 *
 * What hakmem/inline.h knows of the library. */
#include "front/fast.h"
#define HAK_HIT_OF_LIBRARY
#include "hakmem/inline.h"

_Static_assert(HAK_HIT_TABLE_BYTES == HAK_PAGEMAP_TABLE_BYTES, "inline.h");
_Static_assert(HAK_HIT_TABLE_BYTES == offsetof(hak_pagemap_t, zero), "inline.h");
_Static_assert(HAK_HIT_ROOT_BYTES == sizeof(hak_pagemap_leaf_t), "inline.h");
_Static_assert(HAK_HIT_SMALL_BYTES == HAK_SC_SMALL_BYTES, "inline.h");
_Static_assert(HAK_HIT_UNIT_LOG2 == HAK_UNIT_LOG2, "inline.h");
_Static_assert(HAK_HIT_FREE_MARKER == HAK_LINK_MARKER && HAK_HIT_MARK == HAK_LINK_MARK, "inline.h");
_Static_assert(sizeof(hak_hit_bin_t) == sizeof(hak_bin_t), "inline.h");
_Static_assert(offsetof(hak_hit_bin_t, slots_left) == offsetof(hak_bin_t, slots_left), "inline.h");
_Static_assert(offsetof(hak_hit_bin_t, size_reciprocal) == offsetof(hak_bin_t, size_reciprocal),
               "inline.h");

void hak_inline_check(unsigned long layout) {
    hak_life_process_start();
    if (HAK_HARDEN || layout != HAK_HIT_LAYOUT) {
        hak_fatal(HAK_FATAL_INLINE_VERSION, NULL, HAK_HARDEN ? "hardened" : NULL);
    }
}
