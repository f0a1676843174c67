/* SPDX-License-Identifier: MIT
 *
 * The per-thread cache.
 *
 *   hak_tcache_t   bin[0] bin[1] ... bin[43] | tag | ...cold: owner, outbox, adaptation
 *   bin            { head, room }   16 bytes, four to a cache line, one load or store pair
 *
 * The thread finds it through one TLS word, an offset from the zero leaf. While the word is 0 the
 * thread has no tcache and sees that leaf itself instead (MAP-4): every bin is empty and has no
 * room, so both malloc and free leave through their cold exits. There is no "initialised?" test.
 *
 * Invariants:
 *   TCACHE-1  Only the thread whose TLS word leads to a tcache touches it ("owner"), except the
 *             fields tagged otherwise. The guest tcache belongs to the holder of HAK_LOCK_GUEST.
 *   TCACHE-2  The blocks of a bin are of its class and of slabs owned by this tcache; the list
 *             ends in NULL.
 *   TCACHE-3  room says how many more frees the bin takes before it overflows. It is an estimate:
 *             a bin that just took a whole list of a slab still gets half its capacity as room, so
 *             it may hold more than its capacity, by at most that list; nothing but the decision
 *             to overflow depends on it.
 *   TCACHE-4  An outbox entry with a slab holds a batch of 1 or more blocks of that slab. */
#ifndef HAK_FRONT_TCACHE_H
#define HAK_FRONT_TCACHE_H

#include "slab/remote.h"
#include "slab/slab_inl.h"

typedef struct hak_bin {
    void *head;   /* [owner] LIFO of free blocks */
    int64_t room; /* [owner] TCACHE-3; 0 in the empty tcache */
} hak_bin_t;

enum { HAK_OUTBOX_ENTRIES = 32 };

typedef struct hak_outbox_entry {
    hak_slab_t *slab;
    hak_batch_t batch;
} hak_outbox_entry_t;

struct hak_tcache {
    HAK_LINE_ALIGNED hak_bin_t bin[HAK_SC_COUNT]; /* [owner] */
    uint32_t tag;                                 /* [const] owner.tag */
    uint32_t ticks;                               /* [owner] slow-path events, front/event.h */
    uint32_t thread_id;                           /* [lock REGISTRY] of the thread that has it */
    bool is_attached;                             /* [lock REGISTRY] some live thread has it */
    uint32_t outbox_bytes;                        /* [owner] waiting in the outbox */
    const void *site;                 /* [owner] call site of the slow path in progress */
    int32_t capacity[HAK_SC_COUNT];   /* [owner] room of an empty bin; adapts */
    uint8_t overflowed[HAK_SC_COUNT]; /* [owner] since the last refill */
    hak_tcache_t *next;               /* [const] list of all tcaches */
    hak_owner_t owner;
    hak_outbox_entry_t outbox[HAK_OUTBOX_ENTRIES]; /* [owner] */
};

/* Offset of the tcache from the zero leaf; 0 while the thread has none. */
extern HAK_TLS uintptr_t hak_tcache_offset;

/* fast path: begin */
HAK_INLINE hak_tcache_t *hak_tcache_self(uintptr_t pagemap_base) {
    return (hak_tcache_t *)(hak_tcache_offset + pagemap_base);
}

/* One address for head and room, so that aarch64 moves them with one load and one store pair. */
HAK_INLINE hak_bin_t *hak_tcache_bin(hak_tcache_t *tcache, size_t sc) {
    hak_bin_t *bin = &tcache->bin[sc];
    __asm__("" : "+r"(bin));
    return bin;
}
/* fast path: end */

HAK_INLINE bool hak_tcache_is_empty(const hak_tcache_t *tcache) {
    return (const void *)tcache == (const void *)&hak_pagemap.zero;
}

/* Gives the calling thread a tcache: the one it had before its TLS was set up, a parked one or a
 * new one. NULL when metadata memory is out. Wiring (exit hook) is up to life/. */
hak_tcache_t *hak_tcache_attach(void);

/* Empties bins and outbox, parks the owner. The thread has no tcache afterwards. */
void hak_tcache_detach(hak_tcache_t *tcache);

/* Gives every cached block back to its slab, or to its owner. */
void hak_tcache_flush(hak_tcache_t *tcache);

/* Hands everything in the outbox over. */
void hak_outbox_flush(hak_tcache_t *tcache);
/* Adds one block of a slab of another owner. */
void hak_outbox_add(hak_tcache_t *tcache, hak_slab_t *slab, void *block);

/* The tcache of threads that have none (after their exit hook, or metadata ran out). Between the
 * two calls the caller holds HAK_LOCK_GUEST. */
hak_tcache_t *hak_tcache_guest_enter(void);
void hak_tcache_guest_leave(void);

/* Calls visit for every tcache, HAK_LOCK_REGISTRY held. */
void hak_tcache_visit(void (*visit)(hak_tcache_t *tcache, void *context), void *context);

/* In the child of a fork: every tcache but the caller's belongs to a thread that is gone. */
void hak_tcache_after_fork(void);

/* First capacity of a bin and the most it may grow to. */
int32_t hak_bin_initial_capacity(unsigned sc);
int32_t hak_bin_max_capacity(unsigned sc);

#endif
