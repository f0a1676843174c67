/* SPDX-License-Identifier: MIT
 *
 * Vacant ranges. Unmapping a range between two blocks splits a mapping, and the kernel bounds the
 * number of mappings. So while there are many blocks, freed blocks and the surplus of aligned
 * mappings stay mapped, without memory, as do ranges that the kernel refuses to unmap; they serve
 * requests first. They are unmapped when there are fewer blocks, or, the largest first, when
 * addresses run out. Moved blocks are mappings of their own anyway: theirs do not stay. The page
 * map leads to neighbours; lists by size, four a doubling, bound a search. */
#include "large/vacant.h"

#include "base/counters.h"
#include "os/lock.h"
#include "os/optional.h"

enum {
    LIST_STEPS = 8,    /* ranges visited in one list */
    SEARCH_STEPS = 64, /* and in all lists */
    UNMAP_HOLD = 16,   /* ranges taken per hold of the lock; if all are refused, the last hold */
    UNMAP_STEP = 64,   /* ranges per call */
    APART_LEAST_BYTES = 128 << 20, /* unmapped even between many blocks, HUGE_APART_MOST times */
};

typedef struct vacant_range {
    char *base;
    size_t bytes;
    ptrdiff_t shift;
    bool is_zero;
} vacant_range_t;

/* [lock HUGE] index + 1 of the first range */
HAK_LOCKED_STATE HAK_LARGE_STATE(4) uint32_t hak_vacant_lists[VACANT_LISTS];
HAK_LOCKED_STATE struct vacant_state hak_vacant_state;

/* --- ranges and their lists, all under HAK_LOCK_HUGE ------------------------------------------ */

static unsigned list_of(size_t bytes) {
    uint64_t units = bytes / HAK_UNIT_BYTES * 4;
    unsigned log2 = hak_log2(units) - 2;
    return log2 << 2 | (unsigned)(units >> log2 & 3);
}

/* The first list from `list` on that is not empty; VACANT_LISTS: none. */
static unsigned list_next(unsigned list) {
    for (; list < VACANT_LISTS; list = (list | 63) + 1) {
        uint64_t rest = hak_vacant_state.is_listed[list / 64] >> list % 64;
        if (rest != 0) {
            return list + hak_ctz(rest);
        }
    }
    return VACANT_LISTS;
}

static void list_set(uint32_t *place, unsigned list, uint32_t to, uint32_t previous) {
    *place = to;
    if (to != 0) {
        hak_huge_at(to - 1)->previous = previous;
    }
    uint64_t bit = 1ull << list % 64, *word = &hak_vacant_state.is_listed[list / 64];
    *word = hak_vacant_lists[list] != 0 ? *word | bit : *word & ~bit;
}

static void vacant_mark(const hak_huge_t *record, uint32_t entry) {
    hak_pagemap_set(record->base, 1, entry);
    hak_pagemap_set(record->base + record->bytes - HAK_UNIT_BYTES, 1, entry);
}

static bool vacant_link(const vacant_range_t *range) {
    uint32_t index;
    hak_huge_t *record = hak_huge_record_make(&index);
    if (record == NULL) {
        return false;
    }
    unsigned list = list_of(range->bytes);
    record->base = range->base;
    hak_store_relaxed(&record->bytes, range->bytes);
    record->shift = range->shift;
    record->is_zero = range->is_zero;
    record->is_vacant = true;
    list_set(&record->next, list, hak_vacant_lists[list], index + 1);
    list_set(&hak_vacant_lists[list], list, index + 1, 0);
    vacant_mark(record, index << 8 | HAK_KIND_VACANT);
    hak_single_writer_add(&hak_vacant_state.bytes, range->bytes);
    hak_vacant_state.count++;
    return true;
}

static vacant_range_t vacant_unlink(uint32_t index) {
    hak_huge_t *record = hak_huge_at(index);
    vacant_range_t range = {record->base, record->bytes, record->shift, record->is_zero};
    unsigned list = list_of(range.bytes);
    uint32_t *place =
        record->previous == 0 ? &hak_vacant_lists[list] : &hak_huge_at(record->previous - 1)->next;
    list_set(place, list, record->next, record->previous);
    vacant_mark(record, 0);
    hak_single_writer_add(&hak_vacant_state.bytes, -range.bytes);
    hak_vacant_state.count--;
    record->is_vacant = false;
    hak_huge_record_release(index);
    return range;
}

