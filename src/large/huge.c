/* SPDX-License-Identifier: MIT
 *
 * Huge blocks: mappings of their own, each with a record. Freed ones go to huge_cache.c. */
#include "large/huge_cache.h"
#include "large/huge_quarantine.h"
#include "large/vacant.h"

#include "base/atomics.h"
#include "base/check.h"
#include "base/counters.h"
#include "os/lock.h"
#include "os/optional.h"

HAK_LOCKED_STATE HAK_LARGE_STATE(4) struct huge_state hak_huge_state;

hak_huge_t *hak_huge_at(uint32_t index) {
    /* pairs HUGE-CHUNK */
    hak_huge_t *chunk = hak_load_acquire(&hak_huge_state.chunk[index >> HUGE_CHUNK_LOG2]);
    return &chunk[index & ((1u << HUGE_CHUNK_LOG2) - 1)];
}

bool hak_huge_is_crowded(void) {
    return hak_single_writer_load(&hak_huge_state.in_use_count) > HUGE_APART_MOST;
}

hak_huge_t *hak_huge_record_make(uint32_t *index) {
    if (hak_huge_state.unused != 0) {
        *index = hak_huge_state.unused - 1;
        hak_huge_t *record = hak_huge_at(*index);
        hak_huge_state.unused = record->next;
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
        hak_store_release(&hak_huge_state.chunk[chunk], fresh); /* pairs HUGE-CHUNK */
    }
    *index = hak_huge_state.record_count;
    hak_store_relaxed(&hak_huge_state.record_count, *index + 1);
    return hak_huge_at(*index);
}

void hak_huge_record_release(uint32_t index) {
    hak_huge_t *record = hak_huge_at(index);
    record->base = NULL;
    record->next = hak_huge_state.unused;
    hak_huge_state.unused = index + 1;
}

/* So many addresses need many page-map leaves, which stay: asks the kernel first. */
static const size_t HUGE_VAST_BYTES = (size_t)16 << HAK_PAGEMAP_LEAF_LOG2;

void *hak_huge_reserve(size_t bytes, ptrdiff_t shift) {
    bool may = shift != 0 || hak_single_writer_load(&hak_huge_state.moved_count) <= HUGE_APART_MOST;
    may = may && (bytes < HUGE_VAST_BYTES || hak_os_may_map(bytes));
    char *base = may ? hak_os_reserve(bytes, HAK_UNIT_BYTES) : NULL;
    if (base != NULL && !hak_pagemap_prepare(base, bytes)) {
        hak_os_unmap(base, bytes);
        base = NULL;
    }
    return base;
}

/* --- blocks --------------------------------------------------------------------------------- */

/* Makes the guard behind the block, unless mappings are short. */
static void huge_guard(char *base, size_t bytes) {
    if (HAK_HARDEN && !hak_huge_is_crowded()) {
        hak_os_conceal(base + bytes - HAK_HUGE_GUARD_BYTES, HAK_HUGE_GUARD_BYTES);
    }
}

/* Removes the guard before another use of the mapping. */
static bool huge_unguard(char *base, size_t bytes) {
    return !HAK_HARDEN || hak_os_commit(base + bytes - HAK_HUGE_GUARD_BYTES, HAK_HUGE_GUARD_BYTES);
}

/* Under HAK_LOCK_HUGE; false: metadata ran out. The guard is still to be made. */
static bool huge_record(char *base, size_t bytes, ptrdiff_t shift) {
    uint32_t index;
    hak_huge_t *record = hak_huge_record_make(&index);
    if (record == NULL) {
        return false;
    }
    record->base = base;
    record->shift = shift;
    record->is_whole = record->is_vacant = record->is_fresh = false;
    hak_store_relaxed(&record->bytes, bytes);
    hak_huge_cache_note_use(bytes, 0);
    hak_single_writer_add(&hak_huge_state.in_use_count, 1);
    hak_single_writer_add(&hak_huge_state.moved_count, shift != 0);
    hak_pagemap_set(base, 1, index << 8 | HAK_KIND_HUGE); /* MAP-6 */
    return true;
}

bool hak_huge_register(char *base, size_t bytes, ptrdiff_t shift) {
    if (!hak_pagemap_prepare(base, bytes)) {
        return false;
    }
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool has_record = huge_record(base, bytes, shift);
    hak_lock_release(HAK_LOCK_HUGE);
    if (has_record) {
        huge_guard(base, bytes);
    }
    return has_record;
}

/* A part of a vacant range, or a new mapping; always new if `shift` is NULL. */
static char *huge_vacant_or_map(size_t bytes, size_t align, ptrdiff_t *shift, bool *is_zero) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    char *base = shift != NULL ? hak_vacant_take(bytes, align, shift, is_zero) : NULL;
    hak_lock_release(HAK_LOCK_HUGE);
    base = base == NULL && hak_huge_is_crowded() ? hak_vacant_map(bytes, align) : base;
    return base != NULL ? base : hak_os_map(bytes, align);
}

