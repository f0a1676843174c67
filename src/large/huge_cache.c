/* SPDX-License-Identifier: MIT
 *
 * Freed huge mappings, kept for reuse: a sorted array of extents. A freed block joins its
 * neighbours; requests take the lowest extent that fits and leave the rest; where blocks are
 * sparse, the lowest round place in one. The array's length bounds every step.
 *
 * The bound is on memory, not on addresses: an extent is charged with the bytes the kernel is
 * thought to hold for it. A freed block is charged in full while the bound allows that; else a few
 * samples of its OS pages decide. Blocks that began as untouched memory are sampled anyway.
 * reclaim/target.c sets the bound; every free applies it, from the end of the highest extent.
 * Addresses are bounded, too (docs/experiments/0004-huge-cache-counts-memory.md). How many extents
 * and samples is in docs/experiments/0114-many-large-blocks.md. */
#include "large/huge_cache.h"
#include "large/huge_quarantine.h"
#include "large/vacant.h"

#include "os/lock.h"
#include "os/os.h"

enum {
    CACHE_EXTENTS = 512, /* at most: bounds a search */
    MOVED_EXTENTS = 64,  /* while blocks are moved: what lies between is mappings of its own */
    TRIM_STEPS = 128,    /* of one free or event; the next ones go on */
    EVICT_SHARE = 16,    /* with a smaller part resident it is nearly empty */
    SPARSE_SHARE = 8,    /* blocks are sparse if less than a part of them is written */
    SPARSE_WINDOW_BYTES = 64 << 20, /* sums of samples are halved above it */
    SAMPLE_EVERY_BYTES = 1 << 20,   /* an OS page for each such part, and these */
    SAMPLES_LEAST = 8,
    SAMPLES_MOST = 24,
    SAMPLES_AGAIN = 16, /* if those hold nothing */
};

HAK_LOCKED_STATE HAK_LARGE_STATE(4) huge_extent_t hak_huge_extents[CACHE_EXTENTS]; /* [lock HUGE] */
HAK_LOCKED_STATE struct hak_huge_cache hak_huge_cache;

/* --- extents, all under HAK_LOCK_HUGE --------------------------------------------------------- */

/* Splits end at half of them: then blocks are placed as if they were dense. */
static unsigned extents_most(void) {
    size_t moved_count = hak_single_writer_load(&hak_huge_state.moved_count);
    return moved_count != 0 ? MOVED_EXTENTS : CACHE_EXTENTS;
}

static void extent_remove(unsigned at) {
    hak_huge_cache.cached_bytes -= hak_huge_extents[at].bytes;
    hak_huge_cache.pool.resident_bytes -= hak_huge_extents[at].dirty;
    hak_huge_cache.extent_count--;
    for (unsigned i = at; i < hak_huge_cache.extent_count; i++) {
        hak_huge_extents[i] = hak_huge_extents[i + 1];
    }
}

static void extent_insert(unsigned at, huge_extent_t extent) {
    for (unsigned i = hak_huge_cache.extent_count; i > at; i--) {
        hak_huge_extents[i] = hak_huge_extents[i - 1];
    }
    hak_huge_extents[at] = extent;
    hak_huge_cache.extent_count++;
    hak_huge_cache.cached_bytes += extent.bytes;
    hak_huge_cache.pool.resident_bytes += extent.dirty;
}

/* Shortens an extent by `bytes`, and its charge in proportion. */
static void extent_cut(huge_extent_t *extent, size_t bytes) {
    size_t all = extent->bytes / HAK_UNIT_BYTES, units = bytes / HAK_UNIT_BYTES;
    size_t dirty = extent->dirty / all * units + extent->dirty % all * units / all;
    extent->bytes -= bytes;
    extent->dirty -= dirty;
    hak_huge_cache.cached_bytes -= bytes;
    hak_huge_cache.pool.resident_bytes -= dirty;
}

static void cache_note_low(void) {
    hak_huge_pool_t *pool = &hak_huge_cache.pool;
    pool->low_bytes = hak_least(pool->low_bytes, pool->resident_bytes);
}

/* Takes the front of an extent; the rest stays. */
static char *extent_take(unsigned at, size_t bytes) {
    huge_extent_t *extent = &hak_huge_extents[at];
    char *base = extent->base;
    if (extent->bytes == bytes) {
        extent_remove(at);
    } else {
        extent_cut(extent, bytes);
        extent->base += bytes;
    }
    cache_note_low();
    return base;
}

