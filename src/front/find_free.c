/* SPDX-License-Identifier: MIT
 *
 * Decides whether a block that looks free is free:
 *
 *   bitmaps of its slab       two bits, read without a lock
 *   own bin                   the newest SEARCH_LEAST_STEPS blocks; all of them within the budget
 *   other threads' lists      within the budget, under the lock of the spans
 *
 * A program can make any block look free. So the steps (blocks visited) of all searches share a
 * budget per step of time; beyond it a search visits a constant number of blocks. Hardened builds
 * check the canary, and walk no list.
 *
 * Not found: a block between two lists of another thread, and one behind some 1 000 others in a
 * list. */
#include "front/find_free.h"
#include "front/event.h"
#include "front/fast.h"
#include "os/lock.h"
#include "os/os.h"

enum {
    SEARCH_LEAST_STEPS = 8,        /* of every search */
    SEARCH_PERIOD_STEPS = 1 << 13, /* of all searches in HAK_EVENT_STEP_NS: below 1 ms */
    SEARCH_BURST_STEPS = 1 << 14,  /* saved up from earlier periods at most */
    /* Another thread's list changes during the walk, and a block just handed out may imitate a
     * link: one sight of the block proves nothing; this number does. */
    SEARCH_SIGHTS = 16,
};

typedef struct search {
    const void *block;
    unsigned sc;
    uint32_t steps; /* left */
    bool is_found;
} search_t;

/* --- budget ----------------------------------------------------------------------------------- */

HAK_LOCKED_STATE uint32_t hak_search_steps;  /* [atomic] left; 0 while a search has taken them */
HAK_LOCKED_STATE uint64_t hak_search_period; /* [atomic] the last one whose steps were granted */

static uint32_t search_take_budget(void) {
    uint64_t now = hak_os_now_ns() / HAK_EVENT_STEP_NS + 1;
    uint64_t last = hak_load_relaxed(&hak_search_period);
    /* each period is granted once: to the thread that advances the word */
    bool is_mine = now > last && hak_cas_relaxed(&hak_search_period, &last, now);
    uint64_t steps = is_mine ? hak_least(now - last, SEARCH_BURST_STEPS) * SEARCH_PERIOD_STEPS : 0;
    if (hak_load_relaxed(&hak_search_steps) != 0) {
        steps += hak_swap_relaxed(&hak_search_steps, 0);
    }
    return (uint32_t)hak_least(steps, SEARCH_BURST_STEPS);
}

/* --- places ----------------------------------------------------------------------------------- */

/* The slab, if a block of the class starts at the address; else NULL. */
static hak_slab_t *search_slab_of(const void *address, unsigned sc) {
    uintptr_t index = hak_pagemap_index(hak_pagemap_base(), address);
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    if ((uintptr_t)address >> 48 != 0 || !hak_slab_is_entry(entry) ||
        hak_sc_of_entry(entry) != sc) {
        return NULL;
    }
    hak_superslab_t *superslab = hak_pagemap_superslab_at(index, address);
    if (superslab == NULL) {
        return NULL; /* unmapped since the first read */
    }
    hak_slab_t *slab = hak_slab_in(superslab, address);
    uint32_t unit = (uint32_t)((const hak_unit_record_t *)slab - superslab->unit);
    uint32_t offset = (uint32_t)((uintptr_t)address % HAK_SUPERSLAB_BYTES) - unit * HAK_UNIT_BYTES;
    return hak_sc_index(&hak_sc_info[sc], offset) < hak_sc_info[sc].blocks ? slab : NULL;
}

/* The first word of a block that another thread or the program may be writing: a hint. */
static HAK_UNORDERED uintptr_t search_word(const void *block) {
    return hak_tags_are_on() ? hak_tag_link_word(block)
                             : *(const volatile uintptr_t *)block ^ hak_link_mask(block);
}

/* Whether the block is marked as free, read without the owner's lock: while a block is in use its
 * bits stay clear and its slab stays. A mark moves from the remote bitmap to the other, which is
 * read once more: it may have moved in between. */
