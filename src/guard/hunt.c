/* SPDX-License-Identifier: MIT
 *
 * Is a block free that looks as if it were? Decides nothing for blocks that look like blocks in
 * use.
 *
 *   bitmap of its slab        one bit, read without a lock
 *   own bin, own outbox       the newest HUNT_LEAST_STEPS blocks; all of them within the budget
 *   lists of its slab         within the budget, under the lock of the slab's owner
 *   other threads' lists      within the budget, under the lock of the spans
 *
 * A program chooses what its blocks hold, so it can make every block look free. Therefore the steps
 * (blocks looked at) of all hunts together are bounded per step of time; a hunt beyond that looks
 * at a constant number of blocks. In hardened builds the canary decides, and no list is walked.
 *
 * Not found: a block that another thread has between two lists, or behind some 1 000 others in one;
 * or that an owner has whose lock is taken for longer than a moment. */
#include "front/event.h"
#include "front/tcache.h"
#include "os/lock.h"
#include "os/os.h"
#include "slab/remote.h"

enum {
    HUNT_LEAST_STEPS = 8,        /* of every hunt */
    HUNT_PERIOD_STEPS = 1 << 13, /* of all hunts in a period of HAK_EVENT_STEP_NS: below 1 ms */
    HUNT_BURST_STEPS = 1 << 14,  /* saved up from earlier periods at most */
    HUNT_REFUSALS = 64,          /* between two looks at the clock when the budget is used up */
    HUNT_TRIES = 16,             /* for the lock of an owner: the slab may change its owner */
    HUNT_REFUSED_STEPS = 256,    /* an owner whose lock is taken costs as long as so many */
    /* Another thread's list changes while it is walked, and a block that was just handed out may
     * hold an imitation of a link: one sight of the block proves nothing, nor do a few. */
    HUNT_SIGHTS = 16,
};

typedef struct hunt {
    const void *block;
    unsigned sc;
    uint32_t steps; /* left */
    bool is_found;
} hunt_t;

/* --- budget ----------------------------------------------------------------------------------- */

HAK_LOCKED_STATE uint32_t hak_hunt_steps;   /* [atomic] left; 0 while a hunt has taken them */
HAK_LOCKED_STATE uint32_t hak_hunt_refused; /* [atomic] hunts without a budget; a hint */
HAK_LOCKED_STATE uint64_t hak_hunt_period;  /* [atomic] the last one of which steps were granted */

static uint32_t hunt_take_budget(void) {
    if (hak_load_relaxed(&hak_hunt_steps) == 0) {
        uint32_t refused = hak_load_relaxed(&hak_hunt_refused);
        hak_store_relaxed(&hak_hunt_refused, refused + 1);
        if (refused % HUNT_REFUSALS != 0) {
            return 0;
        }
    }
    uint64_t now = hak_os_now_ns() / HAK_EVENT_STEP_NS + 1;
    uint64_t last = hak_load_relaxed(&hak_hunt_period);
    /* each period is granted once, and only to whoever moves the word forward */
    bool is_mine = now > last && hak_cas_acquire(&hak_hunt_period, &last, now);
    uint64_t steps = is_mine ? hak_least(now - last, HUNT_BURST_STEPS) * HUNT_PERIOD_STEPS : 0;
    steps += hak_swap_acquire(&hak_hunt_steps, 0); /* pairs with the release of another hunt */
    return (uint32_t)hak_least(steps, HUNT_BURST_STEPS);
}

/* --- places ----------------------------------------------------------------------------------- */

/* The slab of an address where a block of the class starts; NULL: there is none. */
static hak_slab_t *hunt_slab_of(const void *address, unsigned sc) {
    uintptr_t index = hak_pagemap_index(hak_pagemap_base(), address);
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    if ((uintptr_t)address >> 48 != 0 || !hak_slab_is_entry(entry) ||
        hak_sc_of_entry(entry) != sc) {
        return NULL;
    }
    hak_superslab_t *superslab = hak_pagemap_superslab_at(index, address);
    if (superslab == NULL) {
        return NULL; /* it was unmapped after the first look */
    }
    hak_slab_t *slab = hak_slab_in(superslab, address);
    uint32_t unit = (uint32_t)((const hak_unit_record_t *)slab - superslab->unit);
    uint32_t offset = (uint32_t)((uintptr_t)address % HAK_SUPERSLAB_BYTES) - unit * HAK_UNIT_BYTES;
    return hak_sc_index(&hak_sc_info[sc], offset) < hak_sc_info[sc].blocks ? slab : NULL;
}

/* The first word of a block that another thread may have, or the program by now: a hint. */
static HAK_UNORDERED uintptr_t hunt_word(const void *block) {
    return hak_tags_are_on() ? hak_tag_link_word(block)
                             : *(const volatile uintptr_t *)block ^ hak_link_mask(block);
}

/* Whether the block is marked as free. Without the owner's lock: of a block in use the bit is clear
 * and stays so, whatever happens to those beside it, and the slab stays. */
static HAK_UNORDERED bool hunt_is_marked(const hak_slab_t *slab, const void *block) {
    const volatile hak_slab_t *now = slab;
    const volatile uint64_t *bits = now->bits;
    uint32_t index = hak_slab_index(slab, block);
    return index < now->carved && (bits[index / 64] >> index % 64 & 1) != 0;
}

/* Whether the list leads to the block. What it leads along must stay mapped meanwhile. */
static bool hunt_list(hunt_t *hunt, const void *head) {
    while (hunt->steps != 0 && hunt_slab_of(head, hunt->sc) != NULL) {
        hunt->steps--;
        if (head == hunt->block) {
            return true;
        }
        uintptr_t word = hunt_word(head);
        if (!hak_link_looks_free(word)) {
            return false;
        }
        head = hak_link_next(word);
    }
    return false;
}

