/* SPDX-License-Identifier: MIT
 *
 * Remote frees: how a batch of blocks travels to the owner of their slab. The whole protocol, with
 * states and memory orders, is docs/remote-free.md.
 *
 *   batch: blocks of one slab, linked head -> ... -> tail; the second word of the head says where
 *   the tail is and how many there are, so the owner splices it without a walk:
 *
 *       head  [ link to next | tail offset:32, count:32 ]      tail [ link to the batch below ]
 *
 * The remote list is a stack of batches: pushed by compare-and-swap, taken whole by exchange. Its
 * word has the first block, whose address has 48 bits as in links, and the number of all blocks
 * above: so statistics need neither the list nor a lock. */
#ifndef HAK_SLAB_REMOTE_H
#define HAK_SLAB_REMOTE_H

#include "slab/owner.h"

enum { HAK_REMOTE_HEAD_BITS = 48 };

/* Of a slab's remote list, by its word: the first block, or NULL; and how many there are. */
HAK_INLINE void *hak_remote_head(uintptr_t remote) {
    return (void *)(remote & (((uintptr_t)1 << HAK_REMOTE_HEAD_BITS) - 1));
}

HAK_INLINE uint32_t hak_remote_blocks(uintptr_t remote) {
    return (uint32_t)(remote >> HAK_REMOTE_HEAD_BITS);
}

/* Sends a batch to its owner. Any thread may call it, also one without a tcache. The batch's blocks
 * count as in use, which keeps the slab in existence until the owner has them. */
void hak_remote_push(hak_slab_t *slab, const hak_batch_t *batch);

/* The owner takes what others gave back, at most `budget` slabs of its queue. true if any came. */
bool hak_remote_drain(hak_owner_t *owner, unsigned budget);

/* In the child of a fork: a thread that is gone may have pushed a batch and not queued the slab,
 * and queues may hold slabs of other owners. The caller has emptied every owner's queue. */
void hak_remote_requeue_all(void);

/* Whether something may be waiting. */
HAK_INLINE bool hak_remote_is_pending(const hak_owner_t *owner) {
    return hak_single_writer_load(&owner->ready) != NULL || hak_load_relaxed(&owner->queue) != NULL;
}

#endif
