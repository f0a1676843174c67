/* SPDX-License-Identifier: MIT */
#include "stat/inventory.h"

#include "slab/slab_inl.h"

hak_range_t hak_inventory_superslab(hak_superslab_t *superslab) {
    return (hak_range_t){
        .base = superslab->base,
        .bytes = HAK_SUPERSLAB_BYTES,
        .kind = HAK_RANGE_SUPERSLAB,
        .superslab = superslab,
        .huge_pages = superslab->huge_pages,
        .free_units = hak_load_relaxed(&superslab->free_units),
        .clean_units = hak_load_relaxed(&superslab->clean_units),
        .padding_units = hak_load_relaxed(&superslab->padding_units),
    };
}

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
