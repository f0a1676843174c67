/* SPDX-License-Identifier: MIT
 *
 * What scenario.c and fork.c share: beginnings, and things that threads do. */
#ifndef MODEL_SCENARIO_H
#define MODEL_SCENARIO_H

#include "world.h"

#define MARK(name) (1u << MARK_##name)
/* Marks that must be reached, then the threads. */
#define SCENARIO(name, before, marks, ...)                                                         \
    { #name, before, {__VA_ARGS__ }, world_settle, marks }

/* One owner, `count` blocks of unit 0 in use, the slab FULL. */
static inline void one_slab(unsigned owners, unsigned count) {
    world_start(owners, 1);
    world_slab(1, count);
    hak_slab_release_current(world_home[1]);
}

/* The slab has one free block and is PARTIAL. */
static inline void partial_slab(unsigned owners) {
    one_slab(owners, 3);
    world_give(1, 0, 2);
}

/* Owner 1 is idle, so its slab is there to be adopted. */
static inline void idle_owner(unsigned owners) {
    partial_slab(owners);
    hak_owner_quit(world_home[1]);
}

/* Two slabs: the budget of a visit is one, so the other one stays in `ready`. */
static inline void before_two_slabs(void) {
    world_start(1, 2);
    world_slab(1, 2);
    world_slab(1, 2);
    hak_slab_release_current(world_home[1]);
}

STEP(before_one, one_slab(1, 3))
STEP(before_idle_2, idle_owner(2))
STEP(push_first, world_push(0, 0, 1))
STEP(push_other, world_push(1, 0, 1))
STEP(push_two_and_one, world_push(0, 0, 2); world_push(0, 2, 1))
STEP(tick_1, world_tick(1))
STEP(refill_1, world_refill(1))
STEP(refill_2, world_refill(2))

#endif
