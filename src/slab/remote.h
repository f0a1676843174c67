/* SPDX-License-Identifier: MIT
 *
 * Remote frees: how a batch of blocks reaches the owner of their slab. docs/remote-free.md has the
 * whole protocol, with states and memory orders.
 *
 *   batch: blocks of one slab, linked head -> ... -> tail; the second word of the head gives the
 *   tail and the count, so the owner splices it without a walk:
 *
 *       head  [ link to next | tail offset:32, count:32 ]      tail [ link to the batch below ]
 *
 * The remote list is a stack of batches: pushed by compare-and-swap, taken whole by exchange. Its
 * word has the first block in the low 48 bits, and the number of all blocks above: statistics need
 * neither the list nor a lock. */
#ifndef HAK_SLAB_REMOTE_H
#define HAK_SLAB_REMOTE_H

#include "slab/owner.h"

enum { HAK_REMOTE_HEAD_BITS = 48 };

/* Fields of a remote list's word: the first block, or NULL; the number of blocks. */
HAK_INLINE void *hak_remote_head(uintptr_t remote) {
    return (void *)(remote & (((uintptr_t)1 << HAK_REMOTE_HEAD_BITS) - 1));
}

HAK_INLINE uint32_t hak_remote_blocks(uintptr_t remote) {
    return (uint32_t)(remote >> HAK_REMOTE_HEAD_BITS);
}

/* Sends a batch to its owner, from any thread. The blocks count as in use until the owner receives
 * them, which keeps the slab from retiring. */
void hak_remote_push(hak_slab_t *slab, const hak_batch_t *batch);

/* Receives remote frees of at most `budget` queued slabs. true: at least one. */
bool hak_remote_drain(hak_owner_t *owner, unsigned budget);

/* In the child of a fork: a vanished thread may have pushed a batch without queueing the slab, and
 * queues may hold slabs of other owners. The caller has emptied every queue. */
void hak_remote_requeue_all(void);

/* Whether remote frees may be waiting. */
HAK_INLINE bool hak_remote_is_pending(const hak_owner_t *owner) {
    return hak_single_writer_load(&owner->ready) != NULL || hak_load_relaxed(&owner->queue) != NULL;
}

#endif
