/* SPDX-License-Identifier: MIT
 *
 * Huge blocks: mappings of their own, each with a record. Freed ones go to the cache
 * (huge_cache.c). */
#include "large/huge_cache.h"
#include "large/large.h"

#include "base/atomics.h"
#include "base/check.h"
#include "base/counters.h"
#include "os/lock.h"
#include "os/os.h"

#include <string.h>

struct hak_huge {
    char *base;      /* [lock HUGE] NULL: the record is spare */
    size_t bytes;    /* [atomic] mapped; changes by resize, which only the block's user may call */
    size_t padding;  /* [lock HUGE] of these, nobody asked for: not counted as in use */
    ptrdiff_t shift; /* of its user: CACHE-3 */
    uint32_t next;   /* [lock HUGE] list of spare records, index + 1 */
    bool is_whole;   /* of its user: one mapping, after it was not, and shall stay so */
};

enum {
    HUGE_CHUNK_LOG2 = 10,        /* records per metadata chunk */
    HUGE_CHUNKS = (1 << 14) - 1, /* so many that the index fits the page map's 24 bits */
};
_Static_assert(HUGE_CHUNKS << HUGE_CHUNK_LOG2 < (1 << 24) - 1, "TCACHE-6: no index is 0xffffff");

HAK_LOCKED_STATE struct huge_state {
    hak_huge_t *chunk[HUGE_CHUNKS]; /* [atomic] */
    uint32_t record_count;          /* [lock HUGE] records ever made */
    uint32_t spare;                 /* [lock HUGE] index + 1 */
    size_t in_use_count;            /* [lock HUGE] */
} hak_huge_state HAK_LARGE_STATE(3);

static hak_huge_t *record_at(uint32_t index) {
    hak_huge_t *chunk = hak_load_acquire(&hak_huge_state.chunk[index >> HUGE_CHUNK_LOG2]);
    return &chunk[index & ((1u << HUGE_CHUNK_LOG2) - 1)];
}

static hak_huge_t *record_of(uint32_t entry) {
    return record_at(entry >> 8);
}

/* A record under HAK_LOCK_HUGE; index in *index. */
static hak_huge_t *record_make(uint32_t *index) {
    if (hak_huge_state.spare != 0) {
        *index = hak_huge_state.spare - 1;
        hak_huge_t *record = record_at(*index);
        hak_huge_state.spare = record->next;
        return record;
    }
    uint32_t chunk = hak_huge_state.record_count >> HUGE_CHUNK_LOG2;
    if (chunk >= HUGE_CHUNKS) {
        return NULL;
    }
    if (hak_huge_state.chunk[chunk] == NULL) {
        hak_huge_t *fresh = hak_meta_alloc(sizeof *fresh << HUGE_CHUNK_LOG2);
        if (fresh == NULL) {
            return NULL;
        }
        hak_store_release(&hak_huge_state.chunk[chunk], fresh);
    }
    *index = hak_huge_state.record_count++;
    return record_at(*index);
}

void *hak_huge_reserve(size_t bytes) {
    char *base = hak_os_reserve(bytes, HAK_UNIT_BYTES);
    if (base != NULL && !hak_pagemap_prepare(base, bytes)) {
        hak_os_unmap(base, bytes);
        base = NULL;
    }
    return base;
}

/* --- blocks --------------------------------------------------------------------------------- */

/* Blocks that may be mappings of their own to the kernel: an eighth of what it allows a process by
 * default. Of more blocks none has a guard, and those of large alignments take all addresses up to
 * the next one, which cost no memory: so neighbours are one mapping. */
enum { HUGE_APART_MOST = 1 << 13 };

static bool huge_is_crowded(void) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool is_crowded = hak_huge_state.in_use_count > HUGE_APART_MOST;
    hak_lock_release(HAK_LOCK_HUGE);
    return is_crowded;
}

/* What a write behind the block meets. Without places for mappings there is none. */
static void huge_guard(char *base, size_t bytes) {
    if (HAK_HARDEN && !huge_is_crowded()) {
        hak_os_conceal(base + bytes - HAK_HUGE_GUARD_BYTES, HAK_HUGE_GUARD_BYTES);
    }
}

