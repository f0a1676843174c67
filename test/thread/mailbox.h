/* SPDX-License-Identifier: MIT
 *
 * Mailboxes: places where threads leave blocks for each other. What is found in one is complete,
 * in the child of a fork as well. */
#ifndef HAK_TEST_THREAD_MAILBOX_H
#define HAK_TEST_THREAD_MAILBOX_H

#include "thread/block.h"

enum { MAILBOX_COUNT = 512 };

static _Atomic(block_t *) mailboxes[MAILBOX_COUNT];

/* Leaves `block` (may be NULL) in a random box; what was there is the caller's now, or NULL. */
static inline block_t *mailbox_swap(block_t *block, uint64_t *state) {
    size_t box = expect_random(state) % MAILBOX_COUNT;
    return atomic_exchange_explicit(&mailboxes[box], block, memory_order_acq_rel);
}

static inline void mailbox_empty_all(uint64_t *state) {
    for (size_t i = 0; i < MAILBOX_COUNT; ++i) {
        block_unmake(atomic_exchange_explicit(&mailboxes[i], NULL, memory_order_acq_rel), state);
    }
}

#endif
