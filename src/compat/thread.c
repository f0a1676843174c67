/* SPDX-License-Identifier: MIT
 *
 * thread.allocated and its kin, which front/tcache.c reckons. */
#include "compat/thread.h"
#include "base/bits.h"
#include "compat/compat.h"
#include "front/event.h"
#include "front/fast.h"

const hak_tally_t *hak_compat_tally(bool is_outside) {
    static const hak_tally_t none;
    /* the empty one has no tally */
    hak_tcache_t *tcache = is_outside ? hak_tcache_own() : hak_tcache_self(hak_pagemap_base());
    if (tcache != NULL && tcache->tally == NULL && is_outside) {
        tcache->tally = hak_meta_take(HAK_TALLY_LINES);
    }
    if (tcache == NULL || tcache->tally == NULL) {
        return &none;
    }
    if (is_outside) {
        hak_tally_update(tcache);
    }
    return tcache->tally;
}
