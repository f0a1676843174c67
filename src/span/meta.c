/* SPDX-License-Identifier: MIT
 *
 * Memory for metadata: a first region in the library, then regions between guard OS pages, cut from
 * the front. Nothing is ever freed; layers keep lists of their spare records, and here are lists of
 * spare pieces of a few cache lines. */
#include "base/atomics.h"
#include "os/lock.h"
#include "os/os.h"
#include "span/span.h"

/* One region serves about 100 superslabs; only what is used is ever touched. */
enum { META_REGION_BYTES = 1 << 20 };

HAK_LOCKED_STATE char *hak_meta_next;                       /* [lock META] */
HAK_LOCKED_STATE char *hak_meta_end;                        /* [lock META] */
HAK_LOCKED_STATE size_t hak_meta_handed;                    /* [atomic] */
HAK_LOCKED_STATE void *hak_meta_spare[HAK_META_MOST_LINES]; /* [lock META] by length, linked */

/* The first region needs no mapping of its own: it serves a small process from start to end. It has
 * no guard OS pages, but its neighbours are tables that nobody but us writes to; hardened builds do
 * without it. */
enum { META_FIRST_BYTES = 320 << 10 };

HAK_LOCKED_STATE HAK_LARGE_STATE(2) char hak_meta_first[META_FIRST_BYTES]; /* [lock META] */

static bool meta_region(size_t bytes) {
    char *first = (char *)hak_align_up((uintptr_t)hak_meta_first, hak_os_page_bytes());
    if (!HAK_HARDEN && hak_meta_end == NULL && first + bytes <= hak_meta_first + META_FIRST_BYTES) {
        hak_meta_next = first;
        hak_meta_end = hak_meta_first + META_FIRST_BYTES;
        return true;
    }
    size_t guard = hak_os_page_bytes();
    size_t inner = hak_align_up(bytes > META_REGION_BYTES ? bytes : META_REGION_BYTES, guard);
    char *base = hak_os_reserve(inner + 2 * guard, guard);
    if (base == NULL && inner > hak_align_up(bytes, guard)) { /* limits: take what is needed */
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
    hak_meta_next = base + guard;
    hak_meta_end = hak_meta_next + inner;
    return true;
}

/* META is held. */
static void *meta_cut(size_t bytes) {
    char *result = NULL;
    if ((size_t)(hak_meta_end - hak_meta_next) >= bytes || meta_region(bytes)) {
        result = hak_meta_next;
        hak_meta_next += bytes;
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
