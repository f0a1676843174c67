/* SPDX-License-Identifier: MIT
 *
 * Large blocks: whole units from the span provider, at most 1 MiB. */
#include "large/large.h"
#include "large/guarded.h"
#include "large/huge_cache.h"
#include "large/huge_quarantine.h"
#include "large/vacant.h"

#include "base/check.h"
#include "base/counters.h"
#include "os/optional.h"

typedef struct hak_large {
    uint8_t unit;    /* [const] */
    uint8_t units;   /* [atomic] only the block's user may change it, by resize */
    bool is_fresh;   /* of its user: it began as untouched small OS pages, and was not resized */
    bool is_guarded; /* of its user: guarded.h */
    uint8_t tail;    /* of its user: TAIL_GRAINs of memory behind the bytes asked for */
} hak_large_t;

_Static_assert(sizeof(hak_large_t) <= HAK_UNIT_RECORD_BYTES, "a large record fits");

void hak_large_footprint(hak_footprint_t *footprint) {
    hak_span_stats_t span;
    hak_large_stats_t large;
    hak_span_stats(&span);
    hak_large_stats(&large);
    footprint->unused_bytes = span.unused_dirty_bytes;
    footprint->cached_bytes = large.huge_cached_dirty_bytes;
    footprint->huge_bytes = large.huge_in_use_bytes + footprint->cached_bytes;
    footprint->all_bytes = footprint->huge_bytes + footprint->unused_bytes +
                           hak_excess(span.in_use_bytes, hak_load_relaxed(&hak_span_purged_bytes));
}

size_t hak_large_unmappable(void) {
    hak_span_stats_t span;
    hak_large_stats_t large;
    hak_span_stats(&span);
    hak_large_stats(&large);
    return span.whole_count * HAK_SUPERSLAB_BYTES + large.huge_cached_bytes +
           (HAK_HARDEN ? hak_huge_quarantine_bytes() : 0);
}

/* Of blocks up to 256, 512, 768 KiB and 1 MiB. */
enum { LARGE_BANDS = 4 };
HAK_LOCKED_STATE hak_dense_t hak_large_dense[LARGE_BANDS];

static hak_dense_t *large_use(unsigned units) {
    return &hak_large_dense[(units - 1) / (HAK_LARGE_MAX_UNITS / LARGE_BANDS)];
}

/* From here on realloc moves pages; a copy of less is cheaper than the system calls. */
enum { LARGE_MOVE_MIN_BYTES = 128 << 10 };

/* docs/experiments/0156-dirty-tails-near-a-limit.md */
enum {
    TAIL_GRAIN = 512,  /* bytes; a tail's number of them fits a byte */
    TAIL_DIVISOR = 16, /* of a limit: what all tails may hold */
};
HAK_LOCKED_STATE size_t hak_large_tail_grains; /* [atomic] of all records: of blocks in use */

void hak_large_reclaim(size_t bytes) {
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_knobs.limit_soft_bytes) != SIZE_MAX)) {
        hak_services.give_back(bytes);
    }
}

static size_t units_of(size_t bytes) {
    return (bytes + HAK_UNIT_BYTES - 1) >> HAK_UNIT_LOG2;
}

static hak_superslab_t *large_superslab(const void *block, hak_large_t **record) {
    hak_superslab_t *superslab = hak_pagemap_superslab(block);
    unsigned unit = (unsigned)((uintptr_t)block >> HAK_UNIT_LOG2) & (HAK_SUPERSLAB_UNITS - 1);
    *record = (hak_large_t *)&superslab->unit[unit];
    return superslab;
}

/* Of reused units the pages behind the bytes asked for may be dirty, and no reclaim can return
 * them while the block lives. So they may hold only a part of the limit. */
static HAK_COLD void large_bound_tail(hak_large_t *record, char *base, size_t bytes, size_t limit) {
    size_t used = hak_align_up(bytes, hak_os_page_bytes());
    size_t tail = (size_t)record->units * HAK_UNIT_BYTES - used;
    record->tail = (uint8_t)(tail / TAIL_GRAIN);
    size_t all = hak_add_relaxed(&hak_large_tail_grains, record->tail) * TAIL_GRAIN + tail;
    if (all > limit / TAIL_DIVISOR && hak_os_purge(base + used, tail)) {
        hak_sub_relaxed(&hak_large_tail_grains, record->tail);
        record->tail = 0;
    }
}

