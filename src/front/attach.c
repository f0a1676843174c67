/* SPDX-License-Identifier: MIT
 *
 * How a thread gets its tcaches, and leaves them. */
#include "front/attach.h"

#include "front/abandoned.h"
#include "front/budget.h"
#include "front/fast.h"
#include "os/lock.h"
#include "os/os.h"

HAK_LOCKED_STATE uint32_t hak_tcache_count;        /* [lock REGISTRY] */
HAK_LOCKED_STATE hak_tcache_t *hak_unused_tcaches; /* [lock REGISTRY] newest first */
HAK_LOCKED_STATE uint32_t hak_tcache_search_count; /* [lock REGISTRY] searches from so many on */

HAK_LOCKED_STATE hak_tcache_group_t *hak_tcache_group; /* [lock REGISTRY] the one in use */
HAK_LOCKED_STATE unsigned hak_tcache_group_left;       /* [lock REGISTRY] tcaches left in it */
/* [thread] Of the first tcache, which is no group's. */
HAK_LARGE_STATE(5) HAK_LINE_ALIGNED hak_bin_side_t hak_tcache_first_far[HAK_SIDES_FAR];

/* --- attachment ------------------------------------------------------------------------------- */

/* REGISTRY is held. The first tcache, all that most processes have, is alone. */
static hak_tcache_t *tcache_cut(hak_bin_side_t **far_side) {
    if (hak_tcache_count == 0) {
        *far_side = hak_tcache_first_far;
        return hak_meta_alloc(sizeof(hak_tcache_t));
    }
    if (hak_tcache_group_left == 0) {
        hak_tcache_group_t *group = hak_tcache_group_begin();
        if (group == NULL) {
            return NULL;
        }
        hak_tcache_group = group;
        hak_tcache_group_left = HAK_GROUP_TCACHES;
    }
    unsigned i = HAK_GROUP_TCACHES - hak_tcache_group_left--;
    *far_side = hak_tcache_group->far_side[i];
    return &hak_tcache_group->tcache[i];
}

/* Finds an attached tcache that the calling thread has lost, by the address of its TLS word, which
 * no other living thread has. The main thread's TLS is set up afresh after relocation, when IFUNC
 * resolvers may have allocated. A thread whose first use was in the last round of its destructors
 * ends without its exit hook; a later thread with TLS at the same address takes its tcache. IDs
 * would not do: the child of a bare clone() in a new PID namespace may reuse an ID of the parent's.
 * One that its thread left in the middle of a change is nobody's any more (tcache_abandon).
 * A search that finds nothing is not repeated before the tcaches are a quarter more: about five
 * steps per tcache in all. REGISTRY is held. */
static hak_tcache_t *tcache_lost(void) {
    hak_tcache_t *found = NULL;
    if (hak_unused_tcaches == NULL && hak_tcache_count >= hak_tcache_search_count) {
        found = hak_load_acquire(&hak_all_tcaches); /* pairs TCACHES */
        while (found != NULL && (!found->is_attached || found->thread != &hak_tcache_offset ||
                                 found->changing != 0)) {
            found = found->next;
        }
        if (found == NULL) {
            hak_tcache_search_count = hak_tcache_count + hak_tcache_count / 4 + 1;
        }
    }
    return found;
}

/* An unused tcache, or a new one with its far sides. REGISTRY is held. */
static hak_tcache_t *tcache_find(hak_bin_side_t **far_side) {
    hak_tcache_t *tcache = hak_unused_tcaches;
    if (tcache != NULL) {
        hak_tcache_reuse(tcache);
        if (tcache->changing != 0) {
            hak_tcache_forget(tcache);
        }
        return tcache;
    }
    tcache = tcache_cut(far_side);
    hak_tcache_count += tcache != NULL;
    return tcache;
}

typedef struct arrival {
    const void *thread; /* address of its TLS word; NULL: a second tcache, which is never lost */
    uint32_t thread_id;
    uint16_t initial_bytes;
    hak_owner_t *home;
} arrival_t;

/* REGISTRY is held, or nobody else can find the tcache yet. A lost tcache keeps its home and its
 * second tcache. A signal handler that allocates afterwards finds this tcache as lost. */
static void tcache_enter(hak_tcache_t *tcache, const arrival_t *arrival, bool is_lost) {
    if (!is_lost) {
        hak_tcache_set_home(tcache, arrival->home);
        tcache->second = NULL;
        tcache->initial_bytes = arrival->initial_bytes;
        tcache->taken_bytes = tcache->given_bytes = 0;
        if (tcache->tally != NULL) {
            *tcache->tally = (hak_tally_t){0};
        }
    }
    tcache->thread_id = arrival->thread_id;
    tcache->thread = arrival->thread;
    tcache->event_step = 0; /* of an earlier thread, which may have ended inside an operation */
    tcache->is_refilling = false;
    tcache->changing = 0;
    tcache->is_attached = true;
}

/* One locked section, as threads that start contend most for this lock. A new tcache is
 * entered without it, as its first touch costs a page fault. NULL: metadata is out. */
