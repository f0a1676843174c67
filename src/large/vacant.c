/* SPDX-License-Identifier: MIT
 *
 * Vacant ranges: addresses of freed huge blocks that hold no memory and are still mapped. Each
 * range unmapped between two blocks leaves one mapping more, and the kernel bounds their number for
 * the whole process. So while there are many blocks these ranges stay, but for those of
 * APART_LEAST_BYTES; and whatever the kernel refuses to unmap does. They serve requests before
 * fresh mappings do. Joined with what is freed beside them, when there are fewer blocks, and when
 * memory is out, they are unmapped.
 *
 * Neighbours are found by the page map; lists by size, four a doubling, bound a search. */
#include "large/huge_record.h"

#include "base/counters.h"
#include "os/lock.h"
#include "os/os.h"

enum {
    VACANT_LISTS = 128,            /* of addresses of 48 bits */
    LIST_STEPS = 8,                /* looked at in one list */
    SEARCH_STEPS = 64,             /* and in all */
    REFUSED_MOST = 64,             /* in a row: then it is no use asking the kernel for more */
    SCAN_STEP = 1024,              /* records looked at in one hold of the lock */
    APART_LEAST_BYTES = 128 << 20, /* there cannot be very many */
};

typedef struct vacant_range {
    char *base;
    size_t bytes;
    ptrdiff_t shift;
    bool is_zero;
} vacant_range_t;

HAK_LOCKED_STATE struct vacant_state {
    uint32_t list[VACANT_LISTS];           /* [lock HUGE] index + 1 of the first range */
    uint64_t is_listed[VACANT_LISTS / 64]; /* [lock HUGE] lists that are not empty */
    hak_vacant_stats_t stats;              /* [lock HUGE] */
    uint32_t cursor;                       /* [lock HUGE] the record that is looked at next */
    uint32_t apart_count; /* [lock HUGE] unmapped since there were few blocks, under pressure */
} hak_vacant_state;

/* --- ranges and their lists, all under HAK_LOCK_HUGE ------------------------------------------ */

static unsigned list_of(size_t bytes) {
    uint64_t units = bytes / HAK_UNIT_BYTES * 4;
    unsigned log2 = hak_log2(units) - 2;
    return log2 << 2 | (unsigned)(units >> log2 & 3);
}

/* The first list from this one on that is not empty; VACANT_LISTS: none. */
static unsigned list_next(unsigned list) {
    for (; list < VACANT_LISTS; list = (list | 63) + 1) {
        uint64_t rest = hak_vacant_state.is_listed[list / 64] >> list % 64;
        if (rest != 0) {
            return list + hak_ctz(rest);
        }
    }
    return VACANT_LISTS;
}

/* What stands before a range in its list: the list's head, or the next of another range. */
static uint32_t *list_place(uint32_t previous, unsigned list) {
    return previous == 0 ? &hak_vacant_state.list[list] : &hak_huge_at(previous - 1)->next;
}

static void list_set(uint32_t *place, unsigned list, uint32_t to, uint32_t previous) {
    *place = to;
    if (to != 0) {
        hak_huge_at(to - 1)->previous = previous;
    }
    uint64_t bit = 1ull << list % 64, *word = &hak_vacant_state.is_listed[list / 64];
    *word = hak_vacant_state.list[list] != 0 ? *word | bit : *word & ~bit;
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
    list_set(&record->next, list, hak_vacant_state.list[list], index + 1);
    list_set(&hak_vacant_state.list[list], list, index + 1, 0);
    vacant_mark(record, index << 8 | HAK_KIND_VACANT);
    hak_vacant_state.stats.bytes += range->bytes;
    hak_vacant_state.stats.count++;
    return true;
}

