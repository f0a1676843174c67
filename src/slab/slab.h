/* SPDX-License-Identifier: MIT
 *
 * Slabs: spans cut into blocks of one size class, each with one owner.
 *
 *   block states    fresh (never carved) -> in use -> free -> in use ...
 *   places of a free block: a bin of a tcache, a mark in the slab's remote bitmap (the slab counts
 *   these as in use); a mark in its own bitmap; hardened: a slot of a quarantine.
 *
 * Slab states, changed by the owner only:
 *   CURRENT   the slab its owner refills class `sc` from; in no list
 *   PARTIAL   has free or fresh blocks; in owner->partial[sc]
 *   FULL      has neither: all blocks are in use (bins included) or wait in the remote bitmap; in
 *             no list
 *
 * Invariants:
 *   SLAB-1  0 <= free_count <= carved <= capacity; the bitmap and the remote one together have as
 *           many marks as free_count and the remote number say, less those of messages under way;
 *           all are below `carved`, and none is in both. carved_less_2 is carved - 2, or 0.
 *   SLAB-2  Block i is at base + i * block_bytes; no header, nothing but blocks in the span.
 *   SLAB-3  A slab with free_count == carved is empty: no block is in use anywhere. It retires
 *           unless it is CURRENT.
 *   SLAB-4  state == FULL  <=>  free_count == 0 and carved == capacity and it is not CURRENT.
 *   SLAB-5  `units_to_first` of every unit of the slab leads to the first one (span.h).
 *   SLAB-6  Only the holder of the owner's lock touches fields tagged [lock OWNER].
 *   SLAB-7  A slab whose remote number is not 0 is in the queue of an owner, or is about to be.
 *   SLAB-8  hak_span_purged_bytes is the sum of all purged_bytes.
 *   SLAB-9  A free block has its free marker (link.h), and a marked one its second word, unless it
 *           lay in a purged page. From the first purge until no block is marked, has_purged_pages
 *           is set and the page-map entry has a kind for that: every free of the slab's blocks
 *           takes a slow path that checks the bitmap.
 *   SLAB-10 Blocks that the heap profiler samples lie in slabs of an owner of their own, which is
 *           no thread's home and in no list of owners: nobody adopts or purges its slabs, and it
 *           adopts none. The kind in their entries sends every free of them to a slow path. */
#ifndef HAK_SLAB_SLAB_H
#define HAK_SLAB_SLAB_H

#include "base/list.h"
#include "slab/sizeclass.h"
#include "span/span.h"

enum { HAK_SLAB_PLAIN_ID = 0x40000000 }; /* a bit of the ids of owners of the plain partition */

/* The first class of more than 8 KiB: whether its slabs lie in huge pages is decided by samples
 * (docs/experiments/0055-dense-classes.md), below that it is not (0007-huge-pages.md). */
#define HAK_SLAB_IS_SURE(bytes, units, blocks) +((bytes) <= 8192)
enum { HAK_SLAB_SAMPLED_FROM = 0 HAK_SC_TABLE(HAK_SLAB_IS_SURE) };
#undef HAK_SLAB_IS_SURE

typedef enum hak_slab_state { HAK_SLAB_CURRENT, HAK_SLAB_PARTIAL, HAK_SLAB_FULL } hak_slab_state_t;

