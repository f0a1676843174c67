/* SPDX-License-Identifier: MIT
 *
 * Remote frees: how free blocks reach the owner of their slab. docs/remote-free.md has the whole
 * protocol, with states and memory orders.
 *
 * Each slab has a second bitmap, its remote marks, in the lines of its first unit. Any thread marks
 * blocks there, then adds their number to the first word, without a lock; the owner takes number
 * and marks, and merges them into the slab's own bitmap. Nothing is stored in the blocks.
 *
 *   line 0   [ number | marks 0 to 6 ]      line p   [ marks 8 * p - 1 to 8 * p + 6 ]
 *
 * Most classes need one line, in which a message is two operations. */
#ifndef HAK_SLAB_REMOTE_H
#define HAK_SLAB_REMOTE_H

#include "slab/owner.h"

/* Free blocks of one slab and one word of its bitmap. */
typedef struct hak_marks {
    hak_superslab_t *superslab;
    uint64_t bits;
    uint32_t count; /* of bits */
    uint8_t unit;   /* the slab's first */
    uint8_t word;
} hak_marks_t;

/* A message, from any thread: marks blocks as free, and then tells their owner the number. Until
 * that is received they count as in use, which keeps the slab from retiring. Fatal if one was
 * marked already. `sending` as for hak_remote_begin. */
void hak_remote_send(const hak_marks_t *marks, hak_slab_t **sending);
/* The two halves, so that the marks of several words have one number; the slab is that of `last`,
 * and noted. Both between hak_remote_begin and hak_remote_end. */
void hak_remote_mark(const hak_marks_t *marks);
void hak_remote_tell(const hak_marks_t *last, uint32_t count);
/* Sends one block, which was in use. */
void hak_remote_send_block(hak_slab_t *slab, void *block, hak_slab_t **sending);
/* The lowest block of `bits`, for messages. */
HAK_COLD const void *hak_remote_block(const hak_marks_t *marks, uint64_t bits);

/* Receives remote frees of at most `budget` queued slabs. true: at least one. */
bool hak_remote_drain(hak_owner_t *owner, unsigned budget);
/* The same for their marks alone, which are not counted: nothing retires, so no lock is taken
 * besides that of the owner. Finds what was freed twice. */
void hak_remote_merge(const hak_owner_t *owner, unsigned budget);

extern uint32_t hak_remote_unnoted; /* [atomic] messages under way whose slab is not noted */
/* Before messages. `sending` is the thread's word for notes; NULL: it has none. Returns the word
 * for the next two; NULL: none, as the word has the note of a message that a signal interrupted. */
HAK_INLINE hak_slab_t **hak_remote_begin(hak_slab_t **sending) {
    sending = HAK_LIKELY(hak_in_unlocked_update == 0) ? sending : NULL;
    hak_set_unlocked_update(true);
    if (HAK_UNLIKELY(sending == NULL)) {
        (void)hak_add_release(&hak_remote_unnoted, 1); /* pairs REMOTE-5 */
    }
    return sending;
}

/* Before the first mark of a message: notes its slab where the child of a fork finds it. */
HAK_INLINE void hak_remote_note(hak_slab_t **sending, hak_slab_t *slab) {
    if (HAK_LIKELY(sending != NULL)) {
        hak_store_release(sending, slab); /* pairs REMOTE-5 */
    }
}

/* After the last step. */
HAK_INLINE void hak_remote_end(hak_slab_t **sending) {
    hak_remote_note(sending, NULL);
    if (HAK_UNLIKELY(sending == NULL)) {
        (void)hak_add_release(&hak_remote_unnoted, -1u); /* pairs REMOTE-5 */
    }
    hak_set_unlocked_update(false);
}

/* In the child of a fork, to whose owners no thread that is gone will send any more: one of those
 * threads may have marked blocks of the slab and not told their number, or not queued it. `slab`
 * was noted, and may have retired; NULL: any slab, and no queue is trusted. */
HAK_COLD void hak_remote_mend(const hak_slab_t *slab);

/* Whether remote frees may be waiting. */
HAK_INLINE bool hak_remote_is_pending(const hak_owner_t *owner) {
    return hak_single_writer_load(&owner->ready) != NULL || hak_load_relaxed(&owner->queue) != NULL;
}

/* The plane of the words that hold the marks of a word of a bitmap. */
HAK_INLINE unsigned hak_remote_plane(unsigned word) {
    return (word + 1) / 8;
}

/* Whether the plane was ever used; else its words are 0, and not to be touched. */
HAK_INLINE bool hak_remote_has_plane(const hak_superslab_t *superslab, unsigned plane) {
    return (hak_load_relaxed(&superslab->planes_used) >> plane & 1) != 0;
}

/* The marks of a word of the bitmap; the number of blocks is in front of the first. */
HAK_INLINE uint64_t *hak_remote_word(hak_superslab_t *superslab, unsigned unit, unsigned word) {
    return &superslab->plane[hak_remote_plane(word)][unit].word[(word + 1) % 8];
}

HAK_INLINE uint64_t *hak_remote_number(hak_superslab_t *superslab, unsigned unit) {
    return &superslab->plane[0][unit].word[0];
}

/* The number of blocks that wait for the owner of the slab that begins at the unit. */
HAK_INLINE uint64_t hak_remote_waiting(hak_superslab_t *superslab, unsigned unit) {
    return hak_remote_has_plane(superslab, 0) ? hak_load_relaxed(hak_remote_number(superslab, unit))
                                              : 0;
}

/* Whether block `index` of the slab that begins at the unit is marked here. */
HAK_INLINE bool hak_remote_is_marked(hak_superslab_t *superslab, unsigned unit, uint32_t index) {
    unsigned word = index / 64;
    return hak_remote_has_plane(superslab, hak_remote_plane(word)) &&
           (hak_load_relaxed(hak_remote_word(superslab, unit, word)) >> index % 64 & 1) != 0;
}

#endif