/* The lowest extent that fits; extent_count: none. */
static unsigned extent_find(size_t bytes, size_t align) {
    const huge_extent_t *extent = hak_huge_extents;
    unsigned at = 0;
    while (at < hak_huge_cache.extent_count &&
           (extent[at].bytes < bytes || ((uintptr_t)extent[at].base & (align - 1)) != 0)) {
        at++;
    }
    return at;
}

/* Makes the first `bytes` of an extent one of their own. */
static void extent_split(unsigned at, size_t bytes) {
    huge_extent_t front = hak_huge_extents[at], *rest = &hak_huge_extents[at];
    extent_cut(rest, bytes);
    rest->base += bytes;
    front.dirty = hak_most(front.dirty - rest->dirty, 1); /* CACHE-2 */
    front.bytes = bytes;
    extent_insert(at, front);
}

/* An extent for a block of which perhaps only the front will be written. Blocks of about one size
 * begin at multiples of the power of two below it, so that their fronts lie on the same OS pages;
 * the lowest extent that has room for one is split there
 * (docs/experiments/0107-fronts-of-sparse-blocks.md). */
static unsigned extent_find_sparse(size_t bytes, size_t align) {
    size_t grain = hak_most((size_t)1 << hak_log2(bytes), align);
    for (unsigned at = 0; at < hak_huge_cache.extent_count; at++) {
        const huge_extent_t *extent = &hak_huge_extents[at];
        size_t gap = (0 - (uintptr_t)extent->base) & (grain - 1);
        if (gap < extent->bytes && extent->bytes - gap >= bytes) {
            if (gap == 0) {
                return at;
            }
            extent_split(at, gap);
            return at + 1;
        }
    }
    return extent_find(bytes, align);
}

char *hak_huge_cache_take(size_t bytes, size_t align, ptrdiff_t *shift) {
    bool is_sparse = hak_huge_cache.extent_count < extents_most() / 2 &&
                     hak_huge_cache.written_bytes < hak_huge_cache.sampled_bytes / SPARSE_SHARE;
    unsigned at = is_sparse ? extent_find_sparse(bytes, align) : extent_find(bytes, align);
    if (at == hak_huge_cache.extent_count) {
        return NULL;
    }
    *shift = hak_huge_extents[at].shift;
    return extent_take(at, bytes);
}

bool hak_huge_cache_fits(size_t bytes) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool does_fit = extent_find(bytes, 1) < hak_huge_cache.extent_count;
    hak_lock_release(HAK_LOCK_HUGE);
    return does_fit;
}

size_t hak_huge_cache_take_at(const char *base, size_t bytes, ptrdiff_t shift) {
    for (unsigned i = 0; i < hak_huge_cache.extent_count; i++) {
        const huge_extent_t *extent = &hak_huge_extents[i];
        if (extent->base == base && extent->shift == shift) {
            bytes = hak_least(bytes, extent->bytes);
            extent_take(i, bytes);
            return bytes;
        }
    }
    return 0;
}

static bool extent_is_before(const huge_extent_t *a, const huge_extent_t *b) {
    return a->base + a->bytes == b->base && a->shift == b->shift;
}

static void extent_join(huge_extent_t *fresh, unsigned at) {
    const huge_extent_t *extent = &hak_huge_extents[at];
    fresh->base = extent->base < fresh->base ? extent->base : fresh->base;
    fresh->bytes += extent->bytes;
    fresh->dirty += extent->dirty;
    fresh->is_known = fresh->is_known && extent->is_known;
    extent_remove(at);
}

/* Puts a mapping into the cache, joined with its neighbours. false: the array is full. */
static bool cache_put(huge_extent_t fresh) {
    huge_extent_t *extent = hak_huge_extents;
    unsigned at = 0, count = hak_huge_cache.extent_count;
    while (at < count && extent[at].base < fresh.base) {
        at++;
    }
    if (at < count && extent_is_before(&fresh, &extent[at])) {
        extent_join(&fresh, at);
    }
    if (at > 0 && extent_is_before(&extent[at - 1], &fresh)) {
        extent_join(&fresh, --at);
    }
    if (hak_huge_cache.extent_count == count && count >= extents_most()) {
        return false;
    }
    extent_insert(at, fresh);
    return true;
}

