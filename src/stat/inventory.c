/* SPDX-License-Identifier: MIT */
#include "stat/inventory.h"

#include "large/large.h"
#include "os/os.h"
#include "slab/slab_inl.h"

/* Takes the page faults now, not under a lock that others wait for. */
void *hak_stat_map(size_t *bytes) {
    size_t page = hak_os_page_bytes();
    *bytes = hak_align_up(*bytes, page);
    char *base = hak_os_map(*bytes, page);
    for (size_t at = 0; base != NULL && at < *bytes; at += page) {
        *(volatile char *)(base + at) = 0;
    }
    return base;
}

/* --- the list --------------------------------------------------------------------------------- */

enum { SPARE_SHARE = 8, SPARE_LEAST = 256 }; /* ranges added between count and copy */

static void range_add(hak_inventory_t *inventory, hak_range_t range) {
    if (inventory->count < inventory->bytes / sizeof range) {
        inventory->range[inventory->count++] = range;
    }
}

hak_range_t hak_inventory_superslab(hak_superslab_t *superslab) {
    return (hak_range_t){
        .base = superslab->base,
        .bytes = HAK_SUPERSLAB_BYTES,
        .kind = HAK_RANGE_SUPERSLAB,
        .superslab = superslab,
        .huge_pages = superslab->huge_pages,
        .free_units = superslab->free_units,
        .clean_units = superslab->clean_units,
        .padding_units = superslab->padding_units,
    };
}

static void add_superslab(hak_superslab_t *superslab, void *context) {
    range_add(context, hak_inventory_superslab(superslab));
}

static void add_huge(char *base, size_t bytes, bool is_cached, void *context) {
    hak_range_kind_t kind = is_cached ? HAK_RANGE_CACHED : HAK_RANGE_HUGE;
    range_add(context, (hak_range_t){.base = base, .bytes = bytes, .kind = kind});
}

static void add_region(const hak_region_t *region, void *context) {
    size_t page = hak_os_page_bytes();
    uintptr_t from = hak_align_down((uintptr_t)region->base, page);
    uintptr_t to = hak_align_up((uintptr_t)region->base + region->bytes, page);
    hak_range_kind_t kind = region->kind == HAK_REGION_GUARD ? HAK_RANGE_GUARD : HAK_RANGE_META;
    range_add(context, (hak_range_t){.base = (char *)from, .bytes = to - from, .kind = kind});
}

static void ranges_sort(hak_range_t *range, size_t count) {
    for (size_t step = count / 2; step > 0; step /= 2) {
        for (size_t i = step; i < count; i++) {
            hak_range_t moving = range[i];
            size_t to = i;
            for (; to >= step && range[to - step].base > moving.base; to -= step) {
                range[to] = range[to - step];
            }
            range[to] = moving;
        }
    }
}

/* Keeps the present state of a superslab that was met twice. */
static size_t ranges_unique(hak_range_t *range, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_again = kept > 0 && range[i].kind == HAK_RANGE_SUPERSLAB &&
                        range[kept - 1].kind == HAK_RANGE_SUPERSLAB &&
                        range[kept - 1].base == range[i].base;
        if (!is_again) {
            range[kept++] = range[i];
        } else if (hak_pagemap_superslab(range[i].base) == range[i].superslab) {
            range[kept - 1] = range[i];
        }
    }
    return kept;
}

/* Two tables may share an OS page. Other overlaps were freed meanwhile. */
static void ranges_part(hak_range_t *range, size_t count) {
    for (size_t i = 0; i + 1 < count; i++) {
        size_t most = (size_t)(range[i + 1].base - range[i].base);
        if (range[i].bytes > most && range[i].kind != HAK_RANGE_SUPERSLAB) {
            range[i].bytes = most;
        }
    }
}

static size_t inventory_capacity(void) {
    hak_span_stats_t span;
    hak_large_stats_t large;
    hak_span_stats(&span);
    hak_large_stats(&large);
    size_t count = span.superslab_count + large.huge_count + large.vacant_count +
                   span.meta_bytes / HAK_SUPERSLAB_BYTES;
    return count + count / SPARE_SHARE + SPARE_LEAST;
}

