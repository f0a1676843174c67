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
 *   SLAB-8  hak_span_hole_bytes is the sum of all hole_bytes.
 *   SLAB-9  A free block has its tag (link.h), and a marked one its second word, unless it lay in a
 *           hole. From the first hole until no block is marked, has_purged_pages says so, and the
 *           page-map entry has the tag of no owner: every free of the slab's blocks takes the slow
 *           path, which looks at the marks. */
#ifndef HAK_SLAB_SLAB_H
#define HAK_SLAB_SLAB_H

#include "base/atomics.h"
#include "base/counters.h"
#include "base/list.h"
#include "os/lock.h"
#include "slab/sizeclass.h"
#include "span/pagemap.h"
#include "span/span.h"

enum { HAK_SLAB_PURGED_PAGES_ID = 0x7fffff00 }; /* SLAB-9 */

typedef enum hak_slab_state { HAK_SLAB_CURRENT, HAK_SLAB_PARTIAL, HAK_SLAB_FULL } hak_slab_state_t;

/* Lies in the unit record of its first unit: two cache lines, one for the owner, one for others. */
struct hak_slab {
    HAK_LINE_ALIGNED uint64_t
        *bits;                 /* [const] the words: [lock OWNER] marks: bit i: block i is free */
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
    uint16_t looked;           /* [lock OWNER] free_count + 1 at the last look for holes; 0: none */
    uint8_t round;             /* [lock OWNER] of looks, in which that was */
    bool is_purged : 1;        /* [lock OWNER] the holes went then, if there were some */
    bool is_spared : 1;        /* [lock OWNER] the large ones did */
    bool is_refused : 1;       /* [lock OWNER] the kernel did not take all of them */
    bool has_purged_pages : 1; /* [lock OWNER] SLAB-9 */
    bool is_zero : 1; /* [const] its units were clean: what was never handed out still is */

    HAK_LINE_ALIGNED uintptr_t remote; /* [atomic] list of batches, remote.h */
    hak_slab_t *queue_next;            /* [atomic] in an owner's queue */
    uint32_t hole_bytes;               /* [lock OWNER] that went since it was current; SLAB-8 */
    hak_owner_t *owner;                /* [atomic] changes under the locks of both */
};

_Static_assert(sizeof(hak_slab_t) <= HAK_UNIT_RECORD_BYTES, "a slab record fits its unit record");

/* A round of looks for holes, holes.c. */
typedef struct hak_holes_round {
    uint64_t due_ns;          /* [atomic] it goes on from then on */
    size_t free_bytes;        /* [lock OWNER] free in slabs that were not purged before it */
    size_t free_bytes_before; /* [lock OWNER] in the round before */
    uint32_t left;            /* [lock OWNER] slabs of the class that were not looked at */
    uint32_t purged;          /* [lock OWNER] slabs; half of those of the round before, and so on */
    uint32_t regretted;       /* [lock OWNER] slabs with holes that were needed again */
    uint8_t class_end;        /* [lock OWNER] class after that one; 0: it has not begun */
    uint8_t number;           /* [lock OWNER] of the round */
    uint8_t backoff;          /* [lock OWNER] doublings of the pause */
    uint8_t spare_class; /* [lock OWNER] class looked at next before a new peak; read as a hint */
} hak_holes_round_t;

/* Who slabs belong to. There are about as many owners as the process may use CPUs, each the home of
 * some threads; its lock says who may act for it. `queue` is written by everybody.
 *   OWNER-1  users is the number of tcaches of threads whose home it is. */
struct hak_owner {
    hak_slab_t *queue; /* [atomic] slabs that received remote frees */
    uint32_t users;    /* [atomic] threads whose home it is */
    uint32_t tag;      /* [const] page-map entry of its slabs, class 0 */
    bool is_left;      /* [atomic] its last user left, and nobody has tended it since */
    hak_owner_t *next; /* [const] list of all owners */
    HAK_LINE_ALIGNED hak_owner_lock_t lock;
    hak_slab_t *ready;                 /* [lock OWNER] taken from the queue, not drained yet */
    hak_slab_t *current[HAK_SC_COUNT]; /* [lock OWNER] */
    uint32_t
        slab_count[HAK_SC_COUNT]; /* [lock OWNER] slabs of the class; read by adopters, a hint */
    hak_list_t partial[HAK_SC_COUNT];     /* [lock OWNER] */
    uint32_t partial_count[HAK_SC_COUNT]; /* [lock OWNER] of `partial`; read by adopters, a hint */
    hak_holes_round_t holes;              /* [lock OWNER] */
    HAK_LINE_ALIGNED hak_class_counters_t counters[HAK_SC_COUNT]; /* [lock OWNER] a line each */
};