hak_large_result_t hak_large_alloc(hak_partition_t partition, size_t bytes, size_t align) {
    hak_large_result_t result = {0};
    hak_span_t span;
    if (bytes > (size_t)HAK_LARGE_MAX_UNITS * HAK_UNIT_BYTES ||
        align > (size_t)HAK_LARGE_MAX_UNITS * HAK_UNIT_BYTES ||
        (partition == HAK_PARTITION_PLAIN && align > HAK_UNIT_BYTES)) {
        return hak_huge_alloc(bytes, align);
    }
    unsigned count = bytes == 0 ? 1 : (unsigned)units_of(bytes);
    bool is_guarded =
        HAK_HARDEN && align <= HAK_UNIT_BYTES && hak_guarded_alloc(partition, count, &span);
    if (!is_guarded && !hak_span_alloc(partition, count, align, large_use(count), &span)) {
        return hak_huge_alloc(bytes, align); /* where a limit leaves less than a superslab */
    }
    hak_large_t *record = (hak_large_t *)&span.superslab->unit[span.unit];
    record->is_fresh = span.is_zero;
    record->is_guarded = is_guarded;
    record->tail = 0;
    record->unit = (uint8_t)span.unit;
    hak_store_relaxed(&record->units, (uint8_t)count);
    hak_pagemap_set_units(span.base + HAK_UNIT_BYTES, count - 1, HAK_KIND_LARGE_BODY);
    hak_pagemap_set_units(span.base, 1, HAK_KIND_LARGE);
    hak_span_touch(span.base);
    result.block = span.base;
    result.is_zero = span.is_zero;
    size_t limit = hak_load_relaxed(&hak_knobs.limit_bytes);
    if (span.is_zero) { /* clean units: the footprint may grow */
        hak_large_reclaim(0);
    } else if (HAK_UNLIKELY(limit != 0)) {
        large_bound_tail(record, span.base, bytes, limit);
    }
    return result;
}

/* Frees the span; returns its bytes. 0: another thread freed the block meanwhile. */
HAK_INLINE size_t large_free(void *block, hak_superslab_t *superslab, const hak_large_t *record) {
    if (HAK_UNLIKELY(!hak_pagemap_take(block, HAK_KIND_LARGE))) {
        return 0;
    }
    unsigned count = hak_load_relaxed(&record->units);
    if (HAK_UNLIKELY(record->tail != 0)) {
        hak_sub_relaxed(&hak_large_tail_grains, record->tail);
    }
    if (HAK_HARDEN && record->is_guarded) {
        hak_guarded_free(superslab, record->unit, count);
    } else {
        hak_pagemap_set_units(block, count, 0);
        hak_span_free(superslab, record->unit, count, count);
    }
    return (size_t)count * HAK_UNIT_BYTES;
}

/* Apart, so that other frees save no registers for it. */
static HAK_COLD size_t large_free_fresh(void *block, hak_superslab_t *superslab,
                                        const hak_large_t *record) {
    unsigned count = hak_load_relaxed(&record->units);
    hak_dense_sample(large_use(count), block, (size_t)count * HAK_UNIT_BYTES);
    return large_free(block, superslab, record);
}

size_t hak_large_free(void *block, uint32_t entry) {
    if ((uintptr_t)block % HAK_UNIT_BYTES != 0) {
        return 0;
    }
    if ((entry & HAK_KIND_MASK) == HAK_KIND_HUGE) {
        return hak_huge_free(block, entry);
    }
    hak_large_t *record;
    hak_superslab_t *superslab = large_superslab(block, &record);
    return record->is_fresh ? large_free_fresh(block, superslab, record)
                            : large_free(block, superslab, record);
}