/* The mapping is about to be used in another way. */
static bool huge_unguard(char *base, size_t bytes) {
    return !HAK_HARDEN || hak_os_commit(base + bytes - HAK_HUGE_GUARD_BYTES, HAK_HUGE_GUARD_BYTES);
}

static bool huge_register(char *base, size_t bytes, size_t padding, ptrdiff_t shift) {
    uint32_t index;
    if (!hak_pagemap_prepare(base, bytes)) {
        return false;
    }
    hak_lock_acquire(HAK_LOCK_HUGE);
    hak_huge_t *record = record_make(&index);
    if (record != NULL) {
        record->base = base;
        record->padding = padding;
        record->shift = shift;
        record->is_whole = false;
        hak_store_relaxed(&record->bytes, bytes);
        hak_huge_cache_note_use(bytes - padding, 0);
        hak_huge_state.in_use_count++;
    }
    hak_lock_release(HAK_LOCK_HUGE);
    if (record == NULL) {
        return false;
    }
    huge_guard(base, bytes);
    hak_pagemap_set(base, 1, index << 8 | HAK_KIND_HUGE);
    return true;
}

bool hak_huge_register(char *base, size_t bytes, ptrdiff_t shift) {
    return huge_register(base, bytes, 0, shift);
}

/* Fresh memory, for which unused memory may have to go; NULL: there is none. */
static char *huge_map(size_t bytes, size_t align) {
    hak_large_make_room(bytes);
    char *base = hak_os_map(bytes, align);
    if (base == NULL && hak_large_trim(0) + hak_span_purge(0) != 0) {
        base = hak_os_map(bytes, align);
    }
    if (base != NULL) {
        hak_count(huge_map);
        hak_count_by(huge_map_bytes, bytes);
    }
    return base;
}

/* Up to the next multiple of the alignment, which leaves no gap between two such blocks. */
static char *huge_map_padded(size_t bytes, size_t align, size_t *padding) {
    size_t padded = hak_align_up(bytes, align);
    if (padded <= bytes || !huge_is_crowded()) {
        return NULL;
    }
    char *base = hak_os_map(padded, align);
    if (base != NULL) {
        *padding = padded - bytes;
        hak_count(huge_map);
        hak_count_by(huge_map_bytes, bytes);
    }
    return base;
}

hak_large_result_t hak_huge_alloc(size_t bytes, size_t align) {
    hak_large_result_t result = {0};
    size_t padding = 0;
    ptrdiff_t shift = 0;
    if (bytes > (size_t)PTRDIFF_MAX - HAK_UNIT_BYTES - HAK_HUGE_GUARD_BYTES) {
        return result;
    }
    bytes = bytes == 0 ? HAK_UNIT_BYTES : hak_align_up(bytes, HAK_UNIT_BYTES);
    bytes += HAK_HUGE_GUARD_BYTES;
    align = align < HAK_UNIT_BYTES ? HAK_UNIT_BYTES : align;
    hak_lock_acquire(HAK_LOCK_HUGE);
    char *base = hak_huge_cache_take(bytes, align, &shift);
    hak_lock_release(HAK_LOCK_HUGE);
    if (base != NULL) {
        hak_count(huge_hit);
    } else {
        base = huge_map_padded(bytes, align, &padding);
        base = base != NULL ? base : huge_map(bytes, align);
        result.is_zero = true;
        if (base == NULL) {
            return result;
        }
    }
    if (!huge_register(base, bytes + padding, padding, shift)) {
        hak_os_unmap(base, bytes + padding);
        return result;
    }
    result.block = base;
    return result;
}

/* Forgets the record; the mapping is the caller's again. */
static void huge_unregister(hak_huge_t *record, uint32_t entry) {
    hak_pagemap_set(record->base, 1, 0);
    hak_lock_acquire(HAK_LOCK_HUGE);
    hak_huge_cache_note_use(0, record->bytes - record->padding);
    hak_huge_state.in_use_count--;
    record->base = NULL;
    record->next = hak_huge_state.spare;
    hak_huge_state.spare = (entry >> 8) + 1;
    hak_lock_release(HAK_LOCK_HUGE);
}

