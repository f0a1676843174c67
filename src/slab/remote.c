/* SPDX-License-Identifier: MIT
 *
 * See docs/remote-free.md for the proof obligations; the pairs named here are explained there. */
#include "slab/remote.h"

#include "slab/slab_inl.h"

/* Second word of a batch's head. */
HAK_INLINE uint64_t *batch_word(void *head) {
    return (uint64_t *)head + 1;
}

/* The list word with the batch on top. The block count lies above the bits that links keep. */
HAK_INLINE uintptr_t list_on(const hak_batch_t *batch, uintptr_t below) {
    uintptr_t blocks = hak_remote_blocks(below) + batch->count;
    return (uintptr_t)batch->head | blocks << HAK_REMOTE_HEAD_BITS;
}

static void queue_push(hak_owner_t *owner, hak_slab_t *slab) {
    hak_slab_t *top = hak_load_relaxed(&owner->queue);
    do {
        hak_store_relaxed(&slab->queue_next, top);
    } while (!hak_cas_release(&owner->queue, &top, slab)); /* pairs REMOTE-2 */
}

void hak_remote_push(hak_slab_t *slab, const hak_batch_t *batch) {
    uint64_t tail_offset = (uint64_t)((char *)batch->tail - (char *)batch->head);
    *batch_word(batch->head) = (tail_offset & 0xffffffffu) | (uint64_t)batch->count << 32;
    uintptr_t below = hak_load_relaxed(&slab->remote);
    hak_set_unlocked_update(true);
    do {
        hak_link_set_below(batch->tail, below);
    } while (!hak_cas_release(&slab->remote, &below, list_on(batch, below))); /* pairs REMOTE-1 */
    if (below == 0) {
        /* We made it non-empty, so we queue it (SLAB-7). The owner may have changed since: an owner
         * that drains a slab of another owner requeues it there. */
        queue_push(hak_load_acquire(&slab->owner), slab); /* pairs REMOTE-3 */
    }
    hak_set_unlocked_update(false);
}

/* The batch word lies unencoded in freed memory: a stray write must not misdirect the splice. */
static void batch_check(const hak_slab_t *slab, const hak_batch_t *batch) {
    if (hak_slab_of(batch->head) != slab || hak_slab_of(batch->tail) != slab ||
        !hak_slab_is_block(slab, batch->head) || !hak_slab_is_block(slab, batch->tail) ||
        slab->free_count + batch->count > slab->carved) {
        hak_fatal(HAK_FATAL_CORRUPT_LINK, batch->head, "batch of remote frees");
    }
}

/* The batch that begins at `head`; false: its word leads out of the slab. */
static bool batch_at(const hak_slab_t *slab, void *head, hak_batch_t *batch) {
    uint64_t word = *batch_word(head);
    void *tail = (char *)head + (int32_t)(uint32_t)word;
    *batch = (hak_batch_t){.head = head, .tail = tail, .count = (uint32_t)(word >> 32)};
    return (size_t)((char *)tail - slab->base) < (size_t)slab->units * HAK_UNIT_BYTES;
}

/* Receives every batch of a remote list, in constant time each. The last may retire the slab. */
static void slab_take_remote(hak_owner_t *owner, hak_slab_t *slab) {
    void *head = hak_remote_head(hak_swap_acquire(&slab->remote, 0)); /* pairs REMOTE-1 */
    HAK_ASSERT(head != NULL, "RF-2: a queued slab is pending");
    while (head != NULL) {
        hak_batch_t batch;
        if (HAK_UNLIKELY(!batch_at(slab, head, &batch))) {
            hak_fatal(HAK_FATAL_CORRUPT_LINK, head, "batch of remote frees");
        }
        if (HAK_HARDEN || HAK_AUDIT) {
            batch_check(slab, &batch);
        }
        /* else the home flushed it, too */
        hak_require(!hak_slab_is_marked(slab, head) && !hak_slab_is_marked(slab, batch.tail),
                    HAK_FATAL_DOUBLE_FREE, head);
        if (HAK_HARDEN) {
            *batch_word(head) = 0; /* as in all free blocks, harden.h */
        }
        head = hak_link_get_below(batch.tail);
        hak_single_writer_add(&owner->counters[slab->sc].remote_in, 1);
        hak_slab_give_back(owner, slab, &batch);
    }
}

bool hak_remote_drain(hak_owner_t *owner, unsigned budget) {
    bool any = false;
    while (budget-- > 0) {
        if (owner->ready == NULL) {
            if (hak_load_relaxed(&owner->queue) == NULL) {
                break;
            }
            hak_slab_t *taken = hak_swap_acquire(&owner->queue, NULL); /* pairs REMOTE-2 */
            hak_single_writer_store(&owner->ready, taken);
        }
        hak_slab_t *slab = owner->ready;
        hak_single_writer_store(&owner->ready, hak_load_relaxed(&slab->queue_next));
        hak_owner_t *now = hak_load_acquire(&slab->owner); /* pairs REMOTE-3 */
        if (HAK_LIKELY(now == owner)) {
            slab_take_remote(owner, slab);
            any = true;
        } else {
            queue_push(now, slab);
        }
    }
    return any;
}

static void slab_requeue(hak_superslab_t *superslab, void *context) {
    (void)context;
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS; unit++) {
        hak_slab_t *slab = (hak_slab_t *)&superslab->unit[unit];
        const char *address = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
        uint32_t entry = hak_pagemap_get(hak_pagemap_base(), address);
        bool is_head = hak_slab_is_entry(entry) &&
                       hak_single_writer_load(&superslab->units_to_first[unit]) == 0;
        if (is_head && hak_load_relaxed(&slab->remote) != 0) {
            queue_push(hak_load_relaxed(&slab->owner), slab);
        }
    }
}

void hak_remote_requeue_all(void) {
    hak_span_visit(slab_requeue, NULL);
}
