/* SPDX-License-Identifier: MIT
 *
 * free, cold exit. hak_slow_free decides the outcome for a pointer that the hit path did not push.
 * The place of its entry comes from the hit path. Rows are tested from top to bottom; only a push
 * without a slot makes slots_left negative, which the first row reads and repairs:
 *
 *   entry of the unit   state                             outcome
 *   slab                the hit path's push found no slot free_to_full_bin: tick, flush
 *   large, huge         not the start of the block        fatal, INTERIOR_FREE
 *                       freed by two threads at once      fatal, DOUBLE_FREE
 *                       else                              free_large
 *   body of a large one                                   fatal, INTERIOR_FREE
 *   guarded                                               hak_services.guard_free
 *   of size 0                                             hak_zero_size_free
 *   other, no slab's    NULL                              nothing
 *                       force_libc                        underlying allocator's free
 *                       inside memory of ours             fatal, DEAD_FREE
 *                       known to underlying allocator     underlying allocator's free
 *                       a caller defines free or delete   that (front/underlying.c)
 *                       else                              fatal, INVALID_FREE
 *   slab                no block starts there             fatal, INTERIOR_FREE
 *   of sampled blocks                                     hak_services.profile_free
 *   other slab          newest block of the bin, or looks
 *                       free or has purged pages, and is
 *                       found free                        fatal, DOUBLE_FREE
 *                       the thread has no tcache, or has  free_as_message: to its owner
 *                       not begun the class
 *                       the bin has slots left            pushed: slabs of several units, or with
 *                                                         purged pages
 *                       the bin is full                   free_to_full_bin: tick, flush
 *
 * Owners do not matter here, and the slab may be adopted by another one at any time: the flush of a
 * bin looks each block's entry up (TCACHE-2). */
#include "base/knobs.h"
#include "front/budget.h"
#include "front/event.h"
#include "front/fast.h"
#include "front/find_free.h"
#include "front/flush.h"
#include "front/underlying.h"
#include "front/zero_size.h"
#include "large/large.h"

#include <errno.h>

enum {
    OVERFLOW_BLOCKS = 32, /* leave a full bin at once: bounds the work of one free */
    /* Overflows without a refill, after which a bin grows up to OVERFLOW_BLOCKS or so many bytes
     * (docs/experiments/0102-bins-grow-in-long-runs-of-frees.md) */
    OVERFLOW_RUN = 16,
    OVERFLOW_BYTES = 8192,
    /* So many of up to OVERFLOW_SMALL_BYTES, from the second overflow without a refill on
     * (docs/experiments/0104-fixed-part-of-a-flush.md) */
    OVERFLOW_SMALL_BLOCKS = 64,
    OVERFLOW_SMALL_BYTES = 64,
    FREES_BEFORE_BIN = 4,
    /* Frees of a thread before it gets a tcache for more. At its very end, when its exit hook has
     * run or never will, a thread frees a little (the C library does); for more it needs one. */
    FREES_WITHOUT_TCACHE = 64,
};

/* --- not a block of a slab -------------------------------------------------------------------- */

void hak_slow_require_foreign(const void *block, hak_fatal_kind_t kind) {
    bool is_free = kind == HAK_FATAL_INVALID_FREE; /* the underlying free says whether it is one */
    hak_life_process_start();
    if (hak_load_relaxed(&hak_knobs.force_libc)) {
        return;
    }
    if (hak_pagemap_superslab(block) != NULL || hak_large_covers(block)) {
        hak_fatal(is_free ? HAK_FATAL_DEAD_FREE : kind, block,
                  is_free ? NULL : "inside our memory, but no block");
    }
    hak_require(is_free || hak_underlying_owns(block), kind, block);
}

static HAK_COLD void free_foreign(void *block) {
    int saved = errno; /* dlsym, or the other free, may set it */
    hak_slow_require_foreign(block, HAK_FATAL_INVALID_FREE);
    hak_require(hak_underlying_free(block), HAK_FATAL_INVALID_FREE, block);
    hak_count(foreign_free);
    errno = saved;
}

static HAK_NOINLINE void free_large(hak_tcache_t *tcache, void *block, uint32_t entry) {
    if (HAK_UNLIKELY(hak_load_relaxed(hak_profile_cell(block)) != 0)) {
        hak_services.profile_end(block, hak_services.profile_take(block), false);
    }
    size_t bytes = hak_large_free(block, entry);
    hak_require(bytes != 0,
                hak_pagemap_get(hak_pagemap_base(), block) == entry
                    ? HAK_FATAL_INTERIOR_FREE
                    : HAK_FATAL_DOUBLE_FREE, /* by two threads at once */
                block);
    if (!hak_tcache_is_empty(tcache)) {
        tcache->given_bytes += bytes;
        hak_event_tick(tcache, false);
    }
    hak_wanted_serve();
    hak_tally_follow(tcache);
}

