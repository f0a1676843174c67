/* SPDX-License-Identifier: MIT
 *
 * Ghosts: what must hold, kept beside the world. The explorer does not see them (this file is not
 * instrumented); they change next to the step they belong to. And what is looked at afterwards. */
#include "world.h"

#include "slab/slab_inl.h"

static bool ghost_in_hand[WORLD_UNITS][WORLD_BLOCKS];
static bool ghost_retired[WORLD_UNITS];
static unsigned ghost_lost[WORLD_UNITS]; /* blocks whose hands a fork cut off */

void ghost_start(void) {
    for (unsigned unit = 0; unit < WORLD_UNITS; unit++) {
        ghost_retired[unit] = false;
        ghost_lost[unit] = 0;
        for (unsigned i = 0; i < WORLD_BLOCKS; i++) {
            ghost_in_hand[unit][i] = false;
        }
    }
}

void ghost_unit(unsigned unit, bool is_retired) {
    if (is_retired) {
        model_reach(MARK_RETIRE);
    } else if (ghost_retired[unit]) {
        model_reach(MARK_CREATE_ANEW);
    }
    ghost_retired[unit] = is_retired;
}

void ghost_move(void *block, bool is_taken) {
    unsigned unit = world_unit(block);
    size_t offset = (size_t)((char *)block - world_superslab.base) - (size_t)unit * HAK_UNIT_BYTES;
    size_t index = offset / hak_sc_info[WORLD_SC].bytes;
    MODEL_CHECK(ghost_in_hand[unit][index] != is_taken, "a block is handed out twice");
    ghost_in_hand[unit][index] = is_taken;
}

/* --- afterwards ------------------------------------------------------------------------------- */

/* Blocks that are marked in one of the slab's bitmaps; each must be marked once, and in no hand. */
static unsigned slab_check_free(unsigned unit) {
    const hak_slab_t *slab = world_slab_of(unit);
    uint64_t sent = *hak_remote_word(&world_superslab, unit, 0), marks = slab->bits[0] | sent;
    MODEL_CHECK((slab->bits[0] & sent) == 0, "a block is free twice");
    for (unsigned i = 0; i < slab->carved; i++) {
        MODEL_CHECK((marks >> i & 1) == 0 || !ghost_in_hand[unit][i],
                    "a block is marked and in use");
    }
    MODEL_CHECK(marks >> slab->carved == 0, "SLAB-1: a mark of no block");
    return hak_popcount(marks);
}

static unsigned slab_in_hand(unsigned unit) {
    unsigned count = 0;
    for (unsigned i = 0; i < WORLD_BLOCKS; i++) {
        count += ghost_in_hand[unit][i];
    }
    return count;
}

static void slab_check(unsigned unit, unsigned lost) {
    const hak_slab_t *slab = world_slab_of(unit);
    unsigned free_count = slab_check_free(unit);
    MODEL_CHECK(hak_remote_waiting(&world_superslab, unit) == 0,
                "RF-3: a slab is pending and in no queue");
    MODEL_CHECK(free_count == slab->free_count, "SLAB-1: free blocks are miscounted");
    MODEL_CHECK(free_count + slab_in_hand(unit) + lost == slab->carved, "a block is lost");
    MODEL_CHECK(free_count != slab->carved, "SLAB-3: an empty slab did not retire");
}

void world_settle(void) {
    for (unsigned i = 0; i < WORLD_OWNERS; i++) {
        hak_owner_collect();
    }
    for (const hak_owner_t *o = hak_all_owners; o != NULL; o = o->next) {
        MODEL_CHECK(o->lock.is_taken == 0, "a lock is never released");
        MODEL_CHECK(!hak_remote_is_pending(o), "RF-8: a slab is passed on for ever");
    }
    for (unsigned unit = 0; unit < WORLD_UNITS; unit++) {
        if (*world_entry(unit) != 0) {
            slab_check(unit, ghost_lost[unit]);
        } else {
            MODEL_CHECK(slab_in_hand(unit) == 0, "RF-4: a slab retired under its blocks");
        }
    }
}

/* Blocks of the slab that are neither marked nor in a hand. */
void world_note_lost(void) {
    for (unsigned unit = 0; unit < WORLD_UNITS; unit++) {
        const hak_slab_t *slab = world_slab_of(unit);
        ghost_lost[unit] = 0;
        if (*world_entry(unit) == 0) {
            continue;
        }
        unsigned found = slab_check_free(unit) + slab_in_hand(unit);
        ghost_lost[unit] = slab->carved - found;
    }
}