/* Lies in its first unit's record: two cache lines, one for the owner, one for other threads. */
struct hak_slab {
    /* [const] the words are [lock OWNER]: bit i marks block i as free */
    HAK_LINE_ALIGNED uint64_t *bits;
    uint32_t free_count;       /* [lock OWNER] marked and counted; read by statistics */
    uint32_t carved;           /* [lock OWNER] blocks handed out at least once */
    char *base;                /* [const] */
    hak_list_t link;           /* [lock OWNER] in partial */
    uint32_t block_bytes;      /* [const] */
    uint16_t capacity;         /* [const] blocks */
    uint8_t sc;                /* [const] */
    uint8_t units;             /* [const] */
    uint8_t unit;              /* [const] first unit in its superslab */
    uint8_t state;             /* [lock OWNER] hak_slab_state_t */
    uint16_t looked;           /* [lock OWNER] free_count + 1 at the last visit; 0: none */
    uint8_t pass;              /* [lock OWNER] number of the pass of that visit */
    bool is_purged : 1;        /* [lock OWNER] all idle pages were purged then */
    bool is_given_back : 1;    /* [lock OWNER] its long runs of them were */
    bool is_refused : 1;       /* [lock OWNER] the kernel refused some of them */
    bool has_purged_pages : 1; /* [lock OWNER] SLAB-9 */
    bool is_zero : 1;          /* [const] its units were clean: its fresh blocks are */
    uint32_t carved_less_2;    /* [lock OWNER] SLAB-1; for hak_slab_count_one */

    HAK_LINE_ALIGNED hak_slab_t *queue_next; /* [atomic] in an owner's queue */
    hak_owner_t *owner;                      /* [atomic] changes under the locks of both */
    uint32_t purged_bytes;                   /* [lock OWNER] purged since it was current; SLAB-8 */
    uint32_t carved_shared; /* [lock OWNER] a copy of `carved` for threads that free remotely */
};

_Static_assert(sizeof(hak_slab_t) <= HAK_UNIT_RECORD_BYTES, "a slab record fits its unit record");

/* A list of free blocks, on its way into a bin or out of it. */
typedef struct hak_blocks {
    void *head;
    uint32_t count;
    uint32_t stride; /* 0: linked; else the distance of blocks that are not linked yet */
} hak_blocks_t;

/* Blocks of class `sc`, the first of: the current slab's marked blocks, its fresh ones, a partial
 * slab, another owner's slab, a new slab. Remote frees are received first. At least one and at most
 * `want`; count == 0 when memory is out. */
hak_blocks_t hak_slab_refill(hak_owner_t *owner, unsigned sc, uint32_t want);
/* One block of class `sc` of a full slab rather than of an empty one: of the first partial slab of
 * some, in turn, whose rank is not below; else of the fullest of these; else as a refill. */
hak_blocks_t hak_slab_take_packed(hak_owner_t *owner, unsigned sc, uint32_t below);
/* How full a slab is, in sixteenths, and a number of its own among those as full. Blocks that were
 * never handed out hold no memory: they count as in use. */
HAK_INLINE uint32_t hak_slab_rank(const hak_slab_t *slab) {
    uint32_t free = hak_single_writer_load(&slab->free_count), capacity = slab->capacity;
    uint32_t own = (uint32_t)((uintptr_t)slab / HAK_UNIT_RECORD_BYTES) * 0x9e3779b1u >> 16;
    return (capacity - (free < capacity ? free : capacity)) * 16 / capacity << 16 | own;
}
/* Links a list with a stride: the first touch of fresh memory, so without a lock. */
void hak_slab_link(const hak_blocks_t *blocks);

/* Receives the remote frees of a few slabs. */
void hak_slab_receive(hak_owner_t *owner);

/* Leaves no slab current, and retires the empty ones. */
void hak_slab_release_current(hak_owner_t *owner);

/* --- shared by the files of this folder ------------------------------------------------------- */

/* Writes the slab's page-map entry (MAP-2). */
void hak_slab_set_entry(const hak_slab_t *slab);

/* Free blocks arrived in the slab: updates its state, and retires it when it is empty. */
void hak_slab_note_freed(hak_owner_t *owner, hak_slab_t *slab);
void hak_slab_change_owner(hak_slab_t *slab, hak_owner_t *owner);
/* Takes the first partial slab of the class out of the owner's list; NULL: it has none. */
hak_slab_t *hak_slab_take_partial(hak_owner_t *owner, unsigned sc);

#endif
