/* SPDX-License-Identifier: MIT
 *
 * The per-thread cache.
 *
 *   hak_tcache_t   none | bin[0] bin[1] ... bin[49] | home, ... | side[0] ... side[18] | others
 *   bin            { head, slots_left, size_reciprocal }   16 bytes, four to a cache line
 *   side           adaptation and counters; those of larger classes lie apart (far_side)
 *
 * Two tcaches share an OS page, and nothing of a class is written before its first use (TCACHE-8):
 * a thread that uses little touches half a page (docs/experiments/0049-threads-and-starts.md).
 *
 * The thread finds it through one TLS word, an offset from the zero leaf. While the word is 0 the
 * thread has no tcache and sees that leaf instead (MAP-4): every bin is empty and no class is
 * begun, so malloc and free leave by their cold exits, and write nothing. There is no
 * "initialised?" test.
 *
 * Invariants:
 *   TCACHE-1  Only the thread whose TLS word leads to a tcache touches it, except the fields tagged
 *             otherwise. The fallback tcache belongs to the holder of HAK_LOCK_FALLBACK.
 *   TCACHE-2  The blocks of a bin are of its class, and of slabs of any owners. The list ends in
 *             NULL. If it is longer or shorter than counted, a block was freed twice, or was
 *             written to after its free.
 *   TCACHE-3  bin.slots_left + blocks in the bin == side.total. slots_left is the number of frees
 *             until the bin overflows; after a refill at least half the capacity, less a sampled
 *             block. So a bin may exceed its capacity by the blocks of a slab's list. The total is
 *             at most bin_max_blocks at the time of the refill or the overflow. After a failed push
 *             slots_left is negative until hak_slow_free.
 *   TCACHE-6  The kind of a page-map entry, its first byte, is the offset of a bin from the tcache,
 *             in words: of the class's, of `none` for a unit without an entry, or in `others` for
 *             all other kinds. No block is a multiple of 0 bytes, so those take nothing.
 *   TCACHE-7  drawn is the growth of the bins: the sum of hak_bin_charge over all classes, in
 *             bytes. hak_budget_drawn is the sum over all tcaches.
 *   TCACHE-8  Bit sc of begun: the class was refilled, or some of its blocks were freed. Without
 *             it bin and side are zero, except for the side's counters: the bin is empty and full,
 *             and no block is a multiple of 0 bytes. So all of the class leaves the hit path.
 *   TCACHE-9  `others` is always 0, as is `none`: empty bins for the offsets that the table has
 *             for size 0 and, while the heap profiler samples, for all sizes. Blocks of size 0 are
 *             in no bin (zero_size.h), and a sampled request may not pop one.
 *   TCACHE-10 In hardened builds a thread may have a second tcache, for the plain partition, which
 *             its TLS word leads to while a request or a free of that partition is served
 *             (hak_partition_enter). `second` of either leads to the other. Home and blocks of a
 *             tcache are of its partition, except for sampled blocks in its quarantine. */
#ifndef HAK_FRONT_TCACHE_H
#define HAK_FRONT_TCACHE_H

#include "slab/remote.h"
#include "slab/slab_inl.h"

typedef struct hak_bin {
    void *head;               /* [thread] LIFO of free blocks */
    int32_t slots_left;       /* [thread] TCACHE-3; 0 in the empty tcache */
    uint32_t size_reciprocal; /* [thread] hak_sc_factor of the class, close at hand for free */
} hak_bin_t;

/* The part of a bin that only slow paths use. */
typedef struct hak_bin_side {
    int32_t total;               /* [thread] TCACHE-3 */
    int32_t capacity;            /* [thread] blocks an empty bin takes; adapts */
    uint16_t want;               /* [thread] least blocks a refill asks for */
    uint8_t overflows;           /* [thread] since the last refill; counts to OVERFLOW_RUN */
    uint8_t idle;                /* [thread] shrink events since the last refill or overflow */
    bool has_sent;               /* [thread] an overflow since the last refill sent messages */
    hak_bin_counters_t counters; /* [thread] */
} hak_bin_side_t;

enum { HAK_SIDES_NEAR = 19 }; /* classes up to 896 bytes */

/* What a thread allocated and freed, as of its last question (compat/thread.c), refill or flush,
 * and what that followed from: the tcache's taken and given bytes, and bytes of blocks in its
 * bins. */
typedef struct hak_tally {
    uint64_t allocated, deallocated, taken, given, cached;
} hak_tally_t;
enum { HAK_TALLY_LINES = (sizeof(hak_tally_t) + HAK_LINE_BYTES - 1) / HAK_LINE_BYTES };

typedef struct hak_quarantine hak_quarantine_t;