static HAK_UNORDERED bool search_is_marked(const hak_slab_t *slab, const void *block) {
    const volatile hak_slab_t *now = slab;
    const volatile uint64_t *bits = now->bits;
    uint32_t index = hak_slab_index(slab, block);
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base); /* NULL: it goes just now */
    return index < now->carved && superslab != NULL &&
           ((bits[index / 64] >> index % 64 & 1) != 0 ||
            hak_remote_is_marked(superslab, slab->unit, index) ||
            (bits[index / 64] >> index % 64 & 1) != 0);
}

/* Whether the list leads to the block. The caller keeps its blocks mapped. */
static bool search_list(search_t *search, const void *head) {
    while (search->steps != 0 && search_slab_of(head, search->sc) != NULL) {
        search->steps--;
        if (head == search->block) {
            return true;
        }
        uintptr_t word = search_word(head);
        if (!hak_link_has_free_marker(word)) {
            return false;
        }
        head = hak_link_next(word);
    }
    return false;
}

/* The list of another thread. Its blocks may be handed out and freed, and their slabs retire, but
 * no superslab that the page map shows is unmapped while the lock is held. Tcaches of ended threads
 * may be in the registry: each costs a step, too. */
static bool search_tcache(hak_tcache_t *tcache, void *context) {
    search_t *search = context;
    void *const *head = &tcache->bin[search->sc].head;
    bool is_other = tcache != hak_tcache_self(hak_pagemap_base()) && !hak_tcache_is_left(tcache);
    search->steps -= search->steps != 0;
    if (is_other && hak_load_relaxed(head) != NULL) {
        unsigned sights = 0;
        hak_lock_acquire(HAK_LOCK_SPAN);
        while (sights < SEARCH_SIGHTS && search_list(search, hak_load_relaxed(head))) {
            sights++;
        }
        hak_lock_release(HAK_LOCK_SPAN);
        search->is_found = sights == SEARCH_SIGHTS;
    }
    return !search->is_found && search->steps != 0;
}

/* --- searches --------------------------------------------------------------------------------- */

/* Searches all lists for a block that has the free marker. */
static bool search_lists(const void *block, unsigned sc) {
    uint32_t budget = search_take_budget();
    search_t search = {.block = block, .sc = sc, .steps = budget + SEARCH_LEAST_STEPS};
    /* only this thread changes its own lists, and their blocks keep their slabs */
    search.is_found = search_list(&search, hak_tcache_self(hak_pagemap_base())->bin[sc].head);
    if (budget != 0 && !search.is_found && hak_lock_holds_none()) { /* else in a handler */
        hak_tcache_visit(search_tcache, &search);
    }
    if (budget != 0) {
        hak_add_relaxed(&hak_search_steps, hak_least(search.steps, budget));
    }
    return search.is_found;
}

/* A free clears the block, its canary included. */
static bool search_lacks_canary(const void *block, unsigned sc) {
    void *stripped = hak_tag_strip(block);
    const uint64_t *canary = hak_harden_canary_at(stripped, hak_sc_info[sc].bytes);
    uint64_t found = hak_tags_are_on() ? hak_tag_peek((const uintptr_t *)canary) : *canary;
    return found != hak_harden_canary(stripped);
}

bool hak_find_free_block(const void *block) {
    unsigned sc = hak_sc_of_entry(hak_pagemap_get(hak_pagemap_base(), block));
    const hak_slab_t *slab = search_slab_of(block, sc);
    if (slab == NULL || search_is_marked(slab, block)) {
        return slab != NULL; /* no slab: a guarded block, in no list, or the slab retired */
    }
    uintptr_t word = search_word(block);
    const void *next = hak_link_next(word);
    /* no link of ours: cheap to find out */
    if (!hak_link_has_free_marker(word) || (next != NULL && search_slab_of(next, sc) == NULL)) {
        return false;
    }
    return HAK_HARDEN ? search_lacks_canary(block, sc) : search_lists(block, sc);
}

void hak_check_not_marked(const void *block) {
    unsigned sc = hak_sc_of_entry(hak_pagemap_get(hak_pagemap_base(), block));
    const hak_slab_t *slab = search_slab_of(block, sc);
    /* else the slab retired, or may give it again */
    hak_require(slab != NULL && !search_is_marked(slab, block), HAK_FATAL_DOUBLE_FREE, block);
}
