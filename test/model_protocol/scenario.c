/* SPDX-License-Identifier: MIT
 *
 * What runs at a time. The transitions are those of docs/remote-free.md. Everything starts at rest;
 * afterwards whoever is left takes home what waits, and every block must be where it belongs. */
#include "scenario.h"

/* One owner, `count` blocks of unit 0 in use, the slab FULL. */
static void one_slab(unsigned owners, unsigned count) {
    world_start(owners, 1);
    world_slab(1, count);
    hak_slab_release_current(world_home[1]);
}

void before_one(void) {
    one_slab(1, 3);
}

void push_first(void) {
    world_push(0, 0, 1);
}

static void push_second(void) {
    world_push(0, 1, 1);
}

void push_two_and_one(void) {
    world_push(0, 0, 2);
    world_push(0, 2, 1);
}

static void push_one_by_one(void) {
    world_push(0, 0, 1);
    world_push(0, 1, 1);
}

static void push_third(void) {
    world_push(0, 2, 1);
}

static void push_last_two(void) {
    world_push(0, 1, 2);
}

void tick_1(void) {
    world_tick(1);
}

static void tick_1_twice(void) {
    world_tick(1);
    world_tick(1);
}

void refill_1(void) {
    world_refill(1);
}

void refill_2(void) {
    world_refill(2);
}

static void adopt_2(void) {
    world_adopt(2);
}

static void adopt_3(void) {
    world_adopt(3);
}

/* --- one owner -----------------------------------------------------------------------------------
 */

static void refill_1_twice(void) {
    world_refill(1);
    world_refill(1);
}

/* Two slabs: the budget of a visit is one, so the other one stays in `ready`. */
void before_two_slabs(void) {
    world_start(1, 2);
    world_slab(1, 2);
    world_slab(1, 2);
    hak_slab_release_current(world_home[1]);
}

void push_other(void) {
    world_push(1, 0, 1);
}

/* --- adoption ------------------------------------------------------------------------------------
 */

/* The slab has one free block and is PARTIAL. */
static void partial_slab(unsigned owners) {
    one_slab(owners, 3);
    world_give(1, 0, 2);
}

/* Owner 1 is idle, so its slab is there to be adopted. */
static void idle_owner(unsigned owners) {
    partial_slab(owners);
    hak_owner_part(world_home[1]);
}

void before_idle_2(void) {
    idle_owner(2);
}

static void before_idle_3(void) {
    idle_owner(3);
}

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
    hak_owner_part(world_home[1]);
}

static void push_both(void) {
    world_push(1, 1, 1);
    world_push(0, 1, 1);
}

static void refill_2_drain_1(void) {
    world_refill(2);
    world_tick(1);
}

static void before_join(void) {
    partial_slab(2);
}

/* A thread starts and gets an owner that comes to be for it; another exits; the slab is adopted. */
static void join_part_refill(void) {
    world_home[3] = hak_owner_join(HAK_PARTITION_ANY);
    hak_owner_part(world_home[1]);
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

/* --- retirement, exit, sorting -------------------------------------------------------------------
 */

static void before_last_blocks(void) {
    one_slab(2, 2);
}

/* The slab retires; its unit is made a slab anew, by another owner, whose block is pushed too. */
static void tick_1_create(void) {
    world_tick(1);
    world_refill(2);
}

static void before_current(void) {
    world_start(1, 1);
    world_slab(1, 3);
}

static void exit_1(void) {
    world_push(0, 1, 1);
    hak_owner_part(world_home[1]);
}

static void part_1(void) {
    hak_owner_part(world_home[1]);
}

static void join_part(void) {
    hak_owner_part(hak_owner_join(HAK_PARTITION_ANY));
}

static void flush_1(void) {
    world_flush(1, 0, 0, 1);
}

static void flush_2(void) {
    world_flush(2, 0, 1, 1);
}

/* ---------------------------------------------------------------------------------------------- */

const model_scenario_t world_scenarios[] = {
    {"push",
     before_one,
     {push_two_and_one, tick_1_twice},
     world_settle,
     MARK(MORE) | MARK(RETIRE) | MARK(EARLY)},
    {"refill", before_one, {push_two_and_one, refill_1_twice}, world_settle, MARK(MORE)},
    {"two_pushers",
     before_one,
     {push_first, push_last_two, tick_1_twice},
     world_settle,
     MARK(MORE) | MARK(RETIRE) | MARK(EARLY)},
    {"early",
     before_one,
     {push_first, push_last_two, refill_1},
     world_settle,
     MARK(MORE) | MARK(EARLY)},
    {"late",
     before_one,
     {push_one_by_one, push_third, tick_1_twice},
     world_settle,
     MARK(MORE) | MARK(EARLY) | MARK(RETIRE)},
    {"two_slabs",
     before_two_slabs,
     {push_first, push_other, tick_1_twice},
     world_settle,
     MARK(FIRST)},
    {"two_drainers",
     before_one,
     {push_two_and_one, tick_1, refill_1},
     world_settle,
     MARK(MORE) | MARK(BUSY)},
    {"adopt",
     before_idle_2,
     {push_first, tick_1, refill_2},
     world_settle,
     MARK(ADOPT) | MARK(FORWARD)},
    {"adopt_drain",
     before_idle_2,
     {push_one_by_one, refill_2_drain_1},
     world_settle,
     MARK(ADOPT) | MARK(FORWARD)},
    {"adopt_twice",
     before_idle_3,
     {push_first, adopt_2, adopt_3},
     world_settle,
     MARK(ADOPT) | MARK(FORWARD)},
    {"adopt_any",
     before_join,
     {push_first, refill_1, refill_2},
     world_settle,
     MARK(ADOPT) | MARK(BUSY)},
    {"adopt_ready", before_ready, {push_both, refill_2}, world_settle, MARK(ADOPT) | MARK(FORWARD)},
    {"new_owner", before_join, {push_first, join_part_refill}, world_settle, MARK(ADOPT)},
    {"forward", before_forward, {tick_1, new_owner_takes}, world_settle, MARK(FORWARD)},
    {"retire",
     before_last_blocks,
     {push_first, push_second, tick_1_create},
     world_settle,
     MARK(RETIRE) | MARK(CREATE_ANEW) | MARK(MORE)},
    {"exit", before_current, {push_first, exit_1, tick_1}, world_settle, MARK(MORE)},
    {"exit_adopt", before_join, {push_first, part_1, refill_2}, world_settle, MARK(ADOPT)},
    {"exit_join", before_join, {push_first, part_1, join_part}, world_settle, 0},
    {"collect",
     before_idle_2,
     {push_one_by_one, hak_owner_collect, refill_2},
     world_settle,
     MARK(ADOPT)},
    {"flush", before_idle_2, {flush_1, flush_2, refill_2}, world_settle, MARK(ADOPT) | MARK(OWN)},
    {0},
};