void hak_inventory_take(hak_inventory_t *inventory) {
    *inventory = (hak_inventory_t){.bytes = inventory_capacity() * sizeof(hak_range_t)};
    inventory->range = hak_stat_map(&inventory->bytes);
    if (inventory->range == NULL) {
        return;
    }
    hak_region_t list = {.base = (char *)inventory->range, .bytes = inventory->bytes};
    add_region(&list, inventory);
    hak_region_visit(add_region, inventory);
    hak_large_visit(add_huge, inventory);
    hak_span_visit(add_superslab, inventory);
    ranges_sort(inventory->range, inventory->count);
    inventory->count = ranges_unique(inventory->range, inventory->count);
    ranges_part(inventory->range, inventory->count);
}

void hak_inventory_drop(hak_inventory_t *inventory) {
    if (inventory->range != NULL) {
        hak_os_unmap(inventory->range, inventory->bytes);
    }
    *inventory = (hak_inventory_t){0};
}

/* The process reads its own structures as they are; an observer of another cannot (observe/). */
const char *hak_inventory_doubt(uint64_t sum_bytes, uint64_t rss_bytes) {
    (void)sum_bytes, (void)rss_bytes;
    return NULL;
}

/* --- pieces of a superslab -------------------------------------------------------------------- */

static uint32_t entry_at(const hak_range_t *range, unsigned unit) {
    const char *address = range->base + (size_t)unit * HAK_UNIT_BYTES;
    return hak_pagemap_get(hak_pagemap_base(), address);
}

static hak_piece_kind_t unit_kind(const hak_range_t *range, unsigned unit) {
    uint64_t bit = 1ull << unit;
    return (range->free_units & bit) == 0      ? HAK_PIECE_DIRTY
           : (range->clean_units & bit) != 0   ? HAK_PIECE_CLEAN
           : (range->padding_units & bit) != 0 ? HAK_PIECE_PADDING
                                               : HAK_PIECE_DIRTY;
}

static bool is_slab_start(const hak_range_t *range, unsigned unit, uint32_t entry) {
    return hak_slab_is_entry(entry) &&
           hak_single_writer_load(&range->superslab->units_to_first[unit]) == 0;
}

static void piece_slab(hak_piece_t *piece, const hak_range_t *range, uint32_t entry) {
    hak_slab_t *slab = (hak_slab_t *)&range->superslab->unit[piece->unit];
    const hak_sc_info_t *info = hak_sc_info_of_entry(entry);
    uint32_t carved = hak_single_writer_load(&slab->carved),
             free = hak_single_writer_load(&slab->free_count);
    unsigned most = HAK_SUPERSLAB_UNITS - piece->unit;
    piece->kind = HAK_PIECE_SLAB;
    piece->units = info->units < most ? info->units : most;
    piece->sc = hak_sc_of_entry(entry);
    piece->carved = carved < info->blocks ? carved : info->blocks; /* may be caught in a change */
    piece->free = free < piece->carved ? free : piece->carved;
    piece->slab = slab;
}

/* Whether the next unit continues a piece that is no slab and begins with `entry`. */
static bool is_continued(const hak_range_t *range, const hak_piece_t *piece, uint32_t entry) {
    unsigned next = piece->unit + piece->units;
    uint32_t other = entry_at(range, next);
    return piece->kind == HAK_PIECE_LARGE
               ? other == HAK_KIND_LARGE_BODY
               : entry == 0 && other == 0 && unit_kind(range, next) == piece->kind;
}

/* The piece that begins at a unit. */
static hak_piece_t inventory_piece(const hak_range_t *range, unsigned unit) {
    hak_piece_t piece = {.unit = unit, .units = 1};
    uint32_t entry = entry_at(range, unit);
    if (hak_pagemap_superslab(range->base) != range->superslab) { /* it is gone */
        piece.kind = HAK_PIECE_DIRTY;
        piece.units = HAK_SUPERSLAB_UNITS - unit;
        return piece;
    }
    if (is_slab_start(range, unit, entry)) {
        piece_slab(&piece, range, entry);
        return piece;
    }
    bool is_large = entry == HAK_KIND_LARGE || entry == HAK_KIND_LARGE_BODY;
    piece.kind = is_large ? HAK_PIECE_LARGE : unit_kind(range, unit);
    while (unit + piece.units < HAK_SUPERSLAB_UNITS && is_continued(range, &piece, entry)) {
        piece.units++;
    }
    return piece;
}

void hak_inventory_pieces(const hak_range_t *range, hak_piece_visit_t *visit, void *context) {
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS;) {
        hak_piece_t piece = inventory_piece(range, unit);
        visit(context, range, &piece);
        unit += piece.units;
    }
}
