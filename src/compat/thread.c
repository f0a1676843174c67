/* SPDX-License-Identifier: MIT
 *
 * thread.allocated and its kin. The hit path counts nothing: what a thread allocated and freed
 * follows from what its bins got and gave back since it asked last, and from what is in them.
 * Their difference is exact; pairs of malloc and free that a bin served by itself between two
 * questions are in neither. */
#include "compat/thread.h"
#include "base/bits.h"
#include "compat/compat.h"
#include "front/event.h"
#include "front/fast.h"

static uint64_t tally_cached(hak_tcache_t *tcache) {
    hak_tcache_view_t view;
    uint64_t bytes = 0;
    hak_tcache_look(tcache, &view);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        bytes += ((uint64_t)view.cached[sc] + view.quarantine[sc]) * hak_sc_info[sc].bytes;
    }
    return bytes;
}

/* Of the growth, blocks that came to the bins and stay there count for neither side, nor do those
 * that were there and left. */
static void tally_update(hak_tcache_t *tcache, hak_tally_t *tally) {
    uint64_t cached = tally_cached(tcache);
    uint64_t taken = tcache->taken_bytes - tally->taken, given = tcache->given_bytes - tally->given;
    uint64_t more = hak_excess(cached, tally->cached), less = hak_excess(tally->cached, cached);
    uint64_t stays = hak_least(more, taken), leaves = hak_least(less, given);
    hak_single_writer_add(&tally->allocated, taken - stays + less - leaves);
    hak_single_writer_add(&tally->deallocated, given - leaves + more - stays);
    tally->taken = tcache->taken_bytes;
    tally->given = tcache->given_bytes;
    tally->cached = cached;
}

const hak_tally_t *hak_compat_tally(bool is_outside) {
    static const hak_tally_t none;
    hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    if (hak_tcache_is_empty(tcache)) {
        tcache = is_outside ? hak_life_thread_start() : NULL;
    }
    if (tcache != NULL && tcache->tally == NULL && is_outside) {
        tcache->tally = hak_meta_alloc(sizeof *tcache->tally);
    }
    if (tcache == NULL || tcache->tally == NULL) {
        return &none;
    }
    if (is_outside) {
        tally_update(tcache, tcache->tally);
    }
    return tcache->tally;
}