static vacant_range_t vacant_unlink(uint32_t index) {
    hak_huge_t *record = hak_huge_at(index);
    vacant_range_t range = {record->base, record->bytes, record->shift, record->is_zero};
    unsigned list = list_of(range.bytes);
    list_set(list_place(record->previous, list), list, record->next, record->previous);
    vacant_mark(record, 0);
    hak_vacant_state.stats.bytes -= range.bytes;
    hak_vacant_state.stats.count--;
    record->is_vacant = false;
    hak_huge_record_spare(index);
    return range;
}

/* Index + 1 of the vacant range that has the unit at one of its ends; 0: none. */
static uint32_t vacant_at(const char *unit) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), unit);
    return (entry & HAK_KIND_MASK) == HAK_KIND_VACANT ? (entry >> 8) + 1 : 0;
}

static uint32_t vacant_from(const char *base, ptrdiff_t shift) {
    uint32_t at = vacant_at(base);
    const hak_huge_t *record = at != 0 ? hak_huge_at(at - 1) : NULL;
    return record != NULL && record->base == base && record->shift == shift ? at : 0;
}

static uint32_t vacant_up_to(const char *end, ptrdiff_t shift) {
    uint32_t at = vacant_at(end - HAK_UNIT_BYTES);
    const hak_huge_t *record = at != 0 ? hak_huge_at(at - 1) : NULL;
    return record != NULL && record->base + record->bytes == end && record->shift == shift ? at : 0;
}

/* The range becomes larger by its vacant neighbours, which are listed no more. */
static void vacant_join(vacant_range_t *range) {
    uint32_t before = vacant_up_to(range->base, range->shift);
    uint32_t behind = vacant_from(range->base + range->bytes, range->shift);
    if (before != 0) {
        vacant_range_t joined = vacant_unlink(before - 1);
        range->base = joined.base;
        range->bytes += joined.bytes;
        range->is_zero = range->is_zero && joined.is_zero;
    }
    if (behind != 0) {
        vacant_range_t joined = vacant_unlink(behind - 1);
        range->bytes += joined.bytes;
        range->is_zero = range->is_zero && joined.is_zero;
    }
}

