/* SPDX-License-Identifier: MIT
 *
 * Holes: OS pages of a partly used slab that no block in use touches. They go back to the kernel
 * when the program asks for it (malloc_trim).
 *
 * What is marked as free holds nothing, unlike the blocks of lists, which are linked through their
 * first words; so the own list is marked first. A purged block needs no note of its own: it is
 * linked when it is handed out, as fresh ones are. */
#include "os/os.h"
#include "slab/slab.h"
#include "slab/slab_inl.h"

static void slab_mark_list(hak_slab_t *slab) {
    for (void *block = slab->free; slab->listed != 0; slab->listed--) {
        uint32_t index = hak_slab_index(slab, block);
        if (HAK_UNLIKELY(index >= slab->carved)) {
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

/* The OS pages that lie wholly in from .. to. Returns the bytes given back. */
static size_t hole_purge(hak_slab_t *slab, size_t from, size_t to) {
    size_t page = hak_os_page_bytes();
    from = hak_align_up(from, page);
    to = hak_align_down(to, page);
    if (from >= to) {
        return 0;
    }
    unsigned first = (unsigned)(from / HAK_UNIT_BYTES),
             last = (unsigned)((to - 1) / HAK_UNIT_BYTES);
    hak_span_note_holes(hak_pagemap_superslab(slab->base), slab->unit + first, last - first + 1);
    return hak_os_purge(slab->base + from, to - from) ? to - from : 0;
}

static size_t slab_purge_holes(hak_slab_t *slab) {
    size_t given_back = 0;
    slab_mark_list(slab);
    for (uint32_t block = 0, end = 0; end < slab->carved; block = end) {
        block = slab_next(slab, block, 0);
        end = slab_next(slab, block, ~0ull);
        /* what was never handed out may hold memory of the span's user before, or of a huge page */
        size_t to = end < slab->carved ? (size_t)end * slab->block_bytes
                                       : (size_t)slab->units * HAK_UNIT_BYTES;
        given_back += hole_purge(slab, (size_t)block * slab->block_bytes, to);
    }
    return given_back;
}

size_t hak_slab_purge_holes(hak_owner_t *owner) {
    size_t given_back = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_list_t *head = &owner->partial[sc];
        for (hak_list_t *link = head->next; link != head; link = link->next) {
            hak_slab_t *slab = HAK_CONTAINER_OF(link, hak_slab_t, link);
            if (slab->purged != slab->free_count + 1) { /* else nothing came since the last time */
                given_back += slab_purge_holes(slab);
                slab->purged = (uint16_t)(slab->free_count + 1);
            }
        }
    }
    return given_back;
}

static void owner_purge_holes(hak_owner_t *owner, void *context) {
    size_t *given_back = context;
    if (hak_owner_try(owner)) {
        *given_back += hak_slab_purge_holes(owner);
        hak_owner_leave(owner);
    }
}

size_t hak_owner_purge_holes(void) {
    size_t given_back = 0;
    hak_owner_visit(owner_purge_holes, &given_back);
    return given_back;
}