struct hak_tcache {
    HAK_LINE_ALIGNED hak_bin_t none; /* [const] TCACHE-9 */
    hak_bin_t bin[HAK_SC_COUNT];     /* [thread] TCACHE-6 */
    uint32_t first_entry;            /* [thread] home->first_entry; read by statistics */
    uint32_t ticks;                  /* [thread] slow-path events, front/event.h */
    uint32_t event_step;             /* [thread] step of time of the last own events */
    uint32_t thread_id;              /* [lock REGISTRY] of its thread */
    union {                          /* [lock REGISTRY] */
        const void *thread;          /* address of its thread's TLS word */
        hak_tcache_t *ahead;         /* of an unused one, the one before in that list, or NULL */
    };
    bool is_attached;        /* [lock REGISTRY] a live thread has it */
    bool is_refilling : 1;   /* [thread] events run inside an allocation */
    bool guard_is_extra : 1; /* [thread] guard_left is of the allowance, not of the rate */
    uint8_t changing;        /* [thread] not 0: in a slow path, lists and counts differ */
    uint8_t profile_turn;    /* [thread] how often profile_left was drawn */
    uint32_t clear_most;     /* [thread] hardened builds: bytes of blocks cleared as a whole */
    hak_owner_t *home;       /* [thread] refills come from its slabs */
    hak_tcache_t *next;      /* [lock REGISTRY] list of all tcaches */
    hak_tcache_t *second;    /* [thread] TCACHE-10, or NULL; of an unused one the next,
                                [lock REGISTRY] */
    hak_thread_counters_t counters; /* [thread] */
    uint32_t drawn;                 /* [thread] TCACHE-7 */
    uint16_t initial_bytes;         /* [thread] of a bin at first */
    uint8_t shrink_cursor;          /* [thread] class to visit next */
    uint8_t flush_round;            /* [thread] hak_event_flush_round when last read */
    int64_t guard_left;       /* [thread] blocks of refills until a guarded one is due, if > 0 */
    uint64_t guard_random;    /* [thread] state of its generator; 0: none yet */
    uint64_t begun;           /* [thread] TCACHE-8 */
    hak_bin_side_t *far_side; /* [const] of the classes from HAK_SIDES_NEAR on */
    hak_quarantine_t *quarantine; /* [const] hardened builds; NULL: metadata was out */
    int64_t profile_left;         /* [thread] bytes of requests until one is sampled */
    const void *profile_label;    /* [thread] of the request in progress; NULL: none */
    hak_slab_t *sending;          /* [atomic] of the message on its way; NULL: none */
    size_t profile_rate;          /* [thread] by which profile_left was drawn; 0: never so far */
    uint64_t taken_bytes; /* [thread] of blocks that slabs gave to its bins, and large ones */
    uint64_t given_bytes; /* [thread] of those that its bins gave back, and large ones */
    hak_tally_t *tally;   /* [thread] NULL: it was never asked for */
    hak_tcache_t *before; /* [atomic] in the list of all; NULL: the newest, or not known yet */
    hak_bin_side_t side[HAK_SIDES_NEAR];
    /* [const] TCACHE-9. The processor fetches lines in pairs: next is another's bin */
    HAK_LINE_ALIGNED hak_bin_t others[(HAK_KIND_MASK + 1 - HAK_KIND_LARGE) / HAK_KIND_PER_CLASS];
};

_Static_assert(sizeof(hak_tcache_t) <= sizeof(hak_pagemap_leaf_t), "MAP-4: it is all in the leaf");
_Static_assert(sizeof(hak_tcache_t) == 2048, "two share an OS page");
_Static_assert(HAK_SC_COUNT <= 64, "TCACHE-8");
_Static_assert(HAK_KIND_PER_CLASS * sizeof(uint64_t) == offsetof(hak_tcache_t, bin), "TCACHE-6");
_Static_assert(HAK_KIND_LARGE * sizeof(uint64_t) == offsetof(hak_tcache_t, others), "TCACHE-9");

/* Offset of the tcache from the zero leaf; 0 while the thread has none. */
extern HAK_TLS uintptr_t hak_tcache_offset;

/* What else front/ and life/ keep of the calling thread. Together, as each variable of a thread may
 * cost a gap. */
extern HAK_TLS struct hak_thread_self {
    bool has_exited;              /* [thread] its destructor ran: no tcache any more */
    uint8_t frees_without_tcache; /* [thread] */
    uint16_t passed;              /* [thread] bits of the block that underlying.c passes on */
} hak_thread_self;

HAK_INLINE hak_bin_side_t *hak_bin_side(hak_tcache_t *tcache, unsigned sc) {
    return sc < HAK_SIDES_NEAR ? &tcache->side[sc] : &tcache->far_side[sc - HAK_SIDES_NEAR];
}

/* Prepares bin and side of a class for their first use; nothing if they were. */
HAK_COLD void hak_bin_first_use(hak_tcache_t *tcache, unsigned sc);
/* The bin is empty. TCACHE-8 */
void hak_bin_end(hak_tcache_t *tcache, unsigned sc);
HAK_INLINE void hak_bin_begin(hak_tcache_t *tcache, unsigned sc) {
    if (HAK_UNLIKELY((tcache->begun >> sc & 1) == 0)) {
        hak_bin_first_use(tcache, sc);
    }
}

