/* SPDX-License-Identifier: MIT
 *
 * Parked owners: what a thread leaves behind when it exits. HAK_LOCK_REGISTRY makes its holder the
 * owner of every parked owner (SLAB-6). Cases of adoption:
 *   1. a new thread takes a parked owner over whole;
 *   2. a thread that needs blocks of a class takes one slab from a parked owner;
 *   3. a tick drains parked owners, so slabs that others emptied retire. */
#include "os/lock.h"
#include "slab/remote.h"
#include "slab/slab.h"

enum {
    ADOPT_VISITS = 4, /* parked owners looked at for one slab: bounds the work of a refill */
    ADOPT_DRAIN_BUDGET = 256, /* slabs drained per parked owner visited */
};

HAK_LOCKED_STATE hak_list_t hak_parked = {&hak_parked,
                                          &hak_parked}; /* [lock REGISTRY] newest first */
HAK_LOCKED_STATE uint32_t hak_parked_count; /* [atomic] length of it; a hint without the lock */

static hak_owner_t *owner_of_link(hak_list_t *link) {
    return HAK_CONTAINER_OF(link, hak_owner_t, parked_link);
}

void hak_owner_park(hak_owner_t *owner) {
    hak_remote_drain(owner, ADOPT_DRAIN_BUDGET);
    hak_slab_release_current(owner);
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    owner->is_parked = true;
    hak_list_push_front(&hak_parked, &owner->parked_link);
    hak_store_relaxed(&hak_parked_count, hak_parked_count + 1);
    hak_lock_release(HAK_LOCK_REGISTRY);
}

hak_owner_t *hak_owner_unpark(void) {
    hak_owner_t *owner = NULL;
    if (hak_load_relaxed(&hak_parked_count) == 0) {
        return NULL;
    }
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    if (!hak_list_is_empty(&hak_parked)) {
        owner = owner_of_link(hak_parked.next);
        hak_list_remove(&owner->parked_link);
        owner->is_parked = false;
        hak_store_relaxed(&hak_parked_count, hak_parked_count - 1);
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
    return owner;
}

/* Looks at one parked owner and sends it to the end of the list, so that visits go round. */
static hak_owner_t *parked_rotate(void) {
    hak_owner_t *owner = owner_of_link(hak_parked.next);
    hak_list_remove(&owner->parked_link);
    hak_list_push_back(&hak_parked, &owner->parked_link);
    hak_remote_drain(owner, ADOPT_DRAIN_BUDGET);
    return owner;
}

hak_slab_t *hak_slab_adopt(hak_owner_t *owner, unsigned sc) {
    hak_slab_t *slab = NULL;
    if (hak_load_relaxed(&hak_parked_count) == 0) {
        return NULL;
    }
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    unsigned visits = hak_parked_count < ADOPT_VISITS ? hak_parked_count : ADOPT_VISITS;
    while (visits-- > 0 && slab == NULL) {
        hak_owner_t *from = parked_rotate();
        if (!hak_list_is_empty(&from->partial[sc])) {
            slab = HAK_CONTAINER_OF(from->partial[sc].next, hak_slab_t, link);
            hak_list_remove(&slab->link);
            hak_slab_change_owner(slab, owner);
            hak_owner_add(&owner->counters.refill_adopt, 1);
        }
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
    return slab;
}

void hak_owner_drain_parked(unsigned budget) {
    if (hak_load_relaxed(&hak_parked_count) == 0) {
        return;
    }
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    for (unsigned visits = hak_parked_count < budget ? hak_parked_count : budget; visits > 0;
         visits--) {
        hak_owner_t *owner = owner_of_link(hak_parked.next);
        if (hak_remote_is_pending(owner)) {
            parked_rotate();
        } else {
            hak_list_remove(&owner->parked_link);
            hak_list_push_back(&hak_parked, &owner->parked_link);
        }
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
}
