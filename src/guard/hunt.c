/* SPDX-License-Identifier: MIT
 *
 * Is a block free that looks as if it were? It is looked for in every bin and outbox, in its slab's
 * bitmap, own list and remote list. Lists of other threads may change meanwhile: their heads are
 * loaded atomically, and they are walked with a bound, and only along addresses where blocks of the
 * class start. Nothing is changed. What another thread has in hand just then, between two lists, is
 * not found, nor what an owner has that somebody keeps for longer than a moment.
 *
 * Costs what it costs: the program ends here, unless it wrote a tag and a likely link by itself. */
#include "front/tcache.h"

enum { HUNT_STEPS = 1 << 20, HUNT_TRIES = 16 };

typedef struct hunt {
    const void *block;
    unsigned sc;
    bool is_found;
} hunt_t;

/* Whether the address is where a block of the class starts, so that it can be read. */
static bool hunt_is_start(const void *address, unsigned sc) {
    uintptr_t index = hak_pagemap_index(hak_pagemap_base(), address);
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    return (uintptr_t)address >> 48 == 0 && hak_slab_is_entry(entry) &&
           hak_sc_of_entry(entry) == sc && hak_pagemap_superslab(address) != NULL &&
           hak_slab_is_start(index, &hak_sc_info[sc], address);
}

/* The first word of a block that another thread may have, or the program by now: a hint. */
static HAK_UNORDERED uintptr_t hunt_word(const void *block) {
    return hak_tags_are_on() ? hak_tag_link_word(block)
                             : *(const volatile uintptr_t *)block ^ hak_link_mask(block);
}

static void hunt_list(hunt_t *hunt, const void *head) {
    for (unsigned step = 0; !hunt->is_found && step < HUNT_STEPS; step++) {
        if (!hunt_is_start(head, hunt->sc)) {
            return;
        }
        uintptr_t word = hunt_word(head);
        hunt->is_found = head == hunt->block;
        if (!hak_link_looks_free(word)) {
            return;
        }
        head = hak_link_next(word);
    }
}

static void hunt_tcache(hak_tcache_t *tcache, void *context) {
    hunt_t *hunt = context;
    if (hak_tcache_is_left(tcache)) {
        return;
    }
    hunt_list(hunt, hak_load_relaxed(&tcache->bin[hunt->sc].head));
    hunt_list(hunt, hak_load_relaxed(&tcache->side[hunt->sc].outbox.head));
    if (HAK_HARDEN && hak_quarantine_has(tcache, hunt->sc, hunt->block)) {
        hunt->is_found = true;
    }
}

/* Takes the lock of the owner of the block's slab; NULL: somebody keeps it. */
static hak_owner_t *hunt_enter(const hak_slab_t *slab) {
    for (unsigned tries = 0; tries < HUNT_TRIES; tries++) {
        hak_owner_t *owner = hak_load_acquire(&slab->owner); /* pairs REMOTE-3 */
        if (hak_owner_try(owner)) {
            if (hak_load_relaxed(&slab->owner) == owner) {
                return owner;
            }
            hak_owner_leave(owner); /* adopted meanwhile */
        }
    }
    return NULL;
}

/* A look at the bitmap costs little, and is all it needs in a slab with holes. */
static void hunt_slab(hunt_t *hunt, bool is_tagged) {
    const hak_slab_t *slab = hak_slab_of(hunt->block);
    hak_owner_t *owner = hunt_enter(slab);
    if (owner == NULL) {
        return;
    }
    /* it may have retired, and its place have another slab now */
    if (hunt_is_start(hunt->block, hunt->sc) &&
        hak_load_acquire(&slab->owner) == owner) { /* pairs REMOTE-3 */
        hunt->is_found = hak_slab_is_marked(slab, hunt->block);
        if (is_tagged) {
            hunt_list(hunt, slab->free);
            hunt_list(hunt, (const void *)hak_load_relaxed(&slab->remote));
        }
    }
    hak_owner_leave(owner);
}

bool hak_hunt(const void *block) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    if (!hak_slab_is_entry(entry)) {
        return false; /* watched, which is in no list; or its slab has retired */
    }
    hunt_t hunt = {.block = block, .sc = hak_sc_of_entry(entry)};
    uintptr_t word = hunt_word(block);
    const void *next = hak_link_next(word);
    /* else it is no link of ours, which is cheap to find out */
    bool is_tagged = hak_link_looks_free(word) && (next == NULL || hunt_is_start(next, hunt.sc));
    if (is_tagged || hak_slab_lacks_tags(entry)) {
        hunt_slab(&hunt, is_tagged);
    }
    if (is_tagged && !hunt.is_found) {
        hak_tcache_visit(hunt_tcache, &hunt);
    }
    return hunt.is_found;
}

void hak_hunt_mark(const void *block) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
    if (!hak_slab_is_entry(entry)) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL); /* its slab has retired */
    }
    hunt_t hunt = {.block = block, .sc = hak_sc_of_entry(entry)};
    hunt_slab(&hunt, false);
    if (hunt.is_found) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
    }
}
