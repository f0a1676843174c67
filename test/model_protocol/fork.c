/* SPDX-License-Identifier: MIT
 *
 * Forks: at any step of the others the child is left alone with what there is then. */
#include "scenario.h"

/* Whose home is that owner; with pushers under way, blocks on their way are lost. */
static void fork_at(unsigned home, bool may_lose) {
    (void)hak_lock_fork_begin(false);
    model_stop_others();
    if (may_lose) {
        world_note_lost();
    }
    bool is_kept = world_home[1]->lock.forked_by == NULL;
    hak_owner_after_fork(world_home[home]);
    bool is_all = hak_lock_fork_lacks_any() || hak_load_acquire(&hak_remote_unnoted) != 0;
    if (is_all) {
        hak_remote_mend(NULL);
    }
    for (unsigned unit = 0; unit < WORLD_UNITS && !is_all; unit++) {
        if (world_sending[unit] != NULL) {
            hak_remote_mend(world_sending[unit]);
        }
    }
    hak_lock_fork_end(true);
    MODEL_CHECK(home == 1 || world_home[1]->lock.is_taken == is_kept,
                "a lock is freed that the fork did not take");
}

STEP(fork_child, fork_at(1, true))
STEP(fork_exact, fork_at(1, false))
STEP(fork_home_2, fork_at(2, true))

/* One of two slabs is in `ready` when it comes to the fork. */
STEP(fork_after_tick, world_tick(1); fork_child())
STEP(before_pushed, before_one(); world_push(0, 0, 2))

/* A signal handler sends while its thread does; both have one word for notes. */
static void push_interrupted(void) {
    (void)world_blocks(0, 0, 1), (void)world_blocks(1, 0, 1);
    hak_marks_t outer = {.superslab = &world_superslab, .bits = 1, .count = 1, .unit = 0};
    hak_marks_t inner = {.superslab = &world_superslab, .bits = 1, .count = 1, .unit = 1};
    hak_slab_t **sending = hak_remote_begin(&world_sending[0]);
    hak_remote_note(sending, world_slab_of(0));
    hak_remote_mark(&outer);
    hak_remote_send(&inner, &world_sending[0]);
    hak_remote_tell(&outer, 1);
    hak_remote_end(sending);
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
STEP(keep_1, hak_lock_try(&world_home[1]->lock))

/* In the middle of a drain: what it took stays in its hand. */
static void keep_1_in_drain(void) {
    if (hak_lock_try(&world_home[1]->lock)) {
        world_home[1]->ready = hak_swap_acquire(&world_home[1]->queue, NULL);
    }
}

/* A slab of owner 2 waits at owner 1, as its pusher read that one. */
static void before_misdirected(void) {
    partial_slab(2);
    world_adopt(2);
    world_push(0, 0, 1);
    hak_slab_t *queued = hak_swap_relaxed(&world_home[2]->queue, NULL);
    hak_store_relaxed(&world_home[1]->queue, queued);
}

STEP(push_both_first, world_push(0, 0, 1); world_push(1, 0, 1))

/* All but that owner goes on; and what it left behind is in order. */
static void after_kept(void) {
    hak_owner_collect();
    MODEL_CHECK(hak_remote_waiting(&world_superslab, 1) == 0,
                "RF-3: one owner that is kept stops another");
    world_home[1]->lock.is_taken = 0;
    world_settle();
}

static void after_kept_in_drain(void) {
    hak_owner_collect();
    hak_owner_collect(); /* what the first one passed on */
    MODEL_CHECK(hak_remote_waiting(&world_superslab, 0) == 0,
                "RF-3: an owner that is kept has a slab of another");
    world_home[1]->lock.is_taken = 0;
    world_settle();
}

const model_scenario_t fork_scenarios[] = {
    SCENARIO(fork, before_one, MARK(MORE), push_two_and_one, fork_child),
    SCENARIO(fork_drain, before_two_slabs, MARK(FIRST), push_first, push_other, fork_after_tick),
    SCENARIO(fork_holder, before_pushed, MARK(BUSY), tick_1, refill_1, fork_exact),
    {"fork_kept",
     before_two_owners,
     {push_both_first, keep_1, fork_home_2},
     after_kept,
     MARK(LATE)},
    SCENARIO(fork_signal, before_two_slabs, MARK(FIRST), push_interrupted, fork_child),
    {"fork_kept_in_drain",
     before_misdirected,
     {keep_1_in_drain, fork_home_2},
     after_kept_in_drain,
     MARK(LATE)},
    SCENARIO(fork_adopt, before_idle_2, MARK(ADOPT), push_first, refill_2, fork_child),
    {0},
};