/* --- the bound, under HAK_LOCK_HUGE ----------------------------------------------------------- */

void hak_huge_cache_note_use(size_t added, size_t removed) {
    hak_huge_pool_t *pool = &hak_huge_cache.pool;
    if (removed != 0) { /* a window may begin: bytes freed now were in use */
        hak_services.huge_bound(pool);
    }
    pool->in_use_bytes += added - removed;
    pool->peak_bytes = hak_most(pool->peak_bytes, pool->in_use_bytes);
    pool->most_bytes = hak_most(pool->most_bytes, pool->in_use_bytes);
}

/* Chooses the extent that gives memory back: one charged by assumption, whose pages are sampled
 * first; then the highest that is not nearly empty. */
static unsigned evict_choose(bool is_dirty_over) {
    const huge_extent_t *extent = hak_huge_extents;
    unsigned highest = hak_huge_cache.extent_count - 1;
    unsigned chosen = CACHE_EXTENTS;
    for (unsigned i = highest + 1; is_dirty_over && i-- > 0;) {
        if (!extent[i].is_known) {
            return i;
        }
        bool is_rich = extent[i].dirty >= extent[i].bytes / EVICT_SHARE;
        chosen = is_rich && chosen == CACHE_EXTENTS ? i : chosen;
    }
    return chosen != CACHE_EXTENTS ? chosen : highest;
}

/* Takes the excess over both bounds off the end of an extent; all of one charged by assumption. */
static bool cache_evict(size_t keep_dirty, size_t keep_bytes, huge_extent_t *evicted) {
    size_t dirty = hak_huge_cache.pool.resident_bytes, bytes = hak_huge_cache.cached_bytes;
    if (hak_huge_cache.extent_count == 0 || (dirty <= keep_dirty && bytes <= keep_bytes)) {
        cache_note_low();
        return false;
    }
    unsigned at = evict_choose(dirty > keep_dirty);
    huge_extent_t *from = &hak_huge_extents[at];
    size_t excess = bytes > keep_bytes ? bytes - keep_bytes : 0;
    if (dirty > keep_dirty) {
        size_t units = (dirty - keep_dirty) / (from->dirty / (from->bytes / HAK_UNIT_BYTES) + 1);
        excess = hak_most(excess, (units + 1) * HAK_UNIT_BYTES);
    }
    excess = hak_align_up(excess, HAK_UNIT_BYTES);
    *evicted = *from;
    if (excess >= from->bytes || !from->is_known) {
        extent_remove(at);
    } else {
        extent_cut(from, excess);
        evicted->base += from->bytes;
        evicted->dirty -= from->dirty;
        evicted->bytes = excess;
    }
    return true;
}

/* --- to and from the kernel ------------------------------------------------------------------- */

/* Charges an extent by samples. What was filled with zeros looks untouched, and has to go. */
static void extent_sample(huge_extent_t *extent, bool purges) {
    size_t bytes = extent->bytes, samples = SAMPLES_LEAST + bytes / SAMPLE_EVERY_BYTES;
    size_t written = hak_dense_written(extent->base, bytes, hak_least(samples, SAMPLES_MOST));
    if (purges && written == 0) { /* perhaps by chance */
        written = hak_dense_written(extent->base, bytes, SAMPLES_AGAIN);
    }
    if (written < bytes && (!purges || written != 0 || hak_os_purge(extent->base, bytes))) {
        extent->dirty = hak_least(extent->dirty, written + 1); /* CACHE-2 */
    }
    extent->is_known = true;
}

/* Samples an extent charged by assumption, and keeps it; false: it was sampled already. */
static bool extent_put_right(huge_extent_t *extent) {
    if (extent->is_known) {
        return false;
    }
    extent_sample(extent, true);
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool is_kept = cache_put(*extent);
    hak_lock_release(HAK_LOCK_HUGE);
    return is_kept;
}