bool hak_huge_free(void *block, uint32_t entry) {
    hak_huge_t *record = record_of(entry);
    size_t bytes = record->bytes;
    ptrdiff_t shift = record->shift;
    if (record->base != block) {
        return false;
    }
    huge_unregister(record, entry);
    if (HAK_UNLIKELY(!huge_unguard(block, bytes))) {
        hak_os_unmap(block, bytes);
        return true;
    }
    hak_huge_cache_give(block, bytes, shift);
    return true;
}

size_t hak_huge_usable(const void *block, uint32_t entry) {
    const hak_huge_t *record = record_of(entry);
    return record->base == block ? hak_load_relaxed(&record->bytes) - HAK_HUGE_GUARD_BYTES : 0;
}

/* Under HAK_LOCK_HUGE. */
static void record_set_bytes(hak_huge_t *record, size_t bytes) {
    hak_huge_cache_note_use(bytes, record->bytes - record->padding);
    record->padding = 0;
    hak_store_relaxed(&record->bytes, bytes);
}

static void huge_set_bytes(hak_huge_t *record, size_t bytes) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    record_set_bytes(record, bytes);
    hak_count_locked(huge_resize);
    hak_lock_release(HAK_LOCK_HUGE);
}

/* A block that grew into the cached extent behind it may be two mappings to the kernel, which then
 * cannot move it at once: only below this size is that not asked, where a copy is no great matter.
 */
enum { HUGE_EXTEND_MOST_BYTES = 32 << 20 };

/* Into the cached extent behind the block: what it gave up when it shrank, or what it was the front
 * of. If that is too little the block is larger nevertheless: what it has need not be faulted in
 * where it goes. */
static void huge_extend(hak_huge_t *record, size_t new_bytes) {
    size_t old_bytes = record->bytes;
    char *end = record->base + old_bytes;
    hak_lock_acquire(HAK_LOCK_HUGE);
    size_t taken = hak_huge_cache_take_at(end, new_bytes - old_bytes, record->shift);
    if (taken != 0) { /* in one step: a forked child finds it in one place */
        record_set_bytes(record, old_bytes + taken);
        hak_count_locked(huge_resize);
    }
    hak_lock_release(HAK_LOCK_HUGE);
    bool is_asked =
        record->is_whole || new_bytes > HUGE_EXTEND_MOST_BYTES || old_bytes + taken < new_bytes;
    if (taken != 0 && is_asked && !hak_os_is_one_mapping(record->base, old_bytes + taken)) {
        huge_set_bytes(record, old_bytes);
        hak_huge_cache_give(end, taken, record->shift);
    }
}

/* Several mappings cannot be moved at once. So the bytes are, once in the life of a block that
 * grows beyond this: from then on it is a single one. Smaller ones go to cached memory. The several
 * ones are unmapped: from the cache they would be the next block to be copied. */
enum { HUGE_WHOLE_LEAST_BYTES = 8 << 20 };

static void *huge_make_whole(char *block, uint32_t entry, size_t old_bytes, size_t new_bytes) {
    char *base = huge_map(new_bytes, HAK_UNIT_BYTES);
    if (base == NULL) {
        return NULL;
    }
    if (!hak_huge_register(base, new_bytes, 0)) {
        hak_os_unmap(base, new_bytes);
        return NULL;
    }
    record_of(hak_pagemap_get(hak_pagemap_base(), base))->is_whole = true;
    memcpy(base, block, old_bytes);
    hak_count_by(realloc_copied_bytes, old_bytes);
    huge_unregister(record_of(entry), entry);
    hak_os_unmap(block, old_bytes);
    return base;
}