/* The thread's own lists do not change meanwhile, and their blocks keep their slabs. */
static bool hunt_own(hunt_t *hunt) {
    const hak_tcache_t *tcache = hak_tcache_self(hak_pagemap_base());
    return hunt_list(hunt, tcache->bin[hunt->sc].head) ||
           hunt_list(hunt, tcache->side[hunt->sc].outbox.head);
}

/* The lists of the slab; its owner's lock keeps it from retiring. */
static bool hunt_slab(hunt_t *hunt, const hak_slab_t *slab) {
    bool is_found = false;
    const hak_owner_t *refused = NULL;
    for (unsigned tries = 0; tries < HUNT_TRIES && hunt->steps != 0; tries++) {
        hak_owner_t *owner = hak_load_acquire(&slab->owner); /* pairs REMOTE-3 */
        if (owner == refused) {                              /* or between two owners */
            continue;
        }
        if (!hak_owner_try(owner)) {
            refused = owner;
            hunt->steps -= (uint32_t)hak_least(hunt->steps, HUNT_REFUSED_STEPS);
            continue;
        }
        bool is_owner = hak_load_relaxed(&slab->owner) == owner; /* else it was adopted meanwhile */
        /* it may have retired, and its place have another slab now */
        if (is_owner && hunt_slab_of(hunt->block, hunt->sc) == slab) {
            is_found = hunt_list(hunt, slab->free) ||
                       hunt_list(hunt, hak_remote_head(hak_load_relaxed(&slab->remote)));
        }
        hak_owner_leave(owner);
        if (is_owner) {
            break;
        }
    }
    return is_found;
}

/* A list of another thread. Its blocks may be handed out, freed and their slabs retire meanwhile;
 * no superslab is unmapped as long as the lock is held and the page map shows its slabs. */
static bool hunt_foreign_list(hunt_t *hunt, void *const *head) {
    unsigned sights = 0;
    if (hak_load_relaxed(head) == NULL) {
        return false;
    }
    hak_lock_acquire(HAK_LOCK_SPAN);
    while (sights < HUNT_SIGHTS && hunt_list(hunt, hak_load_relaxed(head))) {
        sights++;
    }
    hak_lock_release(HAK_LOCK_SPAN);
    return sights == HUNT_SIGHTS;
}

/* Those of threads that ended stay in the registry for ever: each costs a step, too. */
static bool hunt_tcache(hak_tcache_t *tcache, void *context) {
    hunt_t *hunt = context;
    bool is_other = tcache != hak_tcache_self(hak_pagemap_base());
    hunt->steps -= hunt->steps != 0;
    if (is_other && !hak_tcache_is_left(tcache)) {
        hunt->is_found = hunt_foreign_list(hunt, &tcache->bin[hunt->sc].head) ||
                         hunt_foreign_list(hunt, &tcache->side[hunt->sc].outbox.head);
    }
    return !hunt->is_found && hunt->steps != 0;
}

/* --- hunts ------------------------------------------------------------------------------------ */

/* The block has the tag of a free one. */
static bool hunt_lists(const void *block, const hak_slab_t *slab, unsigned sc) {
    uint32_t budget = hunt_take_budget();
    hunt_t hunt = {.block = block, .sc = sc, .steps = budget + HUNT_LEAST_STEPS};
    hunt.is_found = hunt_own(&hunt);
    if (budget != 0 && !hunt.is_found) {
        hunt.is_found = hunt_slab(&hunt, slab);
        if (!hunt.is_found && hunt.steps != 0) {
            hak_tcache_visit(hunt_tcache, &hunt);
        }
    }
    hak_add_relaxed(&hak_hunt_steps, hunt.steps < budget ? hunt.steps : budget);
    return hunt.is_found;
}

/* A block is cleared when it is freed, its canary too. */
static bool hunt_lacks_canary(const void *block, unsigned sc) {
    void *stripped = hak_tag_strip(block);
    const uint64_t *canary = hak_harden_canary_at(stripped, hak_sc_info[sc].bytes);
    uint64_t found = hak_tags_are_on() ? hak_tag_peek((const uintptr_t *)canary) : *canary;
    return found != hak_harden_canary(stripped);
}

bool hak_hunt(const void *block) {
    unsigned sc = hak_sc_of_entry(hak_pagemap_get(hak_pagemap_base(), block));
    const hak_slab_t *slab = hunt_slab_of(block, sc);
    if (slab == NULL || hunt_is_marked(slab, block)) {
        return slab != NULL; /* else watched, which is in no list; or its slab has retired */
    }
    uintptr_t word = hunt_word(block);
    const void *next = hak_link_next(word);
    /* else it is no link of ours, which is cheap to find out */
    if (!hak_link_looks_free(word) || (next != NULL && hunt_slab_of(next, sc) == NULL)) {
        return false;
    }
    return HAK_HARDEN ? hunt_lacks_canary(block, sc) : hunt_lists(block, slab, sc);
}

void hak_hunt_mark(const void *block) {
    unsigned sc = hak_sc_of_entry(hak_pagemap_get(hak_pagemap_base(), block));
    const hak_slab_t *slab = hunt_slab_of(block, sc);
    if (slab == NULL || hunt_is_marked(slab, block)) { /* its slab has retired, or will give it */
        hak_fatal(HAK_FATAL_DOUBLE_FREE, block, NULL);
    }
}