/* --- blocks of slabs -------------------------------------------------------------------------- */

/* The first frees of a thread, or of a class in it, go to the slabs' owners: a thread that frees a
 * few blocks of others shall not reuse them, as they may share cache lines with blocks that other
 * threads use. A refill of the class begins it, or FREES_BEFORE_BIN frees. */
static HAK_COLD void free_as_message(hak_tcache_t *tcache, unsigned sc, hak_slab_t *slab,
                                     void *block) {
    hak_slab_check_freed(slab, block);
    bool has_tcache = !hak_tcache_is_empty(tcache);
    hak_remote_send_block(slab, block, has_tcache ? &tcache->sending : NULL);
    if (has_tcache) {
        hak_bin_counters_t *counters = &hak_bin_side(tcache, sc)->counters;
        hak_single_writer_add(&counters->remote_out, 1);
        tcache->given_bytes += hak_sc_info[sc].bytes;
        if (counters->remote_out % FREES_BEFORE_BIN == 0) {
            hak_tcache_change(tcache, 1);
            hak_bin_begin(tcache, sc);
            hak_tcache_change(tcache, -1);
        }
        return;
    }
    hak_count(fallback_use);
    if (hak_thread_self.frees_without_tcache < FREES_WITHOUT_TCACHE) {
        hak_thread_self.frees_without_tcache++;
    } else {
        (void)hak_life_thread_start(); /* for its next frees */
    }
}

/* A long run of frees: the more blocks leave at once, the fewer frees find the bin full. */
HAK_INLINE void bin_note_overflow(hak_tcache_t *tcache, unsigned sc, hak_bin_side_t *side) {
    uint32_t grown = side->capacity == 0 ? 1 : (uint32_t)side->capacity * 2;
    if (side->overflows < OVERFLOW_RUN) {
        side->overflows++;
    } else if (grown <= OVERFLOW_BLOCKS && grown * hak_sc_info[sc].bytes <= OVERFLOW_BYTES) {
        hak_bin_grow(tcache, sc);
    }
    side->idle = 0;
}

/* Flushes this block and the newest in the bin: the flush reads every block, and the newest are
 * still in the CPU's cache. Events run first, as some threads only free; they may empty the bin. */
static HAK_NOINLINE void free_to_full_bin(hak_tcache_t *tcache, unsigned sc, void *block) {
    hak_bin_t *bin = &tcache->bin[sc];
    hak_bin_side_t *side = hak_bin_side(tcache, sc);
    hak_tcache_change(tcache, 1);
    bin->slots_left = 0; /* failed pushes made it negative */
    hak_event_tick(tcache, false);
    if (HAK_UNLIKELY(bin->slots_left > 0) && hak_bin_push(bin, block)) {
        hak_tcache_change(tcache, -1);
        return;
    }
    bin->slots_left = 0; /* a handler took the last one */
    bool is_again = side->overflows != 0, is_small = hak_sc_info[sc].bytes <= OVERFLOW_SMALL_BYTES;
    int32_t most = is_again && is_small ? OVERFLOW_SMALL_BLOCKS : OVERFLOW_BLOCKS;
    int32_t part = is_again ? side->total + 1 : side->total / 2 + 1;
    bin_note_overflow(tcache, sc, side);
    int32_t leaving = part > most ? most : part;
    int32_t kept = side->total + 1 - leaving, capacity = hak_bin_capacity(side);
    side->total = kept > capacity ? kept : capacity; /* a refill may have exceeded the capacity */
    hak_single_writer_add(&side->counters.overflow, 1);
    hak_link_set(block, bin->head);
    hak_blocks_t blocks = {.head = block, .count = (uint32_t)leaving};
    hak_store_relaxed(&bin->head, NULL); /* hides the list from searches while it is flushed */
    uint64_t sent = side->counters.remote_out;
    hak_store_hot(&bin->head, hak_tcache_flush_blocks(tcache, sc, blocks));
    side->has_sent = side->has_sent || side->counters.remote_out != sent;
    bin->slots_left = side->total - kept;
    hak_wanted_serve(); /* hooks may allocate: the bin is whole again */
    hak_tally_follow(tcache);
    hak_tcache_change(tcache, -1);
}

