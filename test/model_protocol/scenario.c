/* SPDX-License-Identifier: MIT
 *
 * What runs at a time. The transitions are those of docs/remote-free.md. Everything starts at rest;
 * afterwards whoever is left takes home what waits, and every block must be where it belongs. */
#include "scenario.h"

STEP(push_second, world_push(0, 1, 1))
STEP(push_one_by_one, world_push(0, 0, 1); world_push(0, 1, 1))
STEP(push_third, world_push(0, 2, 1))
STEP(push_last_two, world_push(0, 1, 2))
STEP(tick_1_twice, world_tick(1); world_tick(1))
STEP(adopt_2, world_adopt(2))
STEP(adopt_3, world_adopt(3))
STEP(refill_3, world_refill(3))

/* --- one owner -------------------------------------------------------------------------------- */

STEP(refill_1_twice, world_refill(1); world_refill(1))

/* --- adoption --------------------------------------------------------------------------------- */

STEP(before_idle_3, idle_owner(3))

/* Two slabs of an idle owner, both pending, one of them in `ready` already. */
static void before_ready(void) {
    world_start(2, 2);
    world_slab(1, 3);
    world_slab(1, 3);
    for (unsigned unit = 0; unit < 2; unit++) {
        world_give(1, unit, 2);
    }
    hak_slab_release_current(world_home[1]);
    world_push(1, 0, 1);
    world_push(0, 0, 1);
    hak_remote_drain(world_home[1], 1);
    hak_owner_quit(world_home[1]);
}

STEP(push_both, world_push(1, 1, 1); world_push(0, 1, 1))
STEP(refill_2_drain_1, world_refill(2); world_tick(1))
STEP(before_join, partial_slab(2))

/* A thread starts and gets an owner that comes to be for it; another exits; the slab is adopted. */
static void join_part_refill(void) {
    world_home[3] = hak_owner_join(HAK_PARTITION_ANY);
    hak_owner_quit(world_home[1]);
    world_refill(3);
}

/* The slab is owner 2's and waits in the queue of owner 1, as after an adoption. */
static void before_forward(void) {
    one_slab(2, 3);
    world_push(0, 0, 1);
    hak_slab_change_owner(world_slab_of(0), world_home[2]);
}

/* Owner 3 comes to be and gets the slab from owner 2. */
static void new_owner_takes(void) {
    world_home[3] = hak_owner_join(HAK_PARTITION_ANY);
    if (hak_owner_try_lock(world_home[2])) {
        hak_slab_change_owner(world_slab_of(0), world_home[3]);
        hak_owner_unlock(world_home[2]);
    }
}

/* --- retirement, exit, sorting ---------------------------------------------------------------- */

STEP(before_last_blocks, one_slab(2, 2))

/* The slab retires; its unit is made a slab anew, by another owner, whose block is pushed too. */
STEP(tick_1_create, world_tick(1); world_refill(2))
STEP(before_current, world_start(1, 1); world_slab(1, 3))
STEP(exit_1, world_push(0, 1, 1); hak_owner_quit(world_home[1]))
STEP(part_1, hak_owner_quit(world_home[1]))
STEP(join_part, hak_owner_quit(hak_owner_join(HAK_PARTITION_ANY)))
STEP(flush_1, world_flush(1, world_blocks(0, 0, 1)))
STEP(flush_2, world_flush(2, world_blocks(0, 1, 1)))

/* --- bins with blocks of two owners ------------------------------------------------------------
 */

static void two_homes(unsigned owners) {
    world_start(owners, 2);
    world_slab(1, 3);
    world_slab(2, 3);
    hak_slab_release_current(world_home[1]);
    hak_slab_release_current(world_home[2]);
}

/* A thread whose home is the owner flushes a bin with a block of each slab. */
static void flush_mixed(unsigned owner, unsigned first, unsigned second) {
    hak_blocks_t blocks = world_blocks(0, first, 1);
    hak_link_set(blocks.head, world_blocks(1, second, 1).head);
    blocks.count++;
    world_flush(owner, blocks);
}

