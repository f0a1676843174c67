/* SPDX-License-Identifier: MIT
 *
 * The provider of spans: superslabs, their units, and purges of unused ones.
 *
 *   superslab   4 MiB of user memory, 64 units. Its record lies elsewhere (meta.c): per unit a byte
 *               that leads to its slab's first one, and for the layer that uses the span 128 opaque
 *               bytes and 9 lines of 64.
 *
 * Units are taken out of free_units by compare-and-swap and given back by an OR, without a lock;
 * the taker of a unit has its bits in all other words (docs/remote-free.md, section 12).
 * HAK_LOCK_SPAN guards what finds superslabs, maps and unmaps them, and the backing of ranges of 2
 * MiB.
 *
 * Invariants, where no thread is in between:
 *   SPAN-1  A unit is free (bit in free_units), belongs to exactly one span, or is being purged (in
 *           leaving_units, or all of the superslab is about to be unmapped).
 *   SPAN-2  A clean unit (bit in clean_units) reads as zero. The bit survives allocation: the free
 *           of the span tells how many leading units were written to.
 *   SPAN-3  Unused units by `counts` == sum of popcount(free & ~clean), less units of purges in
 *           progress. Never less: they are added before their bits, and subtracted after.
 *   SPAN-4  fit[n] has at least the length of each superslab's longest free run that begins at a
 *           multiple of 2^n units: for n = 0 always, else since the first request with that
 *           alignment. A search that was promised too much lowers it.
 *   SPAN-5  Superslabs are filled in the order of their index; the highest are emptied first.
 *   SPAN-6  Bit i of huge_pages: the kernel may back the i-th 2 MiB with a huge page. Then either
 *           all its units are free and clean, or none is clean.
 *   SPAN-7  low_units <= unused units <= high_units.
 *   SPAN-8  A unit in padding_units lies in a range that was opened for huge pages, and has been in
 *           no span since.
 *   SPAN-9  vacant has 1 for the places of the table below `end` without a superslab, else 0.
 *   SPAN-10 dirty has 1 for superslabs with units that are free and not clean. A purge that finds
 *           none there makes it 0.
 *   SPAN-11 The units of a superslab serve one partition only. Once there are two partitions, no
 *           superslab is unmapped: its addresses would come back in either. */
#ifndef HAK_SPAN_SPAN_H
#define HAK_SPAN_SPAN_H

#include "base/bits.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "base/wanted.h"
#include "span/dense.h"

/* Of the heap, by what the blocks are for. Only hardened builds have the second. */
typedef enum hak_partition {
    HAK_PARTITION_ANY,
    HAK_PARTITION_PLAIN, /* of types without pointers */
} hak_partition_t;

enum { HAK_UNIT_RECORD_BYTES = 128, HAK_SUPERSLAB_PLANES = 9 };

typedef struct hak_unit_record {
    HAK_LINE_ALIGNED unsigned char bytes[HAK_UNIT_RECORD_BYTES];
} hak_unit_record_t;

/* Words that any thread writes, of the layer that uses the span: all zero in a unit without span.
 * Line p of every unit is in plane p, 4 KiB: a plane that nobody uses costs addresses only. */
typedef struct hak_unit_line {
    HAK_LINE_ALIGNED uint64_t word[HAK_LINE_BYTES / sizeof(uint64_t)]; /* [atomic] */
} hak_unit_line_t;
typedef hak_unit_line_t hak_plane_t[HAK_SUPERSLAB_UNITS];