static HAK_COLD hak_tcache_t *tcache_attach(hak_partition_t partition, const void *thread) {
    hak_bin_side_t *far_side = NULL; /* of a new one */
    hak_budget_join(); /* first, so that the child of a fork knows that there may be a user */
    arrival_t arrival = {thread, hak_os_thread_id(), (uint16_t)hak_budget_initial_bytes(),
                         hak_owner_join(partition)};
    if (arrival.home == NULL) {
        hak_budget_quit();
        return NULL;
    }
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    hak_tcache_t *lost = thread != NULL ? tcache_lost() : NULL;
    hak_tcache_t *tcache = lost != NULL ? lost : tcache_find(&far_side);
    if (tcache != NULL && far_side == NULL) {
        tcache_enter(tcache, &arrival, lost != NULL);
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
    if (lost != NULL || tcache == NULL) {
        hak_owner_quit(arrival.home);
        hak_budget_quit();
    } else if (far_side != NULL) {
        tcache->far_side = far_side;
        tcache_enter(tcache, &arrival, false);
        tcache->next = hak_load_relaxed(&hak_all_tcaches);
        while (!hak_cas_release(&hak_all_tcaches, &tcache->next, tcache)) { /* pairs TCACHES */
        }
        if (tcache->next != NULL) {
            hak_store_release(&tcache->next->before, tcache); /* pairs TCACHES */
        }
    }
    if (HAK_HARDEN && tcache != NULL) {
        hak_quarantine_attach(tcache);
    }
    return tcache;
}

HAK_COLD hak_tcache_t *hak_tcache_attach(void) {
    hak_tcache_t *tcache = tcache_attach(HAK_PARTITION_ANY, &hak_tcache_offset);
    if (tcache != NULL) {
        hak_tcache_offset = (uintptr_t)tcache - hak_pagemap_base();
    }
    return tcache;
}

void hak_tcache_attach_second(hak_tcache_t *tcache) {
    hak_tcache_t *second = tcache_attach(HAK_PARTITION_PLAIN, NULL);
    if (second != NULL) {
        second->second = tcache;
        tcache->second = second;
    }
}

/* --- end -------------------------------------------------------------------------------------- */

/* All bins are empty. */
static void bins_end(hak_tcache_t *tcache) {
    hak_budget_give(tcache, tcache->drawn);
    for (uint64_t begun = tcache->begun; begun != 0; begun &= begun - 1) {
        hak_bin_end(tcache, hak_ctz(begun));
    }
    tcache->begun = 0;
}

static bool is_one_short(const void *block, int32_t count, unsigned sc) {
    uintptr_t map = hak_pagemap_base();
    for (; block != NULL && (uintptr_t)block >> 48 == 0 && count > 0; count--) {
        uint32_t entry = hak_pagemap_at(map, hak_pagemap_index(map, block));
        if (!hak_slab_is_entry(entry) || hak_sc_of_entry(entry) != sc) {
            return false; /* an overwritten link: the flush reports it */
        }
        block = hak_link_get(block);
    }
    return count == 1 && block == NULL;
}

/* A handler ended the thread between the stores that move a block and count it: the block is lost.
 */
static void count_interrupted(hak_tcache_t *tcache) {
    for (uint64_t begun = tcache->begun; begun != 0; begun &= begun - 1) {
        unsigned sc = hak_ctz(begun);
        hak_bin_t *bin = &tcache->bin[sc];
        int32_t count = hak_bin_side(tcache, sc)->total - bin->slots_left;
        if (is_one_short(bin->head, count, sc)) {
            bin->slots_left++;
            return;
        }
    }
}

static void tcache_end(hak_tcache_t *tcache) {
    count_interrupted(tcache);
    hak_bins_flush(tcache);
    bins_end(tcache);
    hak_budget_quit();
    hak_owner_quit(tcache->home);
    hak_wanted_serve();
}

/* Whether a trim is due. */
static bool tcache_set_unused(hak_tcache_t *tcache) {
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    tcache->is_attached = false;
    bool is_due = hak_tcache_unuse(tcache);
    hak_lock_release(HAK_LOCK_REGISTRY);
    return is_due;
}

/* A lock that the thread held stays locked: then others are hardly able to go on, and nothing is
 * tidied up. */
static HAK_COLD void tcache_abandon(hak_tcache_t *tcache) {
    tcache->changing = 1; /* for good */
    if (hak_lock_holds_none()) {
        hak_budget_give(tcache, tcache->drawn);
        hak_budget_quit();
        hak_owner_quit(tcache->home);
        hak_lock_acquire(HAK_LOCK_REGISTRY);
        tcache->thread = NULL;
        tcache->thread_id = 0;
        tcache->is_attached = false;
        hak_lock_release(HAK_LOCK_REGISTRY);
    }
}

bool hak_tcache_detach(hak_tcache_t *tcache) {
    hak_tcache_t *second = hak_tcache_behind(tcache, tcache);
    bool is_inside = tcache->changing != 0 || (second != NULL && second->changing != 0) ||
                     hak_in_unlocked_update != 0 || !hak_lock_holds_none();
    hak_tcache_offset = 0;
    if (HAK_UNLIKELY(is_inside)) {
        tcache_abandon(tcache);
        if (second != NULL) {
            tcache_abandon(second);
        }
        return false;
    }
    tcache_end(tcache);
    if (second != NULL) {
        tcache_end(second);
        (void)tcache_set_unused(second);
    }
    return tcache_set_unused(tcache);
}
