/* SPDX-License-Identifier: MIT
 *
 * See docs/remote-free.md for the proof obligations; the pairs named here are explained there. */
#include "slab/remote.h"

#include "slab/slab_inl.h"

/* Second word of a batch's head. */
HAK_INLINE uint64_t *batch_word(void *head) {
    return (uint64_t *)head + 1;
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
    hak_lock_set_midway(true);
    do {
        hak_link_set_below(batch->tail, below);
    } while (!hak_cas_release(&slab->remote, &below, (uintptr_t)batch->head)); /* pairs REMOTE-1 */
    if (below == 0) {
        /* We made it non-empty, so we queue it (SLAB-7). The owner may have changed since: whoever
         * takes it from a queue passes it on. */
        queue_push(hak_load_acquire(&slab->owner), slab); /* pairs REMOTE-3 */
    }
    hak_lock_set_midway(false);
}

/* The batch word lies in freed memory, in plain: a stray write must not send the splice astray. */
static void batch_check(const hak_slab_t *slab, const hak_batch_t *batch) {
    if (hak_slab_of(batch->head) != slab || hak_slab_of(batch->tail) != slab ||
        !hak_slab_is_block(slab, batch->head) || !hak_slab_is_block(slab, batch->tail) ||
        slab->free_count + batch->count > slab->carved) {
        hak_fatal(HAK_FATAL_CORRUPT_LINK, batch->head, "batch of remote frees");
    }
}

/* The batch that begins there; false: its word leads out of the slab. */
static bool batch_at(const hak_slab_t *slab, void *head, hak_batch_t *batch) {
    uint64_t word = *batch_word(head);
    void *tail = (char *)head + (int32_t)(uint32_t)word;
    *batch = (hak_batch_t){.head = head, .tail = tail, .count = (uint32_t)(word >> 32)};
    return (size_t)((char *)tail - slab->base) < (size_t)slab->units * HAK_UNIT_BYTES;
}

/* Gives every batch of the slab's remote list back: one step per batch. Only the last can make the
 * slab empty, after which it is gone. */
static void slab_take_remote(hak_owner_t *owner, hak_slab_t *slab) {
    void *head = (void *)hak_swap_acquire(&slab->remote, 0); /* pairs REMOTE-1 */
    HAK_ASSERT(head != NULL, "RF-2: a queued slab is pending");
    while (head != NULL) {
        hak_batch_t batch;
        if (HAK_UNLIKELY(!batch_at(slab, head, &batch))) {
            hak_fatal(HAK_FATAL_CORRUPT_LINK, head, "batch of remote frees");
        }
        if (HAK_HARDEN || HAK_AUDIT) {
            batch_check(slab, &batch);
        }
        if (HAK_UNLIKELY(hak_slab_is_marked(slab, head) || hak_slab_is_marked(slab, batch.tail))) {
            hak_fatal(HAK_FATAL_DOUBLE_FREE, head, NULL); /* it went back by sorting, too */
        }
        if (HAK_HARDEN) {
            *batch_word(head) = 0; /* as in all free blocks, harden.h */
        }
        head = hak_link_get_below(batch.tail);
        hak_owner_add(&owner->counters[slab->sc].remote_in, 1);
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
            hak_owner_store(&owner->ready, taken);
        }
        hak_slab_t *slab = owner->ready;
        hak_owner_store(&owner->ready, hak_load_relaxed(&slab->queue_next));
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

/* Batches stay where they are: who has the queue has the lists of the slabs in it (RF-2), and they
 * grow at the top only. What is damaged is for hak_remote_drain to say. */
static uint32_t slab_count_remote(const hak_slab_t *slab) {
    void *head = (void *)hak_load_acquire(&slab->remote); /* pairs REMOTE-1 */
    uint32_t carved = hak_owner_load(&slab->carved), count = 0;
    hak_batch_t batch;
    while (head != NULL && batch_at(slab, head, &batch) && batch.count <= carved - count) {
        count += batch.count;
        uintptr_t word = hak_link_word(batch.tail);
        head = hak_link_looks_free(word) ? hak_link_next(word) : NULL;
    }
    return count;
}

static void queue_count(const hak_slab_t *slab, uint32_t blocks[HAK_SC_COUNT]) {
    for (; slab != NULL; slab = hak_load_relaxed(&slab->queue_next)) {
        blocks[slab->sc] += slab_count_remote(slab);
    }
}

void hak_remote_count(hak_owner_t *owner, uint32_t blocks[HAK_SC_COUNT]) {
    if (hak_remote_is_pending(owner) && hak_owner_try(owner)) {
        queue_count(hak_load_acquire(&owner->queue), blocks); /* pairs REMOTE-2 */
        queue_count(owner->ready, blocks);
        hak_lock_leave(&owner->lock); /* no purge because of a look: is_over stays for later */
    }
}

static void slab_requeue(hak_superslab_t *superslab, void *context) {
    (void)context;
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS; unit++) {
        hak_slab_t *slab = (hak_slab_t *)&superslab->unit[unit];
        const char *address = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
        uint32_t entry = hak_pagemap_get(hak_pagemap_base(), address);
        bool is_head = hak_slab_is_entry(entry) && hak_owner_load(&superslab->back[unit]) == 0;
        if (is_head && hak_load_relaxed(&slab->remote) != 0) {
            queue_push(hak_load_relaxed(&slab->owner), slab);
        }
    }
}

void hak_remote_requeue_all(void) {
    hak_span_visit(slab_requeue, NULL);
}
