/* SPDX-License-Identifier: MIT
 *
 * Purges idle pages: OS pages of a partly used slab that no block in use touches. reclaim/slabs.c
 * decides which, and when. The kernel refuses a run that contains a locked page: the slab remembers
 * that, and its other runs are purged.
 * A marked block stores no link, so its pages can go. Purged blocks are linked when they are handed
 * out. */
#include "os/os.h"
#include "slab/owner.h"
#include "slab/slab_inl.h"

typedef struct idle {
    size_t from, to; /* whole OS pages; from >= to: there is none */
    uint32_t end;    /* first block behind it */
} idle_t;

/* The idle pages under the next row of marked blocks from `block` on. */
static idle_t slab_next_idle(const hak_slab_t *slab, uint32_t block) {
    block = hak_bit_next(slab->bits, block, slab->carved, 0);
    idle_t idle = {.end = hak_bit_next(slab->bits, block, slab->carved, ~0ull)};
    /* uncarved memory may be dirty: of an earlier span, or of a huge page */
    size_t to = idle.end < slab->carved ? (size_t)idle.end * slab->block_bytes
                                        : (size_t)slab->units * HAK_UNIT_BYTES;
    idle.from = hak_align_up((size_t)block * slab->block_bytes, hak_os_page_bytes());
    idle.to = hak_align_down(to, hak_os_page_bytes());
    return idle;
}

enum { PURGE_REFUSED_MOST = 4 }; /* per slab: then all its pages are locked, rather than one */

/* Purges a run of `least` bytes or more. */
static void idle_purge(hak_slab_t *slab, const idle_t *idle, size_t least, hak_slab_purged_t *sum) {
    size_t from = idle->from, to = idle->to;
    if (from + least > to) {
        return;
    }
    uint64_t units = hak_mask((unsigned)((to - 1) / HAK_UNIT_BYTES) + 1) &
                     ~hak_mask((unsigned)(from / HAK_UNIT_BYTES));
    sum->calls++;
    if (!slab->has_purged_pages) {
        slab->has_purged_pages = true;
        hak_slab_set_entry(slab);
    }
    if (!hak_os_purge(slab->base + from, to - from)) {
        sum->refused++;
        return;
    }
    hak_span_note_purged(hak_pagemap_superslab(slab->base), units << slab->unit);
    sum->bytes += to - from;
}

hak_slab_purged_t hak_slab_purge(hak_slab_t *slab, size_t least) {
    hak_slab_purged_t sum = {0};
    for (idle_t idle = {0}; idle.end < slab->carved && sum.refused < PURGE_REFUSED_MOST;) {
        idle = slab_next_idle(slab, idle.end);
        idle_purge(slab, &idle, least, &sum);
    }
    if (sum.calls != 0) {
        hak_count_by(purge_calls, sum.calls);
    }
    sum.work += sum.calls * HAK_SLAB_CALL_WORK;
    slab->looked = (uint16_t)(slab->free_count + 1);
    slab->is_refused = sum.refused != 0;
    slab->is_purged = least == 1 && !slab->is_refused;
    slab->is_given_back = least != 1;
    if (sum.bytes > slab->purged_bytes) {
        sum.fresh_bytes = sum.bytes - slab->purged_bytes;
        hak_add_relaxed(&hak_span_purged_bytes, sum.fresh_bytes);
        slab->purged_bytes = (uint32_t)sum.bytes;
    }
    return sum;
}

bool hak_slab_is_idle(const hak_slab_t *slab) {
    return slab->looked == slab->free_count + 1;
}

hak_slab_t *hak_slab_in_turn(hak_owner_t *owner, unsigned sc) {
    hak_slab_t *slab = HAK_CONTAINER_OF(owner->partial[sc].next, hak_slab_t, link);
    hak_list_remove(&slab->link);
    hak_list_push_front(owner->partial[sc].prev, &slab->link); /* at the end */
    return slab;
}
