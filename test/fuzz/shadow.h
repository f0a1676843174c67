/* SPDX-License-Identifier: MIT
 *
 * The shadow of the operations: blocks one at a time in slots, compared with each other for
 * overlap, and many of one size in groups, which fill and empty slabs. Each has a pattern of its
 * own. */
#ifndef HAK_TEST_FUZZ_SHADOW_H
#define HAK_TEST_FUZZ_SHADOW_H

#include "fuzz/operations.h"
#include "model/block.h"

enum { SLOTS = 48, GROUPS = 8, GROUP_BLOCKS = 255, LIVE_MOST = 32 << 20, ERRNO_BEFORE = 4321 };

extern model_block_t shadow_slots[SLOTS]; /* at == NULL: free */
extern model_block_t shadow_groups[GROUPS][GROUP_BLOCKS];
extern size_t shadow_live_bytes;
extern uint64_t shadow_next_id;

model_block_t *shadow_take_slot(fuzz_tape_t *tape);
/* Small, around powers of two, up to 2.5 MiB, seldom 4. */
size_t shadow_take_size(fuzz_tape_t *tape);

/* false: a refusal, which is NULL with ENOMEM and comes only when calls fail. A success leaves
 * errno alone. */
bool shadow_is_served(const void *at);
/* The block is new, moved or resized: what holds then, and fills what is not filled yet. */
void shadow_note(model_block_t *block, void *at, size_t bytes, size_t filled);
void shadow_expect_intact(const model_block_t *block);
void shadow_forget(model_block_t *block); /* was freed */
void shadow_expect_sound(void);           /* every invariant holds */

#endif
