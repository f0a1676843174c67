/* SPDX-License-Identifier: MIT
 *
 * See docs/remote-free.md for the proof obligations; the pairs named here are explained there. */
#include "slab/remote.h"

#include "slab/slab_inl.h"

HAK_LOCKED_STATE uint32_t hak_remote_unnoted;

/* --- sending ---------------------------------------------------------------------------------- */

static void queue_push(hak_owner_t *owner, hak_slab_t *slab) {
    hak_slab_t *top = hak_load_relaxed(&owner->queue);
    do {
        hak_store_relaxed(&slab->queue_next, top);
    } while (!hak_cas_release(&owner->queue, &top, slab)); /* pairs REMOTE-2 */
}

const void *hak_remote_block(const hak_marks_t *marks, uint64_t bits) {
    const hak_slab_t *slab = (const hak_slab_t *)&marks->superslab->unit[marks->unit];
    return slab->base + (size_t)(marks->word * 64u + hak_ctz(bits)) * slab->block_bytes;
}

void hak_remote_mark(const hak_marks_t *marks) {
    hak_superslab_t *superslab = marks->superslab;
    uint32_t planes = 1u << hak_remote_plane(marks->word) | 1; /* with the one of the number */
    if (HAK_UNLIKELY((hak_load_relaxed(&superslab->planes_used) & planes) != planes)) {
        /* before the first mark in a plane: a thread that sees the mark knows of the plane */
        uint32_t fresh = planes & ~hak_or_relaxed(&superslab->planes_used, planes);
        hak_meta_note_used((ptrdiff_t)(hak_popcount(fresh) * sizeof(hak_plane_t)));
    }
    uint64_t *word = hak_remote_word(superslab, marks->unit, marks->word);
    uint64_t twice = hak_or_release(word, marks->bits) & marks->bits; /* pairs REMOTE-1 */
    if (HAK_UNLIKELY(twice != 0)) {
        hak_fatal(HAK_FATAL_DOUBLE_FREE, hak_remote_block(marks, twice), NULL);
    }
}

void hak_remote_tell(const hak_marks_t *last, uint32_t count) {
    hak_slab_t *slab = (hak_slab_t *)&last->superslab->unit[last->unit];
    uint64_t *number = hak_remote_number(last->superslab, last->unit);
    uint64_t before = hak_add_release(number, count); /* pairs REMOTE-4 */
    if (before == 0) {
        /* We made it pending, so we queue it (SLAB-7). The owner may have changed since: an owner
         * that drains a slab of another owner requeues it there. */
        queue_push(hak_load_acquire(&slab->owner), slab); /* pairs REMOTE-3 */
    }
}

void hak_remote_send(const hak_marks_t *marks, hak_slab_t **sending) {
    sending = hak_remote_begin(sending);
    hak_remote_note(sending, (hak_slab_t *)&marks->superslab->unit[marks->unit]);
    hak_remote_mark(marks);
    hak_remote_tell(marks, marks->count);
    hak_remote_end(sending);
}

void hak_remote_send_block(hak_slab_t *slab, void *block, hak_slab_t **sending) {
    hak_superslab_t *superslab = hak_pagemap_superslab(block);
    uint32_t index = hak_slab_index(slab, block);
    hak_marks_t marks = {.superslab = superslab,
                         .bits = 1ull << index % 64,
                         .count = 1,
                         .unit = slab->unit,
                         .word = (uint8_t)(index / 64)};
    hak_link_set(block, NULL);
    hak_link_set_mark(block, HAK_LINK_MARK);
    hak_remote_send(&marks, sending);
}

/* --- receiving -------------------------------------------------------------------------------- */

/* The marks of the slab's own bitmap. */
static uint32_t slab_marks(const hak_slab_t *slab) {
    uint32_t marks = 0;
    for (uint32_t i = 0; i < slab->capacity; i += 64) {
        marks += hak_popcount(slab->bits[i / 64]);
    }
    return marks;
}

/* Merges the marks of one word into the slab's own bitmap. */
HAK_INLINE void slab_take_word(const hak_slab_t *slab, hak_superslab_t *superslab, unsigned word) {
    uint64_t *marks = hak_remote_word(superslab, slab->unit, word);
    if (hak_load_relaxed(marks) == 0) {
        return;
    }
    uint64_t bits = hak_swap_acquire(marks, 0); /* pairs REMOTE-1 */
    uint64_t twice = bits & slab->bits[word];   /* the home flushed it, too */
    if (HAK_UNLIKELY(twice != 0)) {
        hak_marks_t found = {.superslab = superslab, .unit = slab->unit, .word = (uint8_t)word};
        hak_fatal(HAK_FATAL_DOUBLE_FREE, hak_remote_block(&found, twice), NULL);
    }
    slab->bits[word] |= bits;
}

/* Merges all marks of a slab. */
static void slab_take_marks(const hak_slab_t *slab, hak_superslab_t *superslab) {
    unsigned words = (slab->capacity + 63u) / 64;
    for (unsigned word = 0, end; word < words; word = end) {
        end = (word + 1) | 7; /* of the words in the line */
        end = end < words ? end : words;
        bool is_used = hak_remote_has_plane(superslab, hak_remote_plane(word));
        for (unsigned i = word; is_used && i < end; i++) {
            slab_take_word(slab, superslab, i);
        }
    }
}

