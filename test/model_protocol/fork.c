/* SPDX-License-Identifier: MIT
 *
 * Forks: at any step of the others the child is left alone with what there is then. */
#include "scenario.h"

static void fork_child(void) {
    hak_lock_fork_begin();
    model_stop_others();
    world_note_lost();
    hak_owner_after_fork(world_home[1], hak_lock_fork_is_clean);
    hak_lock_fork_end(true);
}

/* One of two slabs is in `ready` when it comes to the fork. */
static void fork_after_tick(void) {
    world_tick(1);
    fork_child();
}

static void before_pushed(void) {
    before_one();
    world_push(0, 0, 2);
}

/* No pusher is under way: nothing may be lost. */
static void fork_exact(void) {
    hak_lock_fork_begin();
    model_stop_others();
    hak_owner_after_fork(world_home[1], hak_lock_fork_is_clean);
    hak_lock_fork_end(true);
}

/* A slab of each of two owners. */
static void before_two_owners(void) {
    world_start(2, 2);
    for (unsigned owner = 1; owner <= 2; owner++) {
        world_slab(owner, 2);
        hak_slab_release_current(world_home[owner]);
    }
}

/* A thread that meets a fatal error may keep an owner for ever. */
static void keep_1(void) {
    hak_lock_try(&world_home[1]->lock);
}

static void fork_home_2(void) {
    hak_lock_fork_begin();
    model_stop_others();
    world_note_lost();
    bool is_kept = world_home[1]->lock.forked_by == NULL;
    hak_owner_after_fork(world_home[2], hak_lock_fork_is_clean);
    hak_lock_fork_end(true);
    MODEL_CHECK(world_home[1]->lock.is_taken == is_kept,
                "a lock is freed that the fork did not take");
}

static void push_both_first(void) {
    world_push(0, 0, 1);
    world_push(1, 0, 1);
}

/* All but that owner goes on; and what it left behind is in order. */
static void after_kept(void) {
    hak_owner_collect();
    MODEL_CHECK(hak_remote_waiting(&world_superslab, 1) == 0,
                "RF-3: one owner that is kept stops another");
    world_home[1]->lock.is_taken = 0;
    world_settle();
}

const model_scenario_t fork_scenarios[] = {
    {"fork", before_one, {push_two_and_one, fork_child}, world_settle, MARK(MORE)},
    {"fork_drain",
     before_two_slabs,
     {push_first, push_other, fork_after_tick},
     world_settle,
     MARK(FIRST)},
    {"fork_holder", before_pushed, {tick_1, refill_1, fork_exact}, world_settle, MARK(BUSY)},
    {"fork_kept",
     before_two_owners,
     {push_both_first, keep_1, fork_home_2},
     after_kept,
     MARK(LATE)},
    {"fork_adopt", before_idle_2, {push_first, refill_2, fork_child}, world_settle, MARK(ADOPT)},
    {0},
};
