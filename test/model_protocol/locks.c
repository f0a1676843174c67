/* SPDX-License-Identifier: MIT
 *
 * Locks that are waited for: os/lock.c, and what threads do when every owner is held. */
#include "world.h"

static unsigned counter; /* [lock REGISTRY] */

STEP(before_lock, world_start(2, 1); counter = 0)

static void lock_and_count(void) {
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    counter++;
    hak_lock_release(HAK_LOCK_REGISTRY);
}

STEP(after_count, MODEL_CHECK(counter == 3, "two held a lock at a time"))

/* Two owners, and no memory for a third one. */
static void before_enter(void) {
    world_start(2, 1);
    while (hak_meta_alloc(0) != NULL) {
    }
}

static void enter_and_leave(void) {
    hak_owner_t *owner = hak_owner_lock(world_home[1]);
    owner->slab_count[WORLD_SC]++;
    hak_owner_unlock(owner);
}

STEP(after_enter,
     unsigned sum = world_home[1]->slab_count[WORLD_SC] + world_home[2]->slab_count[WORLD_SC];
     MODEL_CHECK(sum == 3, "RF-1: two held an owner at a time"))

#define BY_THREE(name, before, step, after)                                                        \
    { name, before, {step, step, step}, after, 1u << MARK_SLEEP }

const model_scenario_t lock_scenarios[] = {
    BY_THREE("lock", before_lock, lock_and_count, after_count),
    BY_THREE("enter", before_enter, enter_and_leave, after_enter),
    {0},
};