struct hak_superslab {
    HAK_LINE_ALIGNED char *base; /* [const] while units are in spans, as `partition` */
    uint64_t free_units;         /* [atomic] bit per unit; 0 in an unused record */
    uint64_t clean_units;        /* [atomic] bit per unit, of the taker of the unit, as the next */
    uint64_t purged_units;       /* [atomic] clean because of a purge, not wanted since */
    uint64_t leaving_units;      /* [lock SPAN] neither free nor in a span: purges in progress */
    uint64_t padding_units;      /* [atomic] SPAN-8 */
    uint8_t huge_pages;          /* [lock SPAN] written; SPAN-6 */
    uint8_t partition;           /* [const] SPAN-11 */
    uint32_t index;              /* [lock SPAN] place in the table; order of creation */
    hak_superslab_t *next;       /* [lock SPAN] list of unused records */
    /* [atomic] per unit of a slab: units back to the slab's first, whose record is the slab's */
    HAK_LINE_ALIGNED uint8_t units_to_first[HAK_SUPERSLAB_UNITS];
    HAK_LINE_ALIGNED uint32_t planes_used;       /* [atomic] bit per plane; never cleared */
    hak_unit_record_t unit[HAK_SUPERSLAB_UNITS]; /* of the layer that uses the span */
    hak_plane_t plane[HAK_SUPERSLAB_PLANES];     /* the same; [atomic] */
};

struct hak_span {
    hak_superslab_t *superslab;
    char *base;
    unsigned unit;  /* first unit */
    unsigned count; /* units */
    bool is_zero;   /* every byte reads as zero */
};

/* The expected writes: perhaps only to parts; to all of it soon; or as samples say. */
static hak_dense_t *const HAK_SPAN_SPARSE = NULL;
static hak_dense_t *const HAK_SPAN_DENSE = &hak_dense_sure;

/* Alignments of spans: units, two units, to the largest that large blocks ask for. */
enum { HAK_SPAN_ALIGNS = 5, HAK_SPAN_MOST_ALIGN = HAK_UNIT_BYTES << (HAK_SPAN_ALIGNS - 1) };

/* The partition of a superslab, of a unit in a span. */
HAK_INLINE hak_partition_t hak_span_partition(const hak_superslab_t *superslab) {
    return HAK_HARDEN ? (hak_partition_t)superslab->partition : HAK_PARTITION_ANY;
}

/* Allocates a span of `count` units (1 to 64) at a multiple of `align` bytes (a power of two, at
 * most HAK_SPAN_MOST_ALIGN; of one unit in the plain partition). false: the kernel gives no more.
 * May map a superslab. */
bool hak_span_alloc(hak_partition_t partition, unsigned count, size_t align, hak_dense_t *use,
                    hak_span_t *span);

/* The last span that needed a superslab was refused without asking the kernel, as it has refused
 * one and nothing was unmapped since. [atomic] a hint */
extern bool hak_span_is_refused;

/* Touches a span's first block, which the caller owns, where that opens a huge page, and notes how
 * long it took. For the caller that got the span, before it is written to. */
void hak_huge_page_touch(char *block);
extern uintptr_t hak_huge_page_due; /* [atomic] the unit whose touch is timed; 0: none */
HAK_INLINE void hak_span_touch(void *block) {
    uintptr_t unit = (uintptr_t)block & ~(uintptr_t)(HAK_UNIT_BYTES - 1);
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_huge_page_due) == unit)) {
        hak_huge_page_touch(block);
    }
}

/* Frees a span, of which at most the first `touched` units were written to. Sets HAK_WANTED_PURGE
 * when unused memory exceeds its bound. */
void hak_span_free(hak_superslab_t *superslab, unsigned unit, unsigned count, unsigned touched);

/* Grows a span in place from `count` to `wanted` units. */
bool hak_span_extend(hak_superslab_t *superslab, unsigned unit, unsigned count, unsigned wanted);

/* Purges all but `keep_bytes` of unused memory, and returns the bytes; 0 also unmaps superslabs. */
size_t hak_span_purge(size_t keep_bytes);

/* The same in at most 256 calls, except refused ones, unless is_all. Purges whole superslabs, which
 * takes few calls, or with is_exact only the excess units. */
typedef struct hak_purge_plan {
    size_t keep_bytes;
    bool is_exact, is_all;
    bool is_cut;     /* result: the calls were too few */
    bool is_refused; /* result: the kernel refused all units of a superslab */
} hak_purge_plan_t;
size_t hak_span_purge_by(hak_purge_plan_t *plan);