/* Index + 1 of the vacant range of that shift that ends, or begins, at the edge; 0: none. */
static uint32_t vacant_beside(const char *edge, bool is_end, ptrdiff_t shift) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), is_end ? edge - HAK_UNIT_BYTES : edge);
    if ((entry & HAK_KIND_MASK) != HAK_KIND_VACANT) {
        return 0;
    }
    const hak_huge_t *record = hak_huge_at(entry >> 8);
    bool is_edge = record->base + (is_end ? record->bytes : 0) == edge;
    return is_edge && record->shift == shift ? (entry >> 8) + 1 : 0;
}

/* Extends the range by its vacant neighbours, and takes those off their lists. */
static void vacant_join(vacant_range_t *range) {
    uint32_t at[] = {vacant_beside(range->base, true, range->shift),
                     vacant_beside(range->base + range->bytes, false, range->shift)};
    for (unsigned i = 0; i < 2; i++) {
        vacant_range_t joined = at[i] != 0 ? vacant_unlink(at[i] - 1) : *range;
        range->base = i == 0 ? joined.base : range->base;
        range->bytes += at[i] != 0 ? joined.bytes : 0;
        range->is_zero = range->is_zero && joined.is_zero;
    }
}

/* Takes a part of a range; the rest before and behind it stays vacant. */
static char *vacant_cut(uint32_t index, size_t front, size_t bytes) {
    vacant_range_t range = vacant_unlink(index), rest = range;
    rest.bytes = front;
    if (front != 0) {
        vacant_link(&rest); /* with the record released just now */
    }
    rest.base = range.base + front + bytes;
    rest.bytes = range.bytes - front - bytes;
    if (rest.bytes != 0) {
        vacant_link(&rest);
    }
    return range.base + front;
}

/* --- requests, under HAK_LOCK_HUGE ------------------------------------------------------------ */

static size_t vacant_gap(const hak_huge_t *record, size_t align) {
    return (0 - (uintptr_t)record->base) & (align - 1);
}

/* Index + 1; 0: none. First fit in lists of about this size; any range of the lists above the size
 * with the largest gap fits. */
static uint32_t vacant_find(size_t bytes, size_t align) {
    unsigned left = SEARCH_STEPS, list = list_next(list_of(bytes));
    for (; list < VACANT_LISTS && left > 0; list = list_next(list + 1)) {
        uint32_t at = hak_vacant_lists[list];
        for (unsigned i = 0; i < LIST_STEPS && at != 0 && left > 0; i++, left--) {
            const hak_huge_t *record = hak_huge_at(at - 1);
            size_t gap = vacant_gap(record, align);
            if (gap <= record->bytes && record->bytes - gap >= bytes) {
                return at;
            }
            at = record->next;
        }
    }
    size_t wide = bytes + align - HAK_UNIT_BYTES;
    list = wide < bytes ? VACANT_LISTS : list_next(list_of(wide) + 1);
    return list < VACANT_LISTS ? hak_vacant_lists[list] : 0;
}

char *hak_vacant_take(size_t bytes, size_t align, ptrdiff_t *shift, bool *is_zero) {
    uint32_t at = hak_vacant_state.count == 0 ? 0 : vacant_find(bytes, align), unused;
    if (at == 0 || hak_huge_record_make(&unused) == NULL) {
        return NULL;
    }
    hak_huge_record_release(unused); /* a range may leave a rest before and one behind */
    const hak_huge_t *record = hak_huge_at(at - 1);
    *shift = record->shift;
    *is_zero = record->is_zero;
    return vacant_cut(at - 1, vacant_gap(record, align), bytes);
}

size_t hak_vacant_take_at(const char *base, size_t bytes, ptrdiff_t shift) {
    uint32_t at = vacant_beside(base, false, shift);
    if (at == 0) {
        return 0;
    }
    bytes = hak_least(bytes, hak_huge_at(at - 1)->bytes);
    vacant_cut(at - 1, 0, bytes);
    return bytes;
}

/* --- from and to the kernel, without locks ---------------------------------------------------- */

static void vacant_put(vacant_range_t range) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    vacant_join(&range);
    bool is_kept = range.bytes == 0 || vacant_link(&range);
    hak_lock_release(HAK_LOCK_HUGE);
    if (!is_kept) { /* metadata ran out */
        hak_os_unmap(range.base, range.bytes);
    }
}

