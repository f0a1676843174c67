/* SPDX-License-Identifier: MIT */
#include "slab/sizeclass.h"

#include <string.h>

/* The inverses of 1, 3, 5, 7 and 9 modulo 2^32. */
#define SC_INVERSE(odd)                                                                            \
    ((odd) == 1   ? 1u                                                                             \
     : (odd) == 3 ? 0xaaaaaaabu                                                                    \
     : (odd) == 5 ? 0xcccccccdu                                                                    \
     : (odd) == 7 ? 0xb6db6db7u                                                                    \
                  : 0x38e38e39u)

#define SC_INFO(size, unit_count, block_count)                                                     \
    {.bytes = (size),                                                                              \
     .units = (unit_count),                                                                        \
     .blocks = (block_count),                                                                      \
     .inverse = SC_INVERSE((size) >> __builtin_ctz(size)),                                         \
     .keep_from = (size) <= SC_KEEP_BYTES ? 1 : (size) / 2 + 1,                                    \
     .log2 = __builtin_ctz(size)},

enum { SC_KEEP_BYTES = 64 }; /* blocks up to this are never shrunk */

const hak_sc_info_t hak_sc_info[HAK_SC_COUNT] = {HAK_SC_TABLE(SC_INFO)};
const uint8_t hak_sc_small[] = {HAK_SC_SMALL_TABLE};

_Static_assert(HAK_SC_SMALL_BYTES < HAK_PAGEMAP_TABLE_BYTES &&
                   offsetof(hak_pagemap_t, zero) ==
                       offsetof(hak_pagemap_t, table) + HAK_PAGEMAP_TABLE_BYTES,
               "MAP-5");
void hak_sc_init(void) {
    uint8_t *places = &hak_pagemap.table[HAK_BLOCK_ALIGN + 1 - HAK_CANARY_BYTES];
    memset(hak_pagemap.table, (int)hak_sc_kind(0), HAK_BLOCK_ALIGN + 1 - HAK_CANARY_BYTES);
    hak_pagemap.table[0] = HAK_KIND_ZERO_SIZE;
    for (unsigned i = 2; i < sizeof hak_sc_small; i++, places += HAK_BLOCK_ALIGN) {
        memset(places, (int)hak_sc_kind(hak_sc_small[i]), HAK_BLOCK_ALIGN);
    }
}

/* Other threads read the table meanwhile: either value serves them. TCACHE-9 */
void hak_sc_detour(bool is_on) {
    for (size_t size = 1; size <= HAK_SC_SMALL_SIZE; size++) {
        unsigned place = is_on ? HAK_KIND_DETOUR : hak_sc_kind(hak_sc_of_small(size));
        hak_store_relaxed(&hak_pagemap.table[size], (uint8_t)place);
    }
}