/* Receives all remote frees of a slab; may retire it. Marks whose number comes later are taken, but
 * not counted: their blocks keep the slab. */
static void slab_take_remote(hak_owner_t *owner, hak_slab_t *slab) {
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    uint64_t *number = hak_remote_number(superslab, slab->unit);
    uint64_t count = hak_swap_acquire(number, 0); /* pairs REMOTE-4 */
    HAK_ASSERT(count != 0, "RF-2: a queued slab is pending");
    slab_take_marks(slab, superslab);
    HAK_ASSERT(slab_marks(slab) >= slab->free_count + count, "SLAB-1");
    hak_slab_count_free(owner, slab, (uint32_t)count, slab->base);
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

/* A slab of another owner waits for the drain that passes it on. */
void hak_remote_merge(const hak_owner_t *owner, unsigned budget) {
    /* pairs REMOTE-2 */
    const hak_slab_t *list[] = {owner->ready, hak_load_acquire(&owner->queue)};
    for (unsigned i = 0; i < 2; i++) {
        for (const hak_slab_t *slab = list[i]; slab != NULL && budget != 0; budget--) {
            if (hak_load_acquire(&slab->owner) == owner) { /* pairs REMOTE-3 */
                slab_take_marks(slab, hak_pagemap_superslab(slab->base));
            }
            slab = hak_load_relaxed(&slab->queue_next);
        }
    }
}

/* --- in the child of a fork ------------------------------------------------------------------- */

/* A slab's marks, taken or not, that its free_count does not count. */
static uint32_t slab_uncounted(hak_superslab_t *superslab, const hak_slab_t *slab) {
    uint32_t marks = slab_marks(slab);
    for (unsigned word = 0; word < (slab->capacity + 63u) / 64; word++) {
        if (hak_remote_has_plane(superslab, hak_remote_plane(word))) {
            marks += hak_popcount(hak_load_relaxed(hak_remote_word(superslab, slab->unit, word)));
        }
    }
    return marks - slab->free_count;
}

typedef struct mend {
    const hak_slab_t *slab; /* NULL: all */
    bool is_queued;
} mend_t;

static void owner_search(hak_owner_t *owner, void *context) {
    mend_t *mend = context;
    const hak_slab_t *list[] = {owner->ready, hak_load_relaxed(&owner->queue)};
    for (unsigned i = 0; i < 2; i++) {
        for (const hak_slab_t *slab = list[i]; slab != NULL && !mend->is_queued;) {
            mend->is_queued = slab == mend->slab;
            slab = hak_load_relaxed(&slab->queue_next);
        }
    }
}

static void owner_empty(hak_owner_t *owner, void *context) {
    (void)context;
    owner->queue = NULL;
    owner->ready = NULL;
}

/* The slab may be queued at an owner that had it before. A store would copy the OS page. The slabs
 * of an owner that stays locked may be in the middle of a change: what they hold is not read. */
static void slab_mend(hak_superslab_t *superslab, unsigned unit, mend_t *mend) {
    hak_slab_t *slab = (hak_slab_t *)&superslab->unit[unit];
    uint64_t *number = hak_remote_number(superslab, unit), before = hak_load_relaxed(number);
    bool is_lost = hak_lock_fork_lacks(&hak_load_relaxed(&slab->owner)->lock);
    uint64_t count = is_lost ? before : slab_uncounted(superslab, slab);
    if (before != count) {
        hak_store_relaxed(number, count);
    }
    if (mend->slab != NULL && before != 0) {
        owner_search(hak_load_relaxed(&slab->owner), mend); /* in no ring if sampled (SLAB-10) */
        hak_owner_visit(owner_search, mend);
    }
    if (count != 0 && !mend->is_queued) {
        queue_push(hak_load_relaxed(&slab->owner), slab);
    }
}

static void superslab_mend(hak_superslab_t *superslab, void *context) {
    mend_t *mend = context;
    uintptr_t only = (uintptr_t)mend->slab - (uintptr_t)superslab->unit;
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS && hak_remote_has_plane(superslab, 0);
         unit++) {
        const char *address = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
        if ((mend->slab == NULL || only == unit * sizeof superslab->unit[unit]) &&
            hak_slab_is_entry(hak_pagemap_get(hak_pagemap_base(), address)) &&
            hak_single_writer_load(&superslab->units_to_first[unit]) == 0) {
            slab_mend(superslab, unit, mend);
        }
    }
}

void hak_remote_mend(const hak_slab_t *slab) {
    mend_t mend = {.slab = slab};
    hak_owner_t *sampled = hak_load_relaxed(&hak_owner_sampled);
    if (slab == NULL) { /* all queues are made anew: to look for each slab would take long */
        hak_owner_visit(owner_empty, NULL);
        if (sampled != NULL) {
            owner_empty(sampled, NULL);
        }
    }
    hak_span_visit(superslab_mend, &mend);
}