/* Hands out a part; what is left before and behind it stays. */
static char *vacant_cut(uint32_t index, size_t front, size_t bytes) {
    vacant_range_t range = vacant_unlink(index), rest = range;
    rest.bytes = front;
    if (front != 0) {
        vacant_link(&rest); /* by the record that is spare now */
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

static bool vacant_fits(const hak_huge_t *record, size_t bytes, size_t align) {
    size_t gap = vacant_gap(record, align);
    return gap <= record->bytes && record->bytes - gap >= bytes;
}

/* Index + 1; 0: none. In lists of ranges of about this size some may fit; where ranges have room
 * for the largest gap, each does. */
static uint32_t vacant_find(size_t bytes, size_t align) {
    unsigned left = SEARCH_STEPS, list = list_next(list_of(bytes));
    for (; list < VACANT_LISTS && left > 0; list = list_next(list + 1)) {
        uint32_t at = hak_vacant_state.list[list];
        for (unsigned i = 0; i < LIST_STEPS && at != 0 && left > 0; i++, left--) {
            if (vacant_fits(hak_huge_at(at - 1), bytes, align)) {
                return at;
            }
            at = hak_huge_at(at - 1)->next;
        }
    }
    size_t wide = bytes + align - HAK_UNIT_BYTES;
    list = wide < bytes ? VACANT_LISTS : list_next(list_of(wide) + 1);
    return list < VACANT_LISTS ? hak_vacant_state.list[list] : 0;
}

char *hak_vacant_take(size_t bytes, size_t align, ptrdiff_t *shift, bool *is_zero) {
    uint32_t at = hak_vacant_state.stats.count == 0 ? 0 : vacant_find(bytes, align), spare;
    if (at == 0 || hak_huge_record_make(&spare) == NULL) {
        return NULL;
    }
    hak_huge_record_spare(spare); /* so that there is one for a rest before and one behind */
    const hak_huge_t *record = hak_huge_at(at - 1);
    *shift = record->shift;
    *is_zero = record->is_zero;
    return vacant_cut(at - 1, vacant_gap(record, align), bytes);
}

size_t hak_vacant_take_at(const char *base, size_t bytes, ptrdiff_t shift) {
    uint32_t at = vacant_from(base, shift);
    if (at == 0) {
        return 0;
    }
    bytes = hak_least(bytes, hak_huge_at(at - 1)->bytes);
    vacant_cut(at - 1, 0, bytes);
    return bytes;
}

hak_vacant_stats_t hak_vacant_stats(void) {
    return hak_vacant_state.stats;
}

/* --- to the kernel, without locks ------------------------------------------------------------- */

/* false: metadata ran out. */
static bool vacant_put(vacant_range_t *range) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    vacant_join(range);
    bool is_kept = vacant_link(range);
    hak_lock_release(HAK_LOCK_HUGE);
    return is_kept;
}

/* Whether it shall not be unmapped; else joins it with its neighbours, which shall be, too. */
static bool vacant_stays(vacant_range_t *range) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool stays = hak_huge_is_crowded();
    uint32_t before = vacant_up_to(range->base, range->shift);
    uint32_t behind = vacant_from(range->base + range->bytes, range->shift);
    size_t bytes = range->bytes + (before != 0 ? hak_huge_at(before - 1)->bytes : 0) +
                   (behind != 0 ? hak_huge_at(behind - 1)->bytes : 0);
    if (!stays) {
        hak_vacant_state.apart_count = 0;
    }
    stays = stays && bytes < APART_LEAST_BYTES;
    if (!stays) {
        vacant_join(range);
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return stays;
}

void hak_vacant_give(char *base, size_t bytes, ptrdiff_t shift) {
    vacant_range_t range = {base, bytes, shift, .is_zero = true};
    hak_count(huge_unmap);
    if (!hak_pagemap_prepare(base, bytes)) { /* a block that was not to be, for lack of metadata */
        hak_os_unmap(base, bytes);
        return;
    }
    bool stays = vacant_stays(&range);
    bool is_purged = stays && hak_os_purge(base, bytes);
    if (!is_purged && hak_os_unmap(range.base, range.bytes)) {
        return;
    }
    range.is_zero = range.is_zero && (is_purged || hak_os_purge(base, bytes));
    if (!vacant_put(&range)) {
        hak_os_unmap(range.base, range.bytes);
    }
}

/* The next range that may be unmapped, among so many records; bytes 0: not yet found. false: there
 * is none. */
static bool vacant_next(uint32_t *most, bool is_pressed, vacant_range_t *range) {
    range->bytes = 0;
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool is_crowded = hak_huge_is_crowded();
    bool may = hak_vacant_state.stats.count != 0 &&
               (!is_crowded || (is_pressed && hak_vacant_state.apart_count < HUGE_APART_MOST));
    *most = may ? (uint32_t)hak_least(*most, hak_huge_state.record_count) : 0;
    for (unsigned i = 0; i<SCAN_STEP && * most> 0 && range->bytes == 0; i++, --*most) {
        uint32_t index = hak_vacant_state.cursor++ % hak_huge_state.record_count;
        if (hak_huge_at(index)->is_vacant) {
            *range = vacant_unlink(index);
            hak_vacant_state.apart_count += is_crowded;
        }
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return range->bytes != 0 || *most > 0;
}

size_t hak_vacant_unmap(uint32_t most, bool is_pressed) {
    size_t given_back = 0;
    unsigned refused = 0;
    vacant_range_t range;
    while (refused < REFUSED_MOST && vacant_next(&most, is_pressed, &range)) {
        if (range.bytes != 0 && hak_os_unmap(range.base, range.bytes)) {
            given_back += range.bytes;
            refused = 0;
        } else if (range.bytes != 0) {
            refused++;
            vacant_put(&range);
        }
    }
    return given_back;
}
