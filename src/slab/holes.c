/* SPDX-License-Identifier: MIT
 *
 * Holes: OS pages of a partly used slab that no block in use touches, which malloc_trim gives back.
 * What is marked as free holds nothing, unlike the blocks of lists, which are linked through their
 * first words; so the own list is marked first. Purged blocks are linked when handed out. */
#include "os/os.h"
#include "slab/slab.h"
#include "slab/slab_inl.h"

static void slab_mark_list(hak_slab_t *slab) {
    for (void *block = slab->free; slab->listed != 0; slab->listed--) {
        uint32_t index = hak_slab_index(slab, block);
        bool is_far = (size_t)((char *)block - slab->base) >> 32 != 0;
        if (HAK_UNLIKELY(is_far || index >= slab->carved)) {
            hak_fatal(HAK_FATAL_CORRUPT_LINK, block, NULL);
        }
        void *next = hak_link_get(block);
        if (HAK_UNLIKELY(!hak_slab_mark_one(slab, index))) {
            hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
        }
        block = next;
    }
    slab->free = NULL;
}

/* The first block from `from` on that is marked, or with flip ~0 that is not; `carved`: none. */
static uint32_t slab_next(const hak_slab_t *slab, uint32_t from, uint64_t flip) {
    while (from < slab->carved) {
        uint64_t bits = (slab->bits[from / 64] ^ flip) >> from % 64;
        if (bits != 0) {
            from += hak_ctz(bits);
            return from < slab->carved ? from : slab->carved;
        }
        from = (from / 64 + 1) * 64;
    }
    return slab->carved;
}

/* The OS pages that lie wholly in from .. to. false: the kernel takes nothing back. */
static bool hole_purge(hak_slab_t *slab, size_t from, size_t to, size_t *given_back) {
    size_t page = hak_os_page_bytes();
    from = hak_align_up(from, page);
    to = hak_align_down(to, page);
    if (from >= to) {
        return true;
    }
    if (!hak_os_purge(slab->base + from, to - from)) {
        return false;
    }
    unsigned first = (unsigned)(from / HAK_UNIT_BYTES),
             last = (unsigned)((to - 1) / HAK_UNIT_BYTES);
    hak_span_note_holes(hak_pagemap_superslab(slab->base), slab->unit + first, last - first + 1);
    *given_back += to - from;
    return true;
}

static size_t slab_purge_holes(hak_slab_t *slab) {
    size_t given_back = 0;
    bool is_done = true;
    slab_mark_list(slab);
    for (uint32_t block = 0, end = 0; end < slab->carved && is_done; block = end) {
        block = slab_next(slab, block, 0);
        end = slab_next(slab, block, ~0ull);
        /* what was never handed out may hold memory of the span's user before, or of a huge page */
        size_t to = end < slab->carved ? (size_t)end * slab->block_bytes
                                       : (size_t)slab->units * HAK_UNIT_BYTES;
        is_done = hole_purge(slab, (size_t)block * slab->block_bytes, to, &given_back);
    }
    slab->purged = is_done ? (uint16_t)(slab->free_count + 1) : 0;
    return given_back;
}

/* Each slab looked at goes to the end of the list, so that the first is always the next one. */
size_t hak_slab_purge_holes(hak_owner_t *owner, unsigned sc, uint32_t slabs) {
    size_t given_back = 0;
    for (; slabs > 0 && !hak_list_is_empty(&owner->partial[sc]); slabs--) {
        hak_slab_t *slab = HAK_CONTAINER_OF(owner->partial[sc].next, hak_slab_t, link);
        hak_list_remove(&slab->link);
        hak_list_push_back(&owner->partial[sc], &slab->link);
        if (slab->purged != slab->free_count + 1) { /* else nothing came since the last time */
            given_back += slab_purge_holes(slab);
        }
    }
    return given_back;
}

enum { HOLES_SLABS = 8 }; /* in one section: a fork waits for it */

static void owner_purge_holes(hak_owner_t *owner, void *context) {
    size_t *given_back = context;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        int64_t left = hak_owner_load(&owner->partial_count[sc]);
        for (; left > 0 && hak_owner_try(owner); left -= HOLES_SLABS) {
            *given_back += hak_slab_purge_holes(owner, sc, HOLES_SLABS);
            hak_owner_leave(owner);
        }
    }
}

size_t hak_owner_purge_holes(void) {
    size_t given_back = 0;
    hak_owner_visit(owner_purge_holes, &given_back);
    return given_back;
}
