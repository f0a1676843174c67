/* SPDX-License-Identifier: MIT
 *
 * The explorer itself: small programs of which it is known what C11 lets happen. What may happen
 * must be reached, what may not is a failure; those called litmus_race_... must fail by a race. */
#include "base/atomics.h"

static uint32_t x, y, z; /* shared words */
static uint32_t data;    /* plain */
static uint32_t seen[2]; /* plain, what threads saw */

STEP(before, model_share(MODEL_WORD(&x)); model_share(MODEL_WORD(&y)))
STEP(before_three, before(); model_share(MODEL_WORD(&z)))

STEP(nothing, (void)0)

/* --- message passing -------------------------------------------------------------------------- */

STEP(send_relaxed, hak_store_relaxed(&y, 1); hak_store_relaxed(&x, 1))
STEP(send_release, hak_store_relaxed(&y, 1); hak_store_release(&x, 1))

static void receive(void) {
    if (hak_load_acquire(&x) == 1) {
        model_reach(hak_load_relaxed(&y)); /* 0: relaxed only */
    }
}

static void receive_ordered(void) {
    if (hak_load_acquire(&x) == 1) {
        MODEL_CHECK(hak_load_relaxed(&y) == 1, "release and acquire order nothing");
        model_reach(1);
    }
}

/* --- store buffering: both may read 0 --------------------------------------------------------- */

STEP(store_x_load_y, hak_store_release(&x, 1); seen[0] = hak_load_acquire(&y))
STEP(store_y_load_x, hak_store_release(&y, 1); seen[1] = hak_load_acquire(&x))
STEP(reach_pair, model_reach(seen[0] * 2 + seen[1]))

/* --- coherence: a thread never goes back to an older store ------------------------------------ */

STEP(store_twice, hak_store_relaxed(&x, 1); hak_store_relaxed(&x, 2))

static void load_twice(void) {
    uint32_t first = hak_load_relaxed(&x);
    uint32_t second = hak_load_relaxed(&x);
    MODEL_CHECK(first <= second, "an older store is read after a newer one");
    model_reach(first * 3 + second);
}

/* --- a look before the store: every order must be tried --------------------------------------- */

STEP(look_and_store, (void)hak_load_relaxed(&x); hak_store_relaxed(&x, 1))
STEP(look, model_reach(hak_load_relaxed(&x)))

/* --- plain data: a release sequence goes on through a read-modify-write ----------------------- */

STEP(publish, data = 1; (void)hak_swap_release(&x, 1))
STEP(add_relaxed, (void)hak_add_relaxed(&x, 10))

static void store_over(void) {
    if (hak_load_relaxed(&x) == 1) {
        hak_store_relaxed(&x, 11);
    }
}

static void take_eleven(void) {
    if (hak_load_acquire(&x) == 11) {
        model_reach(data);
    }
}

static void take_relaxed(void) {
    if (hak_load_relaxed(&x) == 1) {
        model_reach(data);
    }
}

STEP(publish_early, (void)hak_swap_release(&x, 1); data = 1)

static void take_acquire(void) {
    if (hak_load_acquire(&x) == 1) {
        model_reach(data);
    }
}

/* --- a number that is odd while two words change, as hak_tcache_generation is -------------------
 */

static void change(bool is_fenced) {
    (void)hak_add_relaxed(&x, 1);
    if (is_fenced) {
        hak_fence_release();
    }
    hak_store_relaxed(&y, 1);
    hak_store_relaxed(&z, 1);
    (void)hak_add_release(&x, 1);
}

/* What was read between two loads of the same even number; both words are alike then. */
static void observe(bool is_fenced) {
    uint32_t number = hak_load_relaxed(&x);
    if (is_fenced) {
        hak_fence_acquire();
    }
    uint32_t pair = hak_load_relaxed(&z) * 2 + hak_load_relaxed(&y);
    if (is_fenced) {
        hak_fence_acquire();
    }
    if (number % 2 == 0 && hak_load_relaxed(&x) == number) {
        MODEL_CHECK(!is_fenced || pair == (number == 0 ? 0 : 3), "fences order nothing");
        model_reach(pair);
    }
}

STEP(change_fenced, change(true))
STEP(change_unordered, change(false))
STEP(observe_fenced, observe(true))
STEP(observe_unordered, observe(false))

/* --- one of two wins -------------------------------------------------------------------------- */

static void win(unsigned thread) {
    uint32_t expected = 0;
    seen[thread] = hak_cas_relaxed(&x, &expected, 1);
}

STEP(win_first, win(0))
STEP(win_second, win(1))
STEP(check_winner, MODEL_CHECK(seen[0] + seen[1] == 1, "both or none won"); model_reach(seen[0]))

const model_scenario_t litmus_scenarios[] = {
    {"litmus_message_relaxed", before, {send_relaxed, receive}, nothing, 3},
    {"litmus_message", before, {send_release, receive_ordered}, nothing, 2},
    {"litmus_buffering", before, {store_x_load_y, store_y_load_x}, reach_pair, 15},
    {"litmus_coherence", before, {store_twice, load_twice}, nothing, 0x137},
    {"litmus_look", before, {look_and_store, look}, nothing, 3},
    {"litmus_sequence", before, {publish, add_relaxed, take_eleven}, nothing, 2},
    {"litmus_generation", before_three, {change_fenced, observe_fenced}, nothing, 9},
    {"litmus_generation_writer", before_three, {change_unordered, observe_unordered}, nothing, 15},
    {"litmus_cas", before, {win_first, win_second}, check_winner, 3},
    {"litmus_race_relaxed", before, {publish, take_relaxed}, nothing, 0},
    {"litmus_race_early", before, {publish_early, take_acquire}, nothing, 0},
    {"litmus_race_sequence", before, {publish, store_over, take_eleven}, nothing, 0},
    {0},
};