enum { HAK_WINDOW_MS = 400 }; /* unused for so long: purged (docs/experiments/0023-decay.md) */
static const uint64_t HAK_WINDOW_NS = HAK_WINDOW_MS * 1000000ull;

/* Unused memory of one kind. */
typedef struct hak_pool {
    size_t in_use_bytes;
    size_t resident_bytes;        /* unused, and holds memory */
    size_t low_bytes, high_bytes; /* least and most of these in this window */
    size_t dip_bytes;             /* least since the last read */
} hak_pool_t;

/* The bound of unused units, at least retain_min_bytes. */
HAK_INLINE size_t hak_retain_bytes(size_t in_use_bytes) {
    size_t share = in_use_bytes / 100 * hak_load_relaxed(&hak_knobs.retain_percent);
    size_t bound = hak_most(share, hak_load_relaxed(&hak_knobs.retain_min_bytes));
    return bound + bound / 100 * hak_load_relaxed(&hak_knobs.retain_learned_percent);
}

/* Unused units; `is_turn` begins another window. */
void hak_span_pool(hak_pool_t *pool, bool is_turn);

/* A span's user purged some OS pages of the units: huge pages there become small for good. */
void hak_span_note_purged(hak_superslab_t *superslab, uint64_t units);

/* Bytes of such pages, until they are written to again. [atomic] */
extern size_t hak_span_purged_bytes;

/* When the memory in use, less purged pages, passes this, HAK_WANTED_PEAK is set. [atomic] */
extern size_t hak_span_peak_bytes;

/* When units that hold memory, less purged pages, pass this, HAK_WANTED_LIMIT is set. [atomic] */
extern size_t hak_span_limit_bytes; /* SIZE_MAX: never */

/* So many bytes of purged pages are about to be written to again. */
HAK_INLINE void hak_span_note_filled(size_t bytes) {
    hak_sub_relaxed(&hak_span_purged_bytes, bytes);
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_span_limit_bytes) != SIZE_MAX)) {
        hak_want(HAK_WANTED_LIMIT);
    }
}

/* In the child of a fork, structures at rest: units that other threads were purging are unused. */
void hak_span_after_fork(void);

typedef struct hak_span_stats {
    size_t mapped_bytes;                 /* address space of all superslabs */
    size_t in_use_bytes;                 /* units in spans */
    size_t unused_dirty_bytes;           /* free units that still hold memory */
    size_t superslab_count, whole_count; /* all; those of which every unit is free */
    size_t meta_bytes;                   /* metadata handed out, all layers */
} hak_span_stats_t;
void hak_span_stats(hak_span_stats_t *stats);

/* Calls visit for every superslab, lowest index first, with HAK_LOCK_SPAN held: it may not allocate
 * or free spans. Waiters get the lock now and then: a superslab mapped again may come twice. */
void hak_span_visit(void (*visit)(hak_superslab_t *superslab, void *context), void *context);

/* --- memory for metadata ---------------------------------------------------------------------- */
/* Zeroed, aligned to a cache line, never freed; lies in our tables or between guard OS pages. NULL
 * when the kernel gives no more. Usable before anything else works. */
void *hak_meta_alloc(size_t bytes);
/* Counts bytes that were handed out, but are used only now; negative: are not used yet. */
void hak_meta_note_used(ptrdiff_t bytes);

/* Pieces of 1 to HAK_META_MOST_LINES cache lines, which can be given back, all zero again, for
 * reuse at the same length. NULL as above. */
enum { HAK_META_MOST_LINES = 8 };
void *hak_meta_take(unsigned lines);
void hak_meta_give(void *piece, unsigned lines);

size_t hak_meta_bytes(void);

/* Our address ranges without superslabs and huge blocks, for statistics. They never go away. */
typedef enum hak_region_kind { HAK_REGION_META, HAK_REGION_GUARD } hak_region_kind_t;
typedef struct hak_region {
    char *base; /* [const], as the next two */
    size_t bytes;
    hak_region_kind_t kind;
    struct hak_region *next; /* [const] since it was added */
} hak_region_t;
void hak_region_add(hak_region_t *region);

#endif