STEP(before_mixed, two_homes(2))
STEP(before_mixed_3, two_homes(3))
STEP(mixed_1, flush_mixed(1, 0, 0))
STEP(mixed_2, flush_mixed(2, 1, 1))
STEP(mixed_3, flush_mixed(3, 1, 1))
STEP(tick_2, world_tick(2))

/* The other blocks of both slabs come home by the same bin: the slabs retire. */
STEP(mixed_1_all, flush_mixed(1, 0, 0); flush_mixed(1, 1, 1))
STEP(mixed_2_last, flush_mixed(2, 2, 2))

/* The slab of unit 0 is an idle owner's, with a block to take. */
static void before_mixed_adopt(void) {
    two_homes(3);
    world_give(1, 0, 2);
    hak_owner_quit(world_home[1]);
}

/* ---------------------------------------------------------------------------------------------- */

const model_scenario_t world_scenarios[] = {
    SCENARIO(push, before_one, MARK(MORE) | MARK(RETIRE) | MARK(EARLY), push_two_and_one,
             tick_1_twice),
    SCENARIO(refill, before_one, MARK(MORE), push_two_and_one, refill_1_twice),
    SCENARIO(two_pushers, before_one, MARK(MORE) | MARK(RETIRE) | MARK(EARLY), push_first,
             push_last_two, tick_1_twice),
    SCENARIO(early, before_one, MARK(MORE) | MARK(EARLY), push_first, push_last_two, refill_1),
    SCENARIO(late, before_one, MARK(MORE) | MARK(EARLY) | MARK(RETIRE), push_one_by_one, push_third,
             tick_1_twice),
    SCENARIO(two_slabs, before_two_slabs, MARK(FIRST), push_first, push_other, tick_1_twice),
    SCENARIO(two_drainers, before_one, MARK(MORE) | MARK(BUSY), push_two_and_one, tick_1, refill_1),
    SCENARIO(adopt, before_idle_2, MARK(ADOPT) | MARK(FORWARD), push_first, tick_1, refill_2),
    SCENARIO(adopt_drain, before_idle_2, MARK(ADOPT) | MARK(FORWARD), push_one_by_one,
             refill_2_drain_1),
    SCENARIO(adopt_twice, before_idle_3, MARK(ADOPT) | MARK(FORWARD), push_first, adopt_2, adopt_3),
    SCENARIO(adopt_any, before_join, MARK(ADOPT) | MARK(BUSY), push_first, refill_1, refill_2),
    SCENARIO(adopt_ready, before_ready, MARK(ADOPT) | MARK(FORWARD), push_both, refill_2),
    SCENARIO(new_owner, before_join, MARK(ADOPT), push_first, join_part_refill),
    SCENARIO(forward, before_forward, MARK(FORWARD), tick_1, new_owner_takes),
    SCENARIO(retire, before_last_blocks, MARK(RETIRE) | MARK(CREATE_ANEW) | MARK(MORE), push_first,
             push_second, tick_1_create),
    SCENARIO(exit, before_current, MARK(MORE), push_first, exit_1, tick_1),
    SCENARIO(exit_adopt, before_join, MARK(ADOPT), push_first, part_1, refill_2),
    SCENARIO(exit_join, before_join, 0, push_first, part_1, join_part),
    SCENARIO(collect, before_idle_2, MARK(ADOPT), push_one_by_one, hak_owner_collect, refill_2),
    SCENARIO(flush, before_idle_2, MARK(ADOPT) | MARK(OWN), flush_1, flush_2, refill_2),
    SCENARIO(mixed, before_mixed, MARK(OWN) | MARK(FIRST), mixed_1, mixed_2),
    SCENARIO(mixed_foreign, before_mixed_3, MARK(OWN) | MARK(FIRST) | MARK(MORE), mixed_1, mixed_3,
             tick_2),
    SCENARIO(mixed_retire, before_mixed, MARK(OWN) | MARK(RETIRE), mixed_1_all, mixed_2_last),
    SCENARIO(mixed_adopt, before_mixed_adopt, MARK(OWN) | MARK(ADOPT), mixed_2, refill_3),
    {0},
};
