/* SPDX-License-Identifier: MIT
 *
 * How full the slabs of each class are, from one walk: the figures of jemalloc's bins, and which
 * slabs are to be emptied. */

#include "compat/usage.h"
#include "base/bits.h"
#include "base/counters.h"
#include "front/fast.h"
#include "large/large.h"
#include "life/life.h"
#include "os/lock.h"
#include "os/os.h"
#include "stat/inventory.h"
#include "stat/stat.h"

#include <string.h>

enum {
    USAGE_PARTS = 16,         /* of a slab, by which slabs are counted */
    USAGE_CALLS = 4096,       /* between two walks at least; and */
    USAGE_CALLS_PER_SLAB = 4, /* so many for each slab */
    USAGE_FULL_32NDS = 31,    /* slabs as full as this on average are left alone */
    USAGE_STEP = 1 << 16,     /* of hak_slab_rank, from one part to the next */
};

static HAK_LARGE_STATE(4) hak_usage_t usage_of[HAK_SC_COUNT];
static uint64_t usage_calls, usage_due; /* [atomic] estimates */

/* --- jemalloc's classes ----------------------------------------------------------------------- */

enum { BIN_LINEAR = 8 }; /* multiples of 8; from then on four a doubling */

static size_t class_bytes(unsigned index) {
    if (index < BIN_LINEAR) {
        return (index + 1) * (size_t)8;
    }
    size_t base = (size_t)64 << (index - BIN_LINEAR) / 4;
    return base + ((index - BIN_LINEAR) % 4 + 1) * (base / 4);
}

size_t hak_je_bin_bytes(unsigned bin) {
    return class_bytes(bin);
}

size_t hak_lextent_bytes(unsigned lextent) {
    return class_bytes(HAK_JE_BINS + lextent);
}

unsigned hak_je_bin_of_class(unsigned sc) {
    size_t last = hak_sc_info[sc].bytes - 1;
    unsigned log2 = hak_log2(last);
    return last < 64 ? (unsigned)(last / 8)
                     : BIN_LINEAR + (log2 - 6) * 4 + (unsigned)(last >> (log2 - 2)) - 4;
}

uint32_t hak_je_bin_regions(unsigned bin) {
    size_t bytes = hak_je_bin_bytes(bin);
    const hak_sc_info_t *info = &hak_sc_info[hak_sc_of(bytes - HAK_CANARY_BYTES)];
    return info->bytes == bytes ? info->blocks : (uint32_t)(HAK_UNIT_BYTES / bytes);
}

/* --- the walk --------------------------------------------------------------------------------- */

typedef struct usage_work {
    hak_usage_t of[HAK_SC_COUNT];
    uint32_t part[HAK_SC_COUNT][USAGE_PARTS]; /* slabs with free blocks, by how full they are */
    uint64_t active_bytes;
} usage_work_t;

/* Without blocks that were never handed out, and without purged pages. */
static HAK_UNORDERED size_t slab_active_bytes(const hak_piece_t *piece) {
    size_t all = (size_t)piece->units * HAK_UNIT_BYTES;
    size_t made = (size_t)piece->carved * hak_sc_info[piece->sc].bytes;
    size_t kept = hak_excess(all, hak_load_relaxed(&piece->slab->purged_bytes));
    made = piece->slab->is_zero ? hak_align_up(made, hak_os_page_bytes()) : all;
    return hak_least(made, kept);
}

static void usage_piece(void *context, const hak_range_t *range, const hak_piece_t *piece) {
    usage_work_t *work = context;
    (void)range;
    if (piece->kind == HAK_PIECE_LARGE) {
        work->active_bytes += (size_t)piece->units * HAK_UNIT_BYTES;
    } else if (piece->kind == HAK_PIECE_SLAB) {
        hak_usage_t *of = &work->of[piece->sc];
        uint32_t capacity = hak_sc_info[piece->sc].blocks, used = capacity - piece->free;
        work->active_bytes += slab_active_bytes(piece);
        of->slabs++;
        of->used += used;
        if (used < capacity) {
            of->nonfull++;
            work->part[piece->sc][used * USAGE_PARTS / capacity]++;
        }
    }
}

static void usage_superslab(hak_superslab_t *superslab, void *context) {
    const hak_range_t range = hak_inventory_superslab(superslab);
    if (range.free_units != ~0ull) {
        hak_inventory_pieces(&range, usage_piece, context);
    }
}

