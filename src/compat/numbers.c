/* SPDX-License-Identifier: MIT */

#include "compat/numbers.h"
#include "compat/compat.h"

#include <errno.h>

enum { ARENAS_MOST = 4095, TCACHES = 4094 };

static HAK_LARGE_STATE(4) uint64_t numbers_tcaches[(TCACHES + 63) / 64]; /* [atomic] bit: made */
static uint32_t numbers_arenas = 1;                                      /* [atomic] */

uint32_t hak_compat_arenas(void) {
    return hak_load_relaxed(&numbers_arenas);
}

bool hak_compat_is_arena(size_t arena) {
    return arena < hak_load_relaxed(&numbers_arenas);
}

bool hak_compat_is_arena_name(size_t arena) {
    return arena <= hak_load_relaxed(&numbers_arenas) || arena == MALLCTL_ARENAS_ALL ||
           arena == MALLCTL_ARENAS_DESTROYED;
}

bool hak_compat_is_heap(size_t arena) {
    return arena == 0 || arena == MALLCTL_ARENAS_ALL || arena == hak_load_relaxed(&numbers_arenas);
}

int hak_compat_arena_create(uint64_t *value) {
    uint32_t arena = hak_load_relaxed(&numbers_arenas);
    do {
        if (arena >= ARENAS_MOST) {
            return EAGAIN;
        }
    } while (!hak_cas_relaxed(&numbers_arenas, &arena, arena + 1));
    *value = arena;
    return 0;
}

bool hak_compat_is_tcache(unsigned tcache) {
    return tcache < TCACHES && (hak_load_relaxed(&numbers_tcaches[tcache / 64]) >> tcache % 64 & 1);
}

int hak_compat_tcache_create(uint64_t *value) {
    for (unsigned i = 0; i < TCACHES; i++) {
        uint64_t bit = 1ull << i % 64;
        if (!hak_compat_is_tcache(i) &&
            (hak_or_relaxed(&numbers_tcaches[i / 64], bit) & bit) == 0) {
            *value = i;
            return 0;
        }
    }
    return EAGAIN;
}

void hak_compat_tcache_end(unsigned tcache) {
    (void)hak_and_relaxed(&numbers_tcaches[tcache / 64], ~(1ull << tcache % 64));
}