/* Fresh memory, after reclaim if limits need it, and unmapped vacant ranges; NULL: none. */
static char *huge_fresh(size_t bytes, size_t align, ptrdiff_t *shift, bool *is_zero) {
    hak_large_reclaim(bytes);
    char *base = huge_vacant_or_map(bytes, align, shift, is_zero);
    if (base == NULL) {
        bool is_flushed = HAK_HARDEN && hak_huge_quarantine_flush();
        bool is_unmapped = hak_vacant_unmap(bytes) != 0;
        base = is_flushed || is_unmapped ? huge_vacant_or_map(bytes, align, shift, is_zero) : NULL;
    }
    if (base != NULL) {
        hak_count(huge_map);
        hak_count_by(huge_map_bytes, bytes);
    }
    return base;
}

hak_large_result_t hak_huge_alloc(size_t bytes, size_t align) {
    hak_large_result_t result = {0};
    ptrdiff_t shift = 0;
    if (bytes > (size_t)PTRDIFF_MAX - HAK_UNIT_BYTES - HAK_HUGE_GUARD_BYTES) {
        return result;
    }
    bytes = bytes == 0 ? HAK_UNIT_BYTES : hak_align_up(bytes, HAK_UNIT_BYTES);
    bytes += HAK_HUGE_GUARD_BYTES;
    align = align < HAK_UNIT_BYTES ? HAK_UNIT_BYTES : align;
    hak_lock_acquire(HAK_LOCK_HUGE);
    char *base = hak_huge_cache_take(bytes, align, &shift);
    bool is_hit = base != NULL, has_record = is_hit && huge_record(base, bytes, shift);
    hak_lock_release(HAK_LOCK_HUGE);
    if (is_hit) {
        hak_count(huge_hit);
    } else {
        result.is_zero = true;
        base = huge_fresh(bytes, align, &shift, &result.is_zero);
        if (base == NULL) {
            return result;
        }
    }
    if (has_record) {
        huge_guard(base, bytes);
    } else if (is_hit || !hak_huge_register(base, bytes, shift)) {
        hak_vacant_give(base, bytes, shift);
        return result;
    }
    if (result.is_zero) {
        hak_huge_at(hak_pagemap_get(hak_pagemap_base(), base) >> 8)->is_fresh = true;
    }
    result.block = base;
    return result;
}

/* Drops the block's record, which becomes *was; the mapping is the caller's again. false: it is no
 * block, perhaps because another thread freed it meanwhile. */
static bool huge_unregister(const void *block, uint32_t entry, hak_huge_t *was) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    *was = *hak_huge_at(entry >> 8);
    bool is_block = was->base == block && !was->is_vacant;
    if (is_block) {
        hak_pagemap_set(block, 1, 0);
        hak_huge_cache_note_use(0, was->bytes);
        hak_single_writer_add(&hak_huge_state.in_use_count, -(size_t)1);
        hak_single_writer_add(&hak_huge_state.moved_count, -(size_t)(was->shift != 0));
        hak_huge_record_release(entry >> 8);
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return is_block;
}

size_t hak_huge_free(void *block, uint32_t entry) {
    hak_huge_t was;
    if (!huge_unregister(block, entry, &was)) {
        return 0;
    }
    size_t bytes = was.bytes, usable = bytes - HAK_HUGE_GUARD_BYTES;
    if (HAK_HARDEN && hak_huge_quarantine_put(block, bytes, was.shift)) {
        return usable;
    }
    if (HAK_UNLIKELY(!huge_unguard(block, bytes))) {
        if (hak_os_unmap(block, bytes)) {
            return usable;
        }
        bytes = usable; /* the guard is a mapping of its own; at worst it leaks */
        hak_os_unmap((char *)block + bytes, HAK_HUGE_GUARD_BYTES);
    }
    hak_huge_cache_give(block, bytes, was.shift, was.is_fresh);
    return usable;
}

/* Under HAK_LOCK_HUGE. */
static void record_set_bytes(hak_huge_t *record, size_t bytes) {
    record->is_fresh = false;
    hak_huge_cache_note_use(bytes, record->bytes);
    hak_store_relaxed(&record->bytes, bytes);
}

static void huge_set_bytes(hak_huge_t *record, size_t bytes) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    record_set_bytes(record, bytes);
    hak_lock_release(HAK_LOCK_HUGE);
}

/* Caches the end, where the next growth finds it. */
static void huge_cut(hak_huge_t *record, size_t bytes) {
    size_t rest = record->bytes - bytes;
    huge_set_bytes(record, bytes);
    hak_huge_cache_give(record->base + bytes, rest, record->shift, false);
}