char *hak_vacant_map(size_t bytes, size_t align) {
    size_t wide = bytes + align - HAK_UNIT_BYTES;
    char *base = wide > bytes ? hak_os_map(wide, HAK_UNIT_BYTES) : NULL;
    if (base == NULL) {
        return NULL;
    }
    /* A purge is refused where future mappings are locked in memory (mlockall). */
    if (!hak_os_purge(base, HAK_UNIT_BYTES) || !hak_pagemap_prepare(base, wide)) {
        hak_os_unmap(base, wide);
        return NULL;
    }
    char *block = (char *)hak_align_up((uintptr_t)base, align), *end = block + bytes;
    vacant_put((vacant_range_t){base, (size_t)(block - base), 0, true});
    vacant_put((vacant_range_t){end, (size_t)(base + wide - end), 0, true});
    return block;
}

void hak_vacant_give(char *base, size_t bytes, ptrdiff_t shift) {
    vacant_range_t range = {base, bytes, shift, .is_zero = true};
    if (!hak_pagemap_prepare(base, bytes)) { /* a block that was never made, as metadata ran out */
        hak_os_unmap(base, bytes);
        return;
    }
    hak_lock_acquire(HAK_LOCK_HUGE);
    vacant_join(&range);
    uint32_t *apart = &hak_vacant_state.apart_count;
    bool is_crowded = hak_huge_is_crowded();
    bool stays =
        is_crowded && shift == 0 && (range.bytes < APART_LEAST_BYTES || *apart >= HUGE_APART_MOST);
    *apart = is_crowded ? *apart + (shift == 0 && !stays) : 0;
    hak_lock_release(HAK_LOCK_HUGE);
    bool is_purged = stays && hak_os_purge(base, bytes);
    if (is_purged || !hak_os_unmap(range.base, range.bytes)) {
        range.is_zero = range.is_zero && (is_purged || hak_os_purge(base, bytes));
        vacant_put(range);
    }
}

/* Without the lock: a hook that sees the call may allocate. The kernel may refuse some. */
HAK_INLINE size_t vacant_unmap_few(size_t wanted) {
    vacant_range_t taken[UNMAP_HOLD];
    size_t given_back = 0, bytes = 0;
    unsigned count = 0;
    hak_lock_acquire(HAK_LOCK_HUGE);
    wanted = hak_vacant_state.count == 0 ? 0 : hak_huge_is_crowded() ? wanted : SIZE_MAX;
    for (unsigned list = wanted != 0 ? VACANT_LISTS : 0; list-- > 0;) {
        while (hak_vacant_lists[list] != 0 && count < UNMAP_HOLD && bytes < wanted) {
            taken[count] = vacant_unlink(hak_vacant_lists[list] - 1);
            bytes += taken[count++].bytes;
        }
    }
    hak_lock_release(HAK_LOCK_HUGE);
    for (unsigned i = 0; i < count; i++) {
        if (given_back < wanted && hak_os_unmap(taken[i].base, taken[i].bytes)) {
            given_back += taken[i].bytes;
        } else {
            vacant_put(taken[i]);
        }
    }
    return given_back;
}

HAK_COLD size_t hak_vacant_unmap_some(size_t wanted) {
    size_t given_back = 0, few = 1;
    for (unsigned calls = 0; calls < UNMAP_STEP && few != 0; calls += UNMAP_HOLD) {
        few = vacant_unmap_few(hak_excess(wanted, given_back));
        given_back += few;
    }
    return given_back;
}

/* They are made anew, the first one first. */
void hak_huge_records_trim(void) {
    size_t page = hak_os_page_bytes(), bytes = sizeof(hak_huge_t) << HUGE_CHUNK_LOG2;
    struct huge_state *state = &hak_huge_state;
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool is_unused = state->in_use_count == 0 && hak_vacant_state.count == 0;
    for (uint32_t i = 0; is_unused && i << HUGE_CHUNK_LOG2 < state->record_count; i++) {
        uintptr_t first = hak_align_up((uintptr_t)state->chunk[i], page);
        uintptr_t end = hak_align_down((uintptr_t)state->chunk[i] + bytes, page);
        hak_os_purge((void *)first, end > first ? end - first : 0);
    }
    if (is_unused) {
        state->unused = 0;
        hak_store_relaxed(&state->record_count, 0);
    }
    hak_lock_release(HAK_LOCK_HUGE);
}

size_t hak_vacant_unmap(size_t wanted) {
    wanted += HAK_SUPERSLAB_BYTES; /* leaves room for metadata */
    size_t given_back = 0, all = hak_single_writer_load(&hak_vacant_state.bytes);
    if (hak_huge_is_crowded() &&
        (hak_os_may_map(wanted) || (wanted > all && !hak_os_may_map(wanted - all)))) {
        return 0;
    }
    for (size_t some = 1; some != 0; given_back += some) {
        some = hak_vacant_unmap_some(hak_excess(wanted, given_back));
    }
    return given_back;
}
