/* SPDX-License-Identifier: MIT */
#include "slab/sizeclass.h"

#define SC_INFO(size, unit_count, block_count)                                                     \
    {.bytes = (size),                                                                              \
     .units = (unit_count),                                                                        \
     .blocks = (block_count),                                                                      \
     .reciprocal = (uint32_t)(((1ull << 32) + (size) / 8 - 1) / ((size) / 8))},

const hak_sc_info_t hak_sc_info[HAK_SC_COUNT] = {HAK_SC_TABLE(SC_INFO)};
const uint8_t hak_sc_small[] = {HAK_SC_SMALL_TABLE};

_Static_assert(sizeof hak_sc_small <= HAK_PAGEMAP_TABLE_BYTES &&
                   offsetof(hak_pagemap_t, zero) == HAK_PAGEMAP_TABLE_BYTES,
               "MAP-5");

void hak_sc_init(void) {
    for (unsigned i = 0; i < sizeof hak_sc_small; i++) {
        hak_pagemap.table[i] = hak_sc_small[i];
    }
}

unsigned hak_sc_of_aligned(size_t size, size_t align) {
    if (size > HAK_SC_MAX_BYTES || align > HAK_SC_MAX_BYTES) {
        return HAK_SC_COUNT;
    }
    unsigned sc = hak_sc_of(size);
    while (sc < HAK_SC_COUNT && (hak_sc_info[sc].bytes & (align - 1)) != 0) {
        sc++;
    }
    return sc;
}