/* A block that grew into the cached extent behind it may be two mappings, which the kernel cannot
 * move at once. Only above this size the kernel is asked: a copy of less costs little. */
enum { HUGE_EXTEND_MOST_BYTES = 32 << 20 };

/* Extends the block into the cached extent or vacant range behind it: the tail it gave up when it
 * shrank, or the rest of its extent. If that is too little the block keeps the extension: a later
 * move takes its resident pages along without faults. */
static void huge_extend(hak_huge_t *record, size_t new_bytes) {
    size_t old_bytes = record->bytes;
    char *end = record->base + old_bytes;
    hak_lock_acquire(HAK_LOCK_HUGE);
    size_t taken = hak_huge_cache_take_at(end, new_bytes - old_bytes, record->shift);
    taken = taken != 0 ? taken : hak_vacant_take_at(end, new_bytes - old_bytes, record->shift);
    if (taken != 0) { /* in one step: the child of a fork finds it in one place */
        record_set_bytes(record, old_bytes + taken);
    }
    hak_lock_release(HAK_LOCK_HUGE);
    bool is_asked =
        record->is_whole || new_bytes > HUGE_EXTEND_MOST_BYTES || old_bytes + taken < new_bytes;
    if (taken != 0 && is_asked && !hak_os_is_one_mapping(record->base, old_bytes + taken)) {
        huge_cut(record, old_bytes);
    }
}

/* Several mappings cannot be moved at once. Such a block that grows beyond this size is copied
 * once, into a mapping that stays single; smaller ones are copied into cached memory. The old
 * mappings are unmapped: from the cache they would become the next block to copy. A block that
 * cannot be moved (bound of moved blocks, no mappings left) is copied at every growth. */
enum { HUGE_WHOLE_LEAST_BYTES = 8 << 20 };

static void *huge_make_whole(char *block, uint32_t entry, size_t old_bytes, size_t new_bytes) {
    char *base = huge_fresh(new_bytes, HAK_UNIT_BYTES, NULL, NULL);
    if (base == NULL) {
        return NULL;
    }
    if (!hak_huge_register(base, new_bytes, 0)) {
        hak_vacant_give(base, new_bytes, 0);
        return NULL;
    }
    hak_huge_at(hak_pagemap_get(hak_pagemap_base(), base) >> 8)->is_whole = true;
    hak_large_copy(base, block, old_bytes);
    hak_count_by(realloc_copied_bytes, old_bytes);
    hak_huge_t was;
    hak_require(huge_unregister(block, entry, &was), HAK_FATAL_DOUBLE_FREE, block);
    hak_vacant_give(block, old_bytes, was.shift);
    return base;
}

/* While its pages move a block has no base, and its place no entry. false: it was no block. */
static bool record_hide(hak_huge_t *record, char *block, uint32_t entry, bool is_hidden) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool is_block = record->base == (is_hidden ? block : NULL);
    if (is_block) {
        hak_pagemap_set(block, 1, is_hidden ? 0 : entry);
        record->base = is_hidden ? NULL : block;
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return is_block;
}

/* Moves the pages when the range behind is taken. The old range is unmapped, or becomes vacant. */
static void *huge_move(hak_huge_t *record, uint32_t entry, size_t new_bytes) {
    size_t old_bytes = record->bytes;
    ptrdiff_t shift = record->shift;
    char *block = record->base, *target = hak_huge_reserve(new_bytes, shift);
    if (target == NULL) {
        return NULL;
    }
    bool keeps_source = HAK_HARDEN || hak_huge_is_crowded();
    /* before another thread can map the place */
    hak_require(record_hide(record, block, entry, true), HAK_FATAL_DOUBLE_FREE, block);
    if (!hak_os_move(block, old_bytes, target, new_bytes, keeps_source)) {
        record_hide(record, block, entry, false);
        return NULL;
    }
    hak_lock_acquire(HAK_LOCK_HUGE);
    record->base = target;
    record->shift += target - block;
    hak_single_writer_add(&hak_huge_state.moved_count, (record->shift != 0) - (size_t)(shift != 0));
    record_set_bytes(record, new_bytes);
    hak_pagemap_set(target, 1, entry);
    hak_lock_release(HAK_LOCK_HUGE);
    if (keeps_source && !(HAK_HARDEN && hak_huge_quarantine_put(block, old_bytes, shift))) {
        hak_vacant_give(block, old_bytes, shift);
    }
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
    bool is_one = hak_os_is_one_mapping(block, old_bytes);
    void *moved = is_one ? huge_move(record, entry, new_bytes) : NULL;
    bool is_worth_it = moved == NULL && new_bytes >= HUGE_WHOLE_LEAST_BYTES;
    return is_worth_it ? huge_make_whole(block, entry, old_bytes, new_bytes) : moved;
}