_Static_assert(sizeof(hak_class_counters_t) == HAK_LINE_BYTES, "one line an event");

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

void hak_owner_init(hak_owner_t *owner, uint32_t tag);

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

/* Gives the holes of the next `slabs` partial slabs of a class back; returns the bytes. */
size_t hak_slab_purge_holes(hak_owner_t *owner, unsigned sc, uint32_t slabs);
/* Goes on with the owner's round, until about so much work is done; returns what was. */
uint32_t hak_slab_decay_holes(hak_owner_t *owner, uint64_t now, uint32_t work);

/* --- owners (owner.c) ------------------------------------------------------------------------- */

/* The first owner, which needs no memory; it comes to be when first asked for. */
hak_owner_t *hak_owner_start(void);
/* A home for one more thread: the owner with the fewest; a new one if every owner has a thread and
 * the process may use more CPUs than there are owners. Never NULL. */
hak_owner_t *hak_owner_join(void);
/* One thread less has its home there. */
void hak_owner_part(hak_owner_t *owner);
/* Takes the lock of an owner: of `home`, or of another one if somebody keeps that. */
hak_owner_t *hak_owner_lock(hak_owner_t *home);
/* A thread changes its home. */
void hak_owner_move(hak_owner_t *from, hak_owner_t *to);
/* Waits a moment at most; false: somebody keeps it. */
bool hak_owner_try_lock(hak_owner_t *owner);
void hak_owner_unlock(hak_owner_t *owner);
/* Partial slabs of a class from which on an owner with users gives one away. */
enum { HAK_SLAB_SPARE = 8 };
/* Takes one slab of class `sc` with blocks to give from an owner no thread has its home at, or that
 * has some to spare; NULL if none is found. The caller holds `owner`. */
hak_slab_t *hak_slab_adopt(hak_owner_t *owner, unsigned sc);
/* The same from any owner, to its last, when memory is out. */
hak_slab_t *hak_slab_adopt_any(hak_owner_t *owner, unsigned sc);
/* Visits `budget` owners, so that blocks freed to them become usable, whoever sleeps. */
void hak_owner_tend(unsigned budget);
/* Takes everything that waits at any owner, and retires what is empty. */
void hak_owner_collect(void);
/* Gives the holes of all owners back. An owner is held while the kernel is called: others go
 * elsewhere meanwhile, and a fork waits for a few slabs' worth. */
size_t hak_owner_purge_holes(void);
/* What it would give back now, as far as memory is behind it; called with no lock held. */
typedef struct hak_hole {
    const char *base;
    size_t free_bytes;     /* of free blocks */
    size_t uncarved_bytes; /* behind them, where no block was made */
} hak_hole_t;
typedef void hak_hole_visit_t(const hak_hole_t *hole, void *context);
/* false: an owner is busy just then, and not all of it was visited. */
bool hak_owner_visit_holes(hak_hole_visit_t *visit, void *context);
/* As hak_owner_purge_holes, before the heap grows beyond its peak: about so many bytes, of large
 * holes only, and only as much as does not hurt. */
size_t hak_owner_spare_holes(size_t bytes);
/* A window has passed: half of what went so may go again. */
void hak_owner_forget_spared(void);
/* A step of time: those of slabs nobody used for a while go back, a few at a time. */
void hak_owner_decay_holes(void);
/* The next of all owners, in a ring; any cursor will do. */
hak_owner_t *hak_owner_next(hak_owner_t **cursor);
/* Calls visit for every owner, which is not held. */
void hak_owner_visit(void (*visit)(hak_owner_t *owner, void *context), void *context);
/* In the child of a fork: threads are gone, `home` is that of the one that is left. Unless it is
 * clean, structures are in the middle of a change. */
void hak_owner_after_fork(hak_owner_t *home, bool is_clean);

/* --- shared by the files of this folder ------------------------------------------------------- */

/* The slab's page-map entry: MAP-2. */
void hak_slab_set_entry(const hak_slab_t *slab);

/* Free blocks arrived in the slab: state and retirement follow. */
void hak_slab_note_freed(hak_owner_t *owner, hak_slab_t *slab);
void hak_slab_change_owner(hak_slab_t *slab, hak_owner_t *owner);
/* Takes the first partial slab of the class out of the owner's list; NULL: it has none. */
hak_slab_t *hak_slab_take_partial(hak_owner_t *owner, unsigned sc);

#endif