/* The rank below which the blocks of slabs fit into the free places above it. Counts fullness in
 * 32nds of a slab, each slab at the middle of its 32nd. */
static uint32_t source_below(const hak_usage_t *of, const uint32_t part[USAGE_PARTS],
                             uint32_t capacity) {
    uint64_t used = of->used - (of->slabs - of->nonfull) * capacity;
    if (of->nonfull < 2 || used * 32 >= of->nonfull * capacity * USAGE_FULL_32NDS) {
        return 0;
    }
    uint64_t room = 0, need = 0; /* above, and below */
    for (unsigned i = 0; i < USAGE_PARTS; i++) {
        room += part[i] * (uint64_t)(2 * USAGE_PARTS - 1 - 2 * i);
    }
    for (unsigned i = 0; i < USAGE_PARTS; i++) {
        uint64_t all = part[i] * (uint64_t)(2 * USAGE_PARTS);
        if (need + all > room) { /* some of these slabs; all > 0 */
            return i * USAGE_STEP + (uint32_t)((room - need) * USAGE_STEP / all);
        }
        need += part[i] * (uint64_t)(2 * i + 1);
        room -= part[i] * (uint64_t)(2 * USAGE_PARTS - 1 - 2 * i);
    }
    return 0;
}

static void usage_read(usage_work_t *work) {
    uint64_t slabs = 0;
    memset(work, 0, sizeof *work);
    hak_span_visit(usage_superslab, work);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        hak_usage_t *of = &work->of[sc];
        slabs += of->slabs;
        of->source_below = source_below(of, work->part[sc], hak_sc_info[sc].blocks);
        hak_store_relaxed(&usage_of[sc].source_below, of->source_below);
    }
    uint64_t pause = hak_most(USAGE_CALLS, slabs * USAGE_CALLS_PER_SLAB);
    hak_store_relaxed(&usage_due, hak_load_relaxed(&usage_calls) + pause);
}

static bool usage_is_due(void) {
    return hak_load_relaxed(&usage_calls) > hak_load_relaxed(&usage_due);
}

static HAK_COLD void usage_again(void) {
    usage_work_t work;
    hak_life_process_start();
    if (!hak_lock_holds_none()) {
        return;
    }
    hak_lock_acquire(HAK_LOCK_COMPAT);
    if (usage_is_due()) {
        usage_read(&work);
    }
    hak_lock_release(HAK_LOCK_COMPAT);
}

uint32_t hak_compat_source_below(unsigned sc) {
    hak_single_writer_add(&usage_calls, 1);
    if (HAK_UNLIKELY(usage_is_due())) {
        usage_again();
    }
    return hak_load_relaxed(&usage_of[sc].source_below);
}

/* --- figures ---------------------------------------------------------------------------------- */

typedef struct refresh {
    hak_compat_figures_t figures;
    usage_work_t usage;
} refresh_t;

/* Free blocks that no move could turn into a free slab count as in use: else programs would move
 * blocks for ever. */
static void fill_bin(refresh_t *work, unsigned sc) {
    unsigned bin = hak_je_bin_of_class(sc);
    const hak_usage_t *of = &work->usage.of[sc];
    if (bin >= HAK_JE_BINS) {
        return;
    }
    uint64_t capacity = hak_sc_info[sc].blocks, regions = hak_je_bin_regions(bin);
    uint64_t full = of->slabs - of->nonfull, part = of->used - full * capacity;
    hak_je_bin_figures_t *figures = &work->figures.bin[bin];
    figures->curslabs += of->slabs;
    uint64_t least = (part + capacity - 1) / capacity; /* slabs that hold these blocks */
    figures->nonfull_slabs += least < of->nonfull ? of->nonfull : 0;
    figures->curregs += (full + least) * regions;
}