/* A small surplus is kept: the tail is not worth a system call. */
static bool huge_stays(const hak_huge_t *record, size_t bytes) {
    size_t new_bytes = hak_align_up(bytes, HAK_UNIT_BYTES) + HAK_HUGE_GUARD_BYTES;
    return new_bytes <= record->bytes &&
           (record->bytes - new_bytes < HAK_UNIT_BYTES || new_bytes >= record->bytes / 8 * 7);
}

/* Resizes a block whose guard was removed and that does not stay. */
static void *huge_resize(void *block, uint32_t entry, size_t bytes) {
    hak_huge_t *record = hak_huge_at(entry >> 8);
    size_t old_bytes = record->bytes;
    size_t new_bytes = hak_align_up(bytes, HAK_UNIT_BYTES) + HAK_HUGE_GUARD_BYTES;
    if (new_bytes > old_bytes) {
        hak_large_reclaim(new_bytes - old_bytes);
        void *grown = huge_grow(record, entry, new_bytes);
        if (grown == NULL && record->bytes > old_bytes) {
            huge_cut(record, old_bytes);
        }
        return grown;
    }
    if (bytes <= HAK_UNIT_BYTES) {
        return NULL;
    }
    huge_cut(record, new_bytes);
    return block;
}

void *hak_huge_resize(void *block, uint32_t entry, size_t bytes) {
    hak_huge_t *record = hak_huge_at(entry >> 8);
    if (huge_stays(record, bytes)) {
        return block;
    }
    if (!huge_unguard(block, record->bytes)) {
        return NULL;
    }
    void *result = huge_resize(block, entry, bytes);
    /* else it is another block, with its own guard */
    if (result == NULL || hak_pagemap_get(hak_pagemap_base(), result) == entry) {
        huge_guard(record->base, record->bytes);
    }
    return result;
}

void hak_large_stats(hak_large_stats_t *stats) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    stats->huge_in_use_bytes = hak_huge_cache.pool.in_use_bytes;
    stats->huge_cached_bytes = hak_huge_cache.cached_bytes + hak_vacant_state.bytes;
    stats->huge_cached_dirty_bytes = hak_huge_cache.pool.resident_bytes;
    stats->huge_count = hak_huge_state.in_use_count;
    stats->vacant_count = hak_vacant_state.count;
    hak_lock_release(HAK_LOCK_HUGE);
}

/* The page-map entry of the nearest unit at or below the address that has one, within *steps units;
 * sets *steps to 0 if none has. Also 0 at 4 GiB without a leaf, which no block spans. */
static uint32_t entry_below(const void *address, uint32_t *steps) {
    uintptr_t base = hak_pagemap_base(), unit = (uintptr_t)address >> HAK_UNIT_LOG2 & UINT32_MAX;
    for (; *steps > 0; --*steps) {
        const hak_pagemap_leaf_t *leaf = hak_pagemap_leaf(base, (void *)(unit << HAK_UNIT_LOG2));
        uint32_t entry = hak_load_relaxed(&leaf->entry[(uint16_t)unit]);
        if (entry != 0 || leaf == &hak_pagemap.zero || unit-- == 0) {
            return entry;
        }
    }
    return 0;
}

/* Up to so many records are all looked at. Beyond, only the record that the page map names is,
 * unless as many units as there are records name none. */
enum { HUGE_WALK_MOST = 1 << HUGE_CHUNK_LOG2 };

bool hak_large_covers(const void *address) {
    uint32_t from = 0, end = hak_load_relaxed(&hak_huge_state.record_count);
    uintptr_t at = (uintptr_t)address;
    bool is_covered = false;
    if (end > HUGE_WALK_MOST) {
        uint32_t steps = end, entry = entry_below(address, &steps), kind = entry & HAK_KIND_MASK;
        from = steps != 0 ? entry >> 8 : 0;
        end = steps != 0 ? from + (kind == HAK_KIND_HUGE || kind == HAK_KIND_VACANT) : end;
    }
    hak_lock_acquire(HAK_LOCK_HUGE);
    for (unsigned i = 0; i < hak_huge_cache.extent_count && !is_covered; i++) {
        is_covered = at - (uintptr_t)hak_huge_extents[i].base < hak_huge_extents[i].bytes;
    }
    end = end < hak_huge_state.record_count ? end : hak_huge_state.record_count;
    for (uint32_t i = from; i < end && !is_covered; i++) {
        const hak_huge_t *record = hak_huge_at(i);
        is_covered =
            record->base != NULL && at - (uintptr_t)record->base < hak_load_relaxed(&record->bytes);
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return is_covered || (HAK_HARDEN && hak_huge_quarantine_covers(address));
}