size_t hak_large_usable(const void *block, uint32_t entry) {
    if ((uintptr_t)block % HAK_UNIT_BYTES != 0) {
        return 0;
    }
    if ((entry & HAK_KIND_MASK) == HAK_KIND_HUGE) {
        const hak_huge_t *huge = hak_huge_at(entry >> 8);
        bool is_block = huge->base == block && !huge->is_vacant;
        return is_block ? hak_load_relaxed(&huge->bytes) - HAK_HUGE_GUARD_BYTES : 0;
    }
    hak_large_t *record;
    large_superslab(block, &record);
    return (size_t)hak_load_relaxed(&record->units) * HAK_UNIT_BYTES;
}

/* Moves the pages to a mapping of their own; their old units read as zero. */
static void *large_move_out(void *block, hak_superslab_t *superslab, hak_large_t *record,
                            size_t bytes) {
    unsigned count = record->units;
    size_t old_bytes = (size_t)count * HAK_UNIT_BYTES;
    size_t new_bytes = hak_align_up(bytes, HAK_UNIT_BYTES) + HAK_HUGE_GUARD_BYTES;
    char *target = hak_os_is_one_mapping(block, old_bytes) ? hak_huge_reserve(new_bytes, 0) : NULL;
    if (target == NULL || !hak_os_move(block, old_bytes, target, new_bytes, true)) {
        return NULL;
    }
    if (!hak_huge_register(target, new_bytes, target - (char *)block)) {
        /* metadata ran out: put the bytes back, then drop the new mapping */
        __builtin_memcpy(block, target, old_bytes);
        hak_vacant_give(target, new_bytes, target - (char *)block);
        return NULL;
    }
    if (hak_os_huge_is_default()) { /* the superslab's advice against huge pages moved along */
        hak_os_advise_huge(target, new_bytes, true);
    }
    hak_require(large_free(block, superslab, record) != 0, HAK_FATAL_DOUBLE_FREE, block);
    return target;
}

void *hak_large_resize(void *block, uint32_t entry, size_t bytes) {
    if ((entry & HAK_KIND_MASK) == HAK_KIND_HUGE) {
        return hak_huge_resize(block, entry, bytes);
    }
    hak_large_t *record;
    hak_superslab_t *superslab = large_superslab(block, &record);
    unsigned count = record->units;
    size_t wanted = units_of(bytes);
    if (wanted == count) {
        return block;
    }
    record->is_fresh = false;
    bool is_guarded = HAK_HARDEN && record->is_guarded;
    if (wanted < count) {
        if (wanted == 0 || bytes <= HAK_UNIT_BYTES || (is_guarded && wanted * 2 <= count)) {
            return NULL; /* a size class, or a copy, serves it better */
        }
        if (is_guarded) {
            return block;
        }
        hak_store_relaxed(&record->units, (uint8_t)wanted);
        hak_pagemap_set_units((char *)block + wanted * HAK_UNIT_BYTES, count - wanted, 0);
        hak_span_free(superslab, record->unit + (unsigned)wanted, count - (unsigned)wanted,
                      count - (unsigned)wanted);
        return block;
    }
    if (wanted <= HAK_SUPERSLAB_UNITS &&
        (is_guarded ? hak_guarded_grow(superslab, record->unit, count, (unsigned)wanted)
                    : hak_span_extend(superslab, record->unit, count, (unsigned)wanted))) {
        hak_pagemap_set_units((char *)block + (size_t)count * HAK_UNIT_BYTES, wanted - count,
                              HAK_KIND_LARGE_BODY);
        hak_store_relaxed(&record->units, (uint8_t)wanted);
        return block;
    }
    /* Cached memory is resident, with often more of it behind: a copy of a few MiB into it costs
     * less than the faults of fresh memory, and less memory. */
    if ((size_t)count * HAK_UNIT_BYTES >= LARGE_MOVE_MIN_BYTES && wanted > HAK_LARGE_MAX_UNITS &&
        !hak_huge_cache_fits(wanted * HAK_UNIT_BYTES)) {
        return large_move_out(block, superslab, record, bytes);
    }
    return NULL;
}
