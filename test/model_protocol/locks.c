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

/* --- one thread -------------------------------------------------------------------------------
 *
 * While the C library's word is set there is one thread. It clears the word and starts another one,
 * here by a store that the other acquires, inside a section, as a hook of the C library may. */
static uint32_t is_started; /* [atomic] */

static void before_single(void) {
    world_start(2, 1);
    is_started = 0;
    model_single_threaded = 1;
    model_share(MODEL_WORD(&model_single_threaded));
    model_share(MODEL_WORD(&is_started));
}

static bool try_1(bool starts) {
    hak_owner_t *owner = world_home[1];
    if (!hak_lock_try(&owner->lock)) {
        return false;
    }
    MODEL_CHECK(!hak_lock_try(&owner->lock), "a lock is taken twice");
    if (starts) {
        hak_store_relaxed(&model_single_threaded, 0);
        hak_store_release(&is_started, 1);
    }
    owner->slab_count[WORLD_SC]++;
    hak_lock_unlock(&owner->lock);
    return true;
}

STEP(start_inside, try_1(false); try_1(true); try_1(false))

static void once_started(void) {
    if (hak_load_acquire(&is_started) != 0) {
        model_reach(try_1(false) ? MARK_LATE : MARK_BUSY);
    }
}

STEP(after_single, model_single_threaded = 0; uint32_t sum = world_home[1]->slab_count[WORLD_SC];
     MODEL_CHECK(sum - 2 <= 3, "RF-1: two held an owner at a time"))

#define BY_THREE(name, before, step, after)                                                        \
    { name, before, {step, step, step}, after, 1u << MARK_SLEEP }

const model_scenario_t lock_scenarios[] = {
    BY_THREE("lock", before_lock, lock_and_count, after_count),
    BY_THREE("enter", before_enter, enter_and_leave, after_enter),
    {"single",
     before_single,
     {start_inside, once_started, once_started},
     after_single,
     1u << MARK_BUSY | 1u << MARK_LATE},
    {0},
};