/* Moves the pages; what lies behind the block is not free. */
static void *huge_move(hak_huge_t *record, uint32_t entry, size_t new_bytes) {
    char *block = record->base, *target = hak_huge_reserve(new_bytes);
    if (target == NULL) {
        return NULL;
    }
    hak_pagemap_set(block, 1, 0); /* before another thread can map the place */
    if (!hak_os_move(block, record->bytes, target, new_bytes)) {
        hak_pagemap_set(block, 1, entry);
        return NULL;
    }
    hak_lock_acquire(HAK_LOCK_HUGE);
    record->base = target;
    record->shift += target - block;
    record_set_bytes(record, new_bytes);
    hak_lock_release(HAK_LOCK_HUGE);
    hak_pagemap_set(target, 1, entry);
    hak_count(huge_remap);
    return target;
}

static void *huge_grow(hak_huge_t *record, uint32_t entry, size_t new_bytes) {
    char *block = record->base;
    huge_extend(record, new_bytes);
    size_t old_bytes = record->bytes;
    if (old_bytes >= new_bytes) {
        return block;
    }
    if (hak_os_resize(block, old_bytes, new_bytes)) {
        if (!hak_pagemap_prepare(block, new_bytes)) {
            hak_os_resize(block, new_bytes, old_bytes);
            return NULL;
        }
        huge_set_bytes(record, new_bytes);
        return block;
    }
    if (!hak_os_is_one_mapping(block, old_bytes)) {
        bool is_worth_it = new_bytes >= HUGE_WHOLE_LEAST_BYTES;
        return is_worth_it ? huge_make_whole(block, entry, old_bytes, new_bytes) : NULL;
    }
    return huge_move(record, entry, new_bytes);
}

/* Without its guard. What a shrink gives up is cached: the next growth finds it there. */
static void *huge_resize(void *block, uint32_t entry, size_t bytes) {
    hak_huge_t *record = record_of(entry);
    size_t old_bytes = record->bytes;
    size_t new_bytes = hak_align_up(bytes, HAK_UNIT_BYTES) + HAK_HUGE_GUARD_BYTES;
    if (new_bytes > old_bytes) {
        return huge_grow(record, entry, new_bytes);
    }
    /* keep small surpluses: the tail is not worth a system call */
    if (old_bytes - new_bytes < HAK_UNIT_BYTES || new_bytes >= old_bytes / 8 * 7) {
        return block;
    }
    if (bytes <= HAK_UNIT_BYTES) {
        return NULL;
    }
    huge_set_bytes(record, new_bytes);
    hak_huge_cache_give((char *)block + new_bytes, old_bytes - new_bytes, record->shift);
    return block;
}

void *hak_huge_resize(void *block, uint32_t entry, size_t bytes) {
    hak_huge_t *record = record_of(entry);
    if (!huge_unguard(block, record->bytes)) {
        return NULL;
    }
    void *result = huge_resize(block, entry, bytes);
    /* else it is another block, and has one */
    if (result == NULL || hak_pagemap_get(hak_pagemap_base(), result) == entry) {
        huge_guard(record->base, record->bytes);
    }
    return result;
}

bool hak_large_covers(const void *address) {
    const char *at = address;
    bool is_covered = false;
    hak_lock_acquire(HAK_LOCK_HUGE);
    for (uint32_t i = 0; i < hak_huge_state.record_count && !is_covered; i++) {
        const hak_huge_t *record = record_at(i);
        is_covered =
            record->base != NULL && at >= record->base && at < record->base + record->bytes;
    }
    is_covered = is_covered || hak_huge_cache_covers(at);
    hak_lock_release(HAK_LOCK_HUGE);
    return is_covered;
}

void hak_large_stats(hak_large_stats_t *stats) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    hak_huge_cache_stats(stats);
    stats->huge_count = hak_huge_state.in_use_count;
    hak_lock_release(HAK_LOCK_HUGE);
}

void hak_large_visit(hak_huge_visit_t *visit, void *context) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    for (uint32_t i = 0; i < hak_huge_state.record_count; i++) {
        const hak_huge_t *record = record_at(i);
        if (record->base != NULL) {
            visit(record->base, hak_load_relaxed(&record->bytes), false, context);
        }
    }
    hak_huge_cache_visit(visit, context);
    hak_lock_release(HAK_LOCK_HUGE);
}