void hak_slow_require_used(const void *block, uint32_t entry, hak_fatal_kind_t kind) {
    bool is_suspect = hak_link_has_free_marker(hak_tag_link_word(block)) ||
                      (entry & HAK_KIND_MASK) == HAK_KIND_PURGED; /* SLAB-9: none is sure */
    hak_require(HAK_LIKELY(!is_suspect) || !hak_find_free_block(hak_tag_strip(block)), kind, block);
}

/* --- the dispatcher --------------------------------------------------------------------------- */

/* The entry is no slab's. */
HAK_INLINE void free_other(void *block, hak_tcache_t *tcache, uint32_t entry) {
    switch (entry & HAK_KIND_MASK) {
    case HAK_KIND_LARGE:
    case HAK_KIND_HUGE:
        free_large(tcache, block, entry);
        break;
    case HAK_KIND_LARGE_BODY:
        hak_fatal(HAK_FATAL_INTERIOR_FREE, block, NULL);
        break;
    case HAK_KIND_GUARD:
        hak_services.guard_free(block);
        break;
    case HAK_KIND_ZERO_SIZE:
        hak_zero_size_free(block, entry);
        break;
    default:
        if (block != NULL) {
            free_foreign(block);
        }
    }
}

static HAK_NOINLINE void free_by_entry(void *block, hak_tcache_t *tcache, uint32_t entry,
                                       uintptr_t index) {
    if (HAK_UNLIKELY(!hak_slab_is_entry(entry))) {
        free_other(block, tcache, entry);
        return;
    }
    hak_slab_check_start(index, entry, block);
    if (HAK_UNLIKELY(hak_slab_entry_is_sampled(entry))) {
        hak_services.profile_free(block, entry);
        return;
    }
    unsigned sc = hak_sc_of_entry(entry);
    hak_bin_t *bin = &tcache->bin[sc];
    hak_require(block != bin->head, HAK_FATAL_DOUBLE_FREE, block);
    hak_slow_require_used(block, entry, HAK_FATAL_DOUBLE_FREE);
    if (HAK_UNLIKELY((tcache->begun >> sc & 1) == 0)) {
        hak_superslab_t *superslab = hak_pagemap_superslab_at(index, block);
        free_as_message(tcache, sc, hak_slab_in(superslab, block), block);
    } else if (HAK_UNLIKELY(!hak_bin_push(bin, block))) {
        free_to_full_bin(tcache, sc, block);
    }
}

/* The common outcome needs no saved register. If the slab's pages were purged since the hit path
 * read the entry, free_by_entry pushes again. */
void hak_slow_free(void *block, hak_tcache_t *tcache, uintptr_t index) {
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index);
    if (hak_bin_at(tcache, entry & HAK_KIND_MASK)->slots_left < 0) {
        free_to_full_bin(tcache, hak_sc_of_entry(entry), block);
    } else {
        free_by_entry(block, tcache, entry, index);
    }
}

/* --- with a size ------------------------------------------------------------------------------ */

/* A block that realloc left in place may have the size of another class, too. When memory was out,
 * realloc left even blocks that were to shrink. */
static bool is_size(const hak_sc_info_t *info, uint32_t entry, size_t align, size_t size) {
    size_t usable = hak_sc_usable(info);
    if (size >= info->keep_from || size > usable / 2 || hak_load_relaxed(&hak_resize_has_kept)) {
        return size <= usable;
    }
    return hak_sc_of_aligned(size == 0 ? 1 : size, align == 0 ? 1 : align) ==
           hak_sc_of_entry(entry);
}

void hak_slow_free_sized(void *block, size_t align, size_t size, uintptr_t index) {
    uint32_t entry = hak_pagemap_at(hak_pagemap_base(), index), kind = entry & HAK_KIND_MASK;
    bool is_right = true;
    if (HAK_LIKELY(hak_slab_is_entry(entry))) {
        is_right = is_size(hak_sc_info_of_entry(entry), entry, align, size);
    } else if (kind == HAK_KIND_LARGE || kind == HAK_KIND_HUGE) {
        size_t bytes = hak_large_usable(block, entry);
        is_right = bytes == 0 || size <= bytes; /* 0: inside a block, fatal below */
    } else if (kind == HAK_KIND_ZERO_SIZE) {
        is_right = size == 0;
    }
    hak_require(is_right || !hak_load_relaxed(&hak_knobs.sized_check), HAK_FATAL_SIZE_MISMATCH,
                block);
    hak_fast_free_kind(hak_pagemap_base(), index, kind, block);
}
