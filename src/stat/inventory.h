/* SPDX-License-Identifier: MIT
 *
 * The pieces of a superslab, read without a lock: by then it may be gone or replaced. */
#ifndef HAK_STAT_INVENTORY_H
#define HAK_STAT_INVENTORY_H

#include "slab/slab.h"

typedef enum hak_range_kind {
    HAK_RANGE_SUPERSLAB,
    HAK_RANGE_HUGE,
    HAK_RANGE_CACHED, /* of freed huge blocks */
    HAK_RANGE_META,
    HAK_RANGE_GUARD,
} hak_range_kind_t;

typedef struct hak_range {
    char *base;
    size_t bytes;
    hak_range_kind_t kind;
    uint8_t huge_pages; /* of a superslab, like the next four */
    hak_superslab_t *superslab;
    uint64_t free_units, clean_units, padding_units;
} hak_range_t;

typedef enum hak_piece_kind {
    HAK_PIECE_SLAB,
    HAK_PIECE_LARGE,
    HAK_PIECE_CLEAN,   /* free units that read as zero */
    HAK_PIECE_PADDING, /* free units of huge pages, never used */
    HAK_PIECE_DIRTY,   /* free units that hold memory, or units moving */
} hak_piece_kind_t;

/* Units of a superslab with one use: a slab, a large block, a run of free ones. */
typedef struct hak_piece {
    hak_piece_kind_t kind;
    unsigned unit, units;
    unsigned sc;           /* of a slab, like the next three */
    uint32_t carved, free; /* blocks; free <= carved */
    hak_slab_t *slab;
} hak_piece_t;

/* The state of a superslab. [lock SPAN] */
hak_range_t hak_inventory_superslab(hak_superslab_t *superslab);
/* Visits the pieces of a superslab, in order, without a gap. */
typedef void hak_piece_visit_t(void *context, const hak_range_t *range, const hak_piece_t *piece);
void hak_inventory_pieces(const hak_range_t *range, hak_piece_visit_t *visit, void *context);

#endif