HAK_INLINE bool hak_tcache_is_empty(const hak_tcache_t *tcache) {
    return (const void *)tcache == (const void *)&hak_pagemap.zero;
}

/* Brackets what a signal handler that ends the thread must not leave half done; nests. Elsewhere,
 * on the hit path, at most one list has a block less than counted. */
HAK_INLINE void hak_tcache_change(hak_tcache_t *tcache, int step) {
    HAK_SIGNAL_FENCE();
    tcache->changing = (uint8_t)(tcache->changing + step);
    HAK_SIGNAL_FENCE();
}

/* NULL: the fallback tcache is the caller's. */
HAK_INLINE hak_partition_t hak_tcache_partition(const hak_tcache_t *tcache) {
    return tcache != NULL ? hak_slab_partition(tcache->first_entry) : HAK_PARTITION_ANY;
}

/* NULL in other builds, and where metadata was out. */
HAK_INLINE hak_quarantine_t *hak_quarantine_of(const hak_tcache_t *tcache) {
    return HAK_HARDEN ? tcache->quarantine : NULL;
}

/* A thread's tcaches (TCACHE-10), walked from `first` on: the one behind it, or NULL. */
HAK_INLINE hak_tcache_t *hak_tcache_behind(const hak_tcache_t *tcache, const hak_tcache_t *first) {
    return HAK_HARDEN && tcache == first ? tcache->second : NULL;
}

/* Hardened builds: the calling thread serves a request or a free of another partition (TCACHE-10).
 * Its TLS word leads to the other tcache, made at first use, until it leaves with the result.
 * Threads without a tcache, at their very end, enter nothing, nor do others while metadata is out:
 * their requests are served by the other partition. In other builds nothing changes. */
HAK_NOINLINE uintptr_t hak_partition_enter(hak_partition_t partition);
/* The same for a request with a token; of a type with pointers it enters nothing: 0. */
HAK_INLINE uintptr_t hak_partition_enter_plain(bool is_plain) {
    return HAK_HARDEN && is_plain ? hak_partition_enter(HAK_PARTITION_PLAIN) : 0;
}
HAK_INLINE void hak_partition_leave(uintptr_t before) {
    if (HAK_HARDEN && before != 0) { /* else the request made the thread's first tcache, too */
        hak_tcache_offset = before;
    }
}

HAK_INLINE void hak_tcache_set_home(hak_tcache_t *tcache, hak_owner_t *home) {
    tcache->home = home;
    hak_single_writer_store(&tcache->first_entry, home->first_entry);
}

/* Locks the home, or an owner that becomes the home; returns it. Release it by hak_owner_unlock. */
hak_owner_t *hak_tcache_lock_home(hak_tcache_t *tcache);

/* The tcache has a tally, and is the thread's own. */
HAK_COLD void hak_tally_update(hak_tcache_t *tcache);

/* Slow paths call it as they end. */
HAK_INLINE void hak_tally_follow(hak_tcache_t *tcache) {
    if (HAK_UNLIKELY(tcache->tally != NULL)) {
        hak_tally_update(tcache);
    }
}

/* Flushes every cached block; those of one of a thread's two tcaches; those of a class. */
void hak_tcache_flush(hak_tcache_t *tcache);
void hak_bins_flush(hak_tcache_t *tcache);
void hak_bin_flush(hak_tcache_t *tcache, unsigned sc);

/* The tcache of threads that have none (past their exit hook, or metadata ran out). The caller
 * holds HAK_LOCK_FALLBACK between the two calls, and gets no signals: a handler that allocates
 * would wait for its own thread. */
extern hak_tcache_t hak_tcache_fallback; /* [lock FALLBACK] */
hak_tcache_t *hak_tcache_fallback_lock(void);
void hak_tcache_fallback_prepare(void); /* for visitors, too. [lock REGISTRY] */
void hak_tcache_fallback_unlock(void);

/* The blocks that a tcache holds, for any thread: an estimate while its own thread works. */
typedef struct hak_tcache_view {
    uint32_t first_entry, drawn, event_step;
    hak_tcache_t *second; /* TCACHE-10, while a thread has it */
    uint32_t cached[HAK_SC_COUNT], quarantine[HAK_SC_COUNT];
} hak_tcache_view_t;
void hak_tcache_read(hak_tcache_t *tcache, hak_tcache_view_t *view);
/* No thread has it: it is empty, or a fork left it in the middle of a change. [lock REGISTRY] */
HAK_INLINE bool hak_tcache_is_left(const hak_tcache_t *tcache) {
    return !tcache->is_attached && tcache != &hak_tcache_fallback;
}

/* [lock REGISTRY] tcache.c and attach.c */
extern hak_tcache_t *hak_all_tcaches, *hak_unused_tcaches;
extern uint32_t hak_tcache_count;

/* Calls visit for every tcache until it returns false, HAK_LOCK_REGISTRY held. */
void hak_tcache_visit(bool (*visit)(hak_tcache_t *tcache, void *context), void *context);

#endif