static void fill_figures(void *context, hak_snapshot_t *snapshot) {
    refresh_t *work = context;
    hak_compat_figures_t *to = &work->figures;
    size_t page = hak_os_page_bytes();
    usage_read(&work->usage);
    to->small_allocated = snapshot->live_bytes;
    to->large_allocated = snapshot->large_bytes + snapshot->huge_bytes;
    to->allocated = to->small_allocated + to->large_allocated;
    to->active = work->usage.active_bytes + snapshot->huge_bytes;
    to->metadata = snapshot->meta_bytes;
    uint64_t dirty = snapshot->unused_dirty_bytes + snapshot->huge_cached_dirty_bytes;
    to->resident = to->active + to->metadata + dirty + snapshot->guard_bytes;
    uint64_t unused = snapshot->unused_dirty_bytes + snapshot->unused_clean_bytes;
    to->mapped = snapshot->mapped_bytes - snapshot->huge_cached_bytes - unused + to->metadata;
    to->retained = hak_excess(snapshot->mapped_bytes + to->metadata, to->resident);
    to->tcache_bytes = snapshot->cached_bytes;
    to->pactive = to->active / page;
    to->pdirty = dirty / page;
    to->purge_calls = hak_load_relaxed(&hak_counters.purge_calls);
    uint64_t purged_units = hak_load_relaxed(&hak_counters.purge_units);
    to->purged_pages = purged_units * (HAK_UNIT_BYTES / page);
    to->threads = snapshot->thread_count;
    to->scavenger_runs = hak_load_relaxed(&hak_life_scavenger_runs);
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        fill_bin(work, sc);
    }
}

void hak_compat_refresh(hak_compat_figures_t *figures) {
    size_t bytes = sizeof(refresh_t);
    refresh_t *work = hak_stat_map(&bytes);
    if (work == NULL) {
        return; /* the figures stay as they were */
    }
    hak_stat_use(fill_figures, work);
    const uint64_t *from = (const uint64_t *)&work->figures;
    for (size_t i = 0; i < sizeof *figures / sizeof *from; i++) {
        hak_store_relaxed(&((uint64_t *)figures)[i], from[i]);
    }
    hak_os_unmap(work, bytes);
}

/* --- of one block ----------------------------------------------------------------------------- */

static HAK_UNORDERED void use_of_slab(const void *block, uint32_t entry, hak_utilization_t *out) {
    const hak_slab_t *slab = hak_slab_of(block);
    unsigned sc = hak_sc_of_entry(entry), bin = hak_je_bin_of_class(sc);
    uint32_t capacity = hak_sc_info[sc].blocks, free = hak_single_writer_load(&slab->free_count);
    uint32_t carved = hak_single_writer_load(&slab->carved);
    free = hak_slab_entry_is_sampled(entry) ? 0 : hak_least(free, carved);
    out->regions = hak_je_bin_regions(bin);
    out->bytes = out->regions * hak_je_bin_bytes(bin);
    out->free = free * out->regions / capacity;
    hak_owner_t *owner = hak_load_relaxed(&slab->owner);
    const hak_slab_t *current = hak_load_relaxed(&owner->current[sc]);
    out->current = current != NULL ? current->base : NULL;
}

/* Those of its bin may be older. */
static void use_of_bin(const hak_je_bin_figures_t *bin, hak_utilization_t *out) {
    uint64_t all = hak_load_relaxed(&bin->curslabs) * out->regions;
    uint64_t free = hak_excess(all, hak_load_relaxed(&bin->curregs));
    out->bin_regions = hak_most(all, out->regions);
    out->bin_free = hak_most(free, out->free);
}

/* Blocks of no slab, and guarded ones, count as full slabs. */
void hak_compat_utilization(const void *block, const hak_compat_figures_t *figures,
                            hak_utilization_t *out) {
    uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block), low = entry & HAK_KIND_MASK;
    *out = (hak_utilization_t){0};
    unsigned bin =
        hak_slab_is_entry(entry) ? hak_je_bin_of_class(hak_sc_of_entry(entry)) : HAK_JE_BINS;
    if (bin < HAK_JE_BINS) {
        use_of_slab(block, entry, out);
        if (figures != NULL) {
            use_of_bin(&figures->bin[bin], out);
        }
    } else if (low == HAK_KIND_GUARD || low == HAK_KIND_ZERO_SIZE) {
        out->regions = hak_je_bin_regions(0);
        out->bytes = out->regions * hak_je_bin_bytes(0);
    } else if (hak_slab_is_entry(entry) || low == HAK_KIND_LARGE || low == HAK_KIND_HUGE) {
        out->regions = 1;
        out->bytes = hak_slab_is_entry(entry) ? hak_sc_info[hak_sc_of_entry(entry)].bytes
                                              : hak_large_usable(block, entry);
    }
}
