/* SPDX-License-Identifier: MIT
 *
 * Slabs: spans cut into blocks of one size class, each with one owner.
 *
 *   block states    fresh (never carved) -> in use -> free -> in use ...
 *   where a free block can be: in a bin of a tcache (counts as in use here); marked in the slab's
 *   bitmap, if a thread sorted it that has the slab's owner; on the slab's own list, if it came in
 *   a batch of another thread; on the slab's remote list (in use); in an outbox (in use).
 *
 * Slab states, changed by the owner only:
 *   CURRENT   the slab its owner refills class `sc` from; in no list
 *   PARTIAL   has blocks to give; in owner->partial[sc]
 *   FULL      nothing to give: all blocks are in use (which covers bins and outboxes) or on the
 *             remote list; in no list
 *
 * Invariants:
 *   SLAB-1  0 <= free_count <= carved <= capacity; the own list has exactly `listed` blocks, the
 *           bitmap free_count - listed marks, all below `carved`, and none is in both.
 *   SLAB-2  Block i is at base + i * block_bytes; no header, nothing but blocks in the span.
 *   SLAB-3  A slab with free_count == carved is empty: no block is in use anywhere. It retires
 *           unless it is CURRENT.
 *   SLAB-4  state == FULL  <=>  free_count == 0 and carved == capacity and it is not CURRENT.
 *   SLAB-5  `units_to_first` of every unit of the slab leads to the first one (span.h).
 *   SLAB-6  Only the holder of the owner's lock touches fields tagged [lock OWNER].
 *   SLAB-7  A slab with a non-empty remote list is in the queue of an owner, or is about to be.
 *   SLAB-8  hak_span_purged_bytes is the sum of all purged_bytes.
 *   SLAB-9  A free block has its tag (link.h), and a marked one its second word, unless it lay in a
 *           purged page. From the first purge until no block is marked, has_purged_pages is set and
 *           the page-map entry has the id of no owner: every free of the slab's blocks takes a slow
 *           path that looks at the marks. */
#ifndef HAK_SLAB_SLAB_H
#define HAK_SLAB_SLAB_H

#include "base/list.h"
#include "slab/sizeclass.h"
#include "span/span.h"

enum { HAK_SLAB_PURGED_PAGES_ID = 0x7fffff00 }; /* SLAB-9 */

typedef enum hak_slab_state { HAK_SLAB_CURRENT, HAK_SLAB_PARTIAL, HAK_SLAB_FULL } hak_slab_state_t;

/* Lies in the unit record of its first unit: two cache lines, one for the owner, one for others. */
struct hak_slab {
    /* [const] the words: [lock OWNER] marks: bit i: block i is free */
    HAK_LINE_ALIGNED uint64_t *bits;
    void *free;                /* [lock OWNER] own list */
    uint32_t free_count;       /* [lock OWNER] both together; read by statistics */
    uint32_t carved;           /* [lock OWNER] blocks that were handed out at least once */
    char *base;                /* [const] */
    hak_list_t link;           /* [lock OWNER] in partial */
    uint32_t block_bytes;      /* [const] */
    uint16_t capacity;         /* [const] blocks */
    uint16_t listed;           /* [lock OWNER] blocks on the own list */
    uint8_t sc;                /* [const] */
    uint8_t units;             /* [const] */
    uint8_t unit;              /* [const] first unit in its superslab */
    uint8_t state;             /* [lock OWNER] hak_slab_state_t */
    uint16_t looked;           /* [lock OWNER] free_count + 1 at the last look; 0: none */
    uint8_t pass;              /* [lock OWNER] number of the pass of that look */
    bool is_purged : 1;        /* [lock OWNER] then all its idle pages were purged */
    bool is_given_back : 1;    /* [lock OWNER] then its long runs of them were */
    bool is_refused : 1;       /* [lock OWNER] the kernel did not take all of them */
    bool has_purged_pages : 1; /* [lock OWNER] SLAB-9 */
    bool is_zero : 1; /* [const] its units were clean: what was never handed out still is */

    HAK_LINE_ALIGNED uintptr_t remote; /* [atomic] list of batches, remote.h */
    hak_slab_t *queue_next;            /* [atomic] in an owner's queue */
    uint32_t purged_bytes;             /* [lock OWNER] that went since it was current; SLAB-8 */
    hak_owner_t *owner;                /* [atomic] changes under the locks of both */
};

_Static_assert(sizeof(hak_slab_t) <= HAK_UNIT_RECORD_BYTES, "a slab record fits its unit record");

/* A list of free blocks: on its way into a bin, or an outbox. */
typedef struct hak_blocks {
    void *head;
    uint32_t count;
    uint32_t stride; /* not 0: so many bytes apart, and not linked yet */
} hak_blocks_t;

/* Free blocks of one slab, linked from head to tail; what the tail's link says does not matter. */
typedef struct hak_batch {
    void *head;
    void *tail;
    uint32_t count;
} hak_batch_t;

/* Blocks of class `sc` for the owner: what others gave back first; then from the current slab's
 * list, its marked blocks, fresh ones, a partial slab, another owner's slab, a new slab, in this
 * order. More than `want`, which is not 0, only of a list. count == 0 when memory is out. */
hak_blocks_t hak_slab_refill(hak_owner_t *owner, unsigned sc, uint32_t want);
/* Links blocks that are not linked yet: the first touch of fresh memory, so no lock is held. */
void hak_slab_link(const hak_blocks_t *blocks);

/* Takes what others gave back, a few slabs of it; hak_slab_refill does so first. */
void hak_slab_receive(hak_owner_t *owner);

/* Empties current slabs and retires what is empty. */
void hak_slab_release_current(hak_owner_t *owner);

/* --- shared by the files of this folder ------------------------------------------------------- */

/* The slab's page-map entry: MAP-2. */
void hak_slab_set_entry(const hak_slab_t *slab);

/* Free blocks arrived in the slab: state and retirement follow. */
void hak_slab_note_freed(hak_owner_t *owner, hak_slab_t *slab);
void hak_slab_change_owner(hak_slab_t *slab, hak_owner_t *owner);
/* Takes the first partial slab of the class out of the owner's list; NULL: it has none. */
hak_slab_t *hak_slab_take_partial(hak_owner_t *owner, unsigned sc);

#endif