/* At most two steps for each extent there is: hooks of munmap may free more. One may take both. */
static HAK_COLD size_t cache_trim(size_t keep_dirty, size_t keep_bytes, unsigned steps) {
    size_t given_back = 0;
    huge_extent_t evicted;
    for (unsigned done = 0; done < steps; done++) {
        hak_lock_acquire(HAK_LOCK_HUGE);
        steps = done == 0 ? hak_least(steps, 2 * hak_huge_cache.extent_count) : steps;
        bool any = cache_evict(keep_dirty, keep_bytes, &evicted);
        hak_lock_release(HAK_LOCK_HUGE);
        if (!any) {
            break;
        }
        if (keep_bytes == 0 || !extent_put_right(&evicted)) {
            hak_vacant_give(evicted.base, evicted.bytes, evicted.shift);
            given_back += evicted.bytes;
        }
    }
    return given_back;
}

size_t hak_large_trim(size_t keep_bytes) {
    size_t given_back = cache_trim(keep_bytes, keep_bytes, UINT32_MAX);
    (void)(HAK_HARDEN && hak_huge_quarantine_flush()); /* these two return addresses, not memory */
    hak_vacant_unmap(HAK_SUPERSLAB_BYTES);
    hak_huge_records_trim();
    return given_back;
}

size_t hak_large_give_back(size_t bytes, bool is_urgent) {
    hak_footprint_t has, left;
    (void)(HAK_HARDEN && is_urgent && hak_huge_quarantine_flush());
    hak_large_footprint(&has);
    if (has.cached_bytes < HAK_UNIT_BYTES) { /* not worth the calls */
        return 0;
    }
    cache_trim(hak_excess(has.cached_bytes, bytes), SIZE_MAX, UINT32_MAX);
    hak_large_footprint(&left);
    return hak_excess(has.cached_bytes, left.cached_bytes);
}

void hak_large_pool(hak_huge_pool_t *pool) {
    hak_lock_acquire(HAK_LOCK_HUGE);
    hak_services.huge_bound(&hak_huge_cache.pool);
    *pool = hak_huge_cache.pool;
    hak_huge_cache.pool.last_low_bytes = 0; /* once a window */
    hak_huge_cache.pool.most_bytes = pool->in_use_bytes;
    hak_lock_release(HAK_LOCK_HUGE);
}

void hak_large_trim_to(size_t keep_bytes, size_t keep_address_bytes) {
    cache_trim(keep_bytes, keep_address_bytes, TRIM_STEPS);
    hak_vacant_unmap_some(0);
}

/* Under HAK_LOCK_HUGE: what was written to of a block whose memory was fresh. */
static void cache_note_written(size_t bytes, size_t written) {
    hak_huge_cache.sampled_bytes += bytes;
    hak_huge_cache.written_bytes += written;
    if (hak_huge_cache.sampled_bytes > SPARSE_WINDOW_BYTES) {
        hak_huge_cache.sampled_bytes /= 2;
        hak_huge_cache.written_bytes /= 2;
    }
}

/* A mapping that there is room for is charged in full. The lock is taken once if nothing is
 * sampled; else another thread may have filled the room meanwhile. */
void hak_huge_cache_give(char *base, size_t bytes, ptrdiff_t shift, bool was_fresh) {
    huge_extent_t fresh = {.base = base, .bytes = bytes, .dirty = bytes, .shift = shift};
    hak_huge_pool_t *pool = &hak_huge_cache.pool;
    hak_lock_acquire(HAK_LOCK_HUGE);
    hak_services.huge_bound(pool);
    bool has_room = pool->resident_bytes + bytes <= pool->bound_bytes;
    was_fresh = was_fresh && !HAK_HARDEN; /* there a block begins behind the guard of another */
    if (!has_room || was_fresh) {
        hak_lock_release(HAK_LOCK_HUGE);
        huge_extent_t sampled = fresh;
        extent_sample(&sampled, !has_room);
        fresh = has_room ? fresh : sampled;
        hak_lock_acquire(HAK_LOCK_HUGE);
        cache_note_written(was_fresh ? bytes : 0, was_fresh ? sampled.dirty : 0);
    }
    size_t bound = pool->bound_bytes, address_bound = pool->bound_address_bytes;
    bool is_kept = fresh.dirty <= bound && bytes <= address_bound && cache_put(fresh);
    bool exceeds = pool->resident_bytes > bound || hak_huge_cache.cached_bytes > address_bound;
    hak_lock_release(HAK_LOCK_HUGE);
    if (!is_kept) {
        hak_vacant_give(base, bytes, shift);
    } else if (exceeds) {
        cache_trim(bound, address_bound, TRIM_STEPS);
    }
}
