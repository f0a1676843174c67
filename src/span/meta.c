/* SPDX-License-Identifier: MIT
 *
 * Memory for metadata: a first region in the library, then regions between guard OS pages. Leaves
 * of the page map, of which little is touched, are cut from a region's end, all else from its
 * front, so that a small process touches few OS pages. None of it is freed; layers keep lists of
 * spare records, this file lists of spare pieces of a few cache lines. */
#include "base/atomics.h"
#include "os/lock.h"
#include "os/os.h"
#include "span/pagemap.h"
#include "span/span.h"

/* One region serves about 20 superslabs; unused parts are never touched. */
enum { META_REGION_BYTES = 1 << 20, META_LARGE_BYTES = 64 << 10 };

HAK_LOCKED_STATE char *hak_meta_next;                       /* [lock META] */
HAK_LOCKED_STATE char *hak_meta_end;                        /* [lock META] */
HAK_LOCKED_STATE size_t hak_meta_handed;                    /* [atomic] */
HAK_LOCKED_STATE void *hak_meta_spare[HAK_META_MOST_LINES]; /* [lock META] by length, linked */

/* The first region needs no mapping: it serves a small process from start to end. It lacks guard OS
 * pages, but lies between our own tables; hardened builds do without it. What is cut from it begins
 * at an OS page: a start fills two. Aligned, all variables would lose one to the alignment. */
enum { META_FIRST_BYTES = 384 << 10, META_PAGE_BYTES = 4096 };

/* [lock META] */
HAK_LOCKED_STATE HAK_LARGE_STATE(3) HAK_LINE_ALIGNED char hak_meta_first[META_FIRST_BYTES];

/* --- regions ---------------------------------------------------------------------------------- */

HAK_LOCKED_STATE hak_region_t *hak_regions; /* [atomic] newest first */
HAK_LOCKED_STATE hak_region_t hak_region_first;

/* For regions without room for their own record, which are few. */
enum { REGION_SPARE = 64 };
HAK_LOCKED_STATE HAK_LARGE_STATE(4) hak_region_t hak_region_spare[REGION_SPARE]; /* [lock META] */
HAK_LOCKED_STATE uint32_t hak_region_spare_used;                                 /* [lock META] */

/* Only the observer reads the list, from outside: it takes no record that is not complete. */
void hak_region_add(hak_region_t *region) {
    region->next = hak_load_relaxed(&hak_regions);
    while (!hak_cas_relaxed(&hak_regions, &region->next, region)) {
    }
}

static void region_note(hak_region_t *record, char *base, size_t bytes) {
    if (record != NULL) {
        *record = (hak_region_t){.base = base, .bytes = bytes, .kind = HAK_REGION_META};
        hak_region_add(record);
    }
}

/* META is held. The record lies at the front if there is room. */
static void region_begin(char *base, size_t bytes, size_t wanted) {
    size_t record_bytes = hak_align_up(sizeof(hak_region_t), HAK_LINE_BYTES);
    hak_region_t *record = NULL;
    hak_meta_next = base;
    hak_meta_end = base + bytes;
    if (bytes - wanted >= record_bytes) {
        record = (hak_region_t *)base;
        hak_meta_next += record_bytes;
    } else if (hak_region_spare_used < REGION_SPARE) {
        record = &hak_region_spare[hak_region_spare_used++];
    }
    region_note(record, base, bytes);
}

static bool meta_region(size_t bytes) {
    if (!HAK_HARDEN && hak_meta_end == NULL && bytes <= META_FIRST_BYTES - META_PAGE_BYTES) {
        hak_meta_next = hak_meta_first + -(uintptr_t)hak_meta_first % META_PAGE_BYTES;
        hak_meta_end = hak_meta_first + META_FIRST_BYTES;
        region_note(&hak_region_first, hak_meta_first, META_FIRST_BYTES);
        return true;
    }
    size_t guard = hak_os_page_bytes();
    size_t inner = hak_align_up(bytes > META_REGION_BYTES ? bytes : META_REGION_BYTES, guard);
    char *base = hak_os_reserve(inner + 2 * guard, guard);
    if (base == NULL && inner > hak_align_up(bytes, guard)) { /* limits: take no more than needed */
        inner = hak_align_up(bytes, guard);
        base = hak_os_reserve(inner + 2 * guard, guard);
    }
    if (base == NULL) {
        return false;
    }
    if (!hak_os_commit(base + guard, inner)) {
        hak_os_unmap(base, inner + 2 * guard);
        return false;
    }
    region_begin(base + guard, inner, bytes);
    return true;
}

/* META is held. */
static void *meta_cut(size_t bytes) {
    char *result = NULL;
    if ((size_t)(hak_meta_end - hak_meta_next) >= bytes || meta_region(bytes)) {
        bool is_large = bytes >= META_LARGE_BYTES;
        hak_meta_end -= is_large ? bytes : 0;
        result = is_large ? hak_meta_end : hak_meta_next;
        hak_meta_next += is_large ? 0 : bytes;
        hak_add_relaxed(&hak_meta_handed, bytes);
    }
    return result;
}

void *hak_meta_alloc(size_t bytes) {
    hak_lock_acquire(HAK_LOCK_META);
    void *result = meta_cut(hak_align_up(bytes, HAK_LINE_BYTES));
    hak_lock_release(HAK_LOCK_META);
    return result;
}

void hak_meta_note_used(ptrdiff_t bytes) {
    hak_add_relaxed(&hak_meta_handed, bytes);
}

void *hak_meta_take(unsigned lines) {
    void **spare = &hak_meta_spare[lines - 1];
    hak_lock_acquire(HAK_LOCK_META);
    void **piece = *spare;
    if (piece != NULL) {
        *spare = *piece;
        *piece = NULL;
    } else {
        piece = meta_cut((size_t)lines * HAK_LINE_BYTES);
    }
    hak_lock_release(HAK_LOCK_META);
    return piece;
}

void hak_meta_give(void *piece, unsigned lines) {
    void **spare = &hak_meta_spare[lines - 1];
    hak_lock_acquire(HAK_LOCK_META);
    *(void **)piece = *spare;
    *spare = piece;
    hak_lock_release(HAK_LOCK_META);
}

size_t hak_meta_bytes(void) {
    return hak_load_relaxed(&hak_meta_handed);
}
