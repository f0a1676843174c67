/* SPDX-License-Identifier: MIT
 *
 * The map of the heap: the use of every unit of every superslab, and the huge blocks, as JSON
 * (docs/schema/map.schema.json). */
#include "write.h"

static void map_piece(void *context, const hak_range_t *range, const hak_piece_t *piece) {
    const hak_sink_t *sink = context;
    (void)range;
    static const char *const names[] = {
        [HAK_PIECE_SLAB] = "slab",     [HAK_PIECE_LARGE] = "large", [HAK_PIECE_CLEAN] = "clean",
        [HAK_PIECE_PADDING] = "dirty", [HAK_PIECE_DIRTY] = "dirty",
    };
    hak_sink_format(sink, "%s{\"unit\":%u,\"units\":%u,\"kind\":\"%s\"",
                    piece->unit == 0 ? "" : ",", piece->unit, piece->units, names[piece->kind]);
    if (piece->kind == HAK_PIECE_SLAB) {
        const hak_sc_info_t *info = &hak_sc_info[piece->sc];
        hak_sink_format(sink, ",\"bytes\":%u,\"live\":%u,\"blocks\":%u,\"capacity\":%u",
                        info->bytes, piece->carved - piece->free, piece->carved,
                        (unsigned)info->blocks);
    }
    hak_sink_format(sink, "}");
}

static void map_range(const hak_sink_t *sink, const hak_range_t *range) {
    if (range->kind == HAK_RANGE_SUPERSLAB) {
        hak_sink_format(sink, "{\"base\":\"%p\",\"huge_pages\":%u,\"spans\":[", range->base,
                        (unsigned)range->huge_pages);
        obs_pieces(range, map_piece, (void *)(uintptr_t)sink);
        hak_sink_format(sink, "]}");
    } else {
        hak_sink_format(sink, "{\"base\":\"%p\",\"bytes\":%z,\"kind\":\"%s\"}", range->base,
                        range->bytes, range->kind == HAK_RANGE_HUGE ? "huge" : "cached");
    }
}

/* Ranges of two kinds. */
static void map_ranges(const hak_sink_t *sink, const obs_ranges_t *inventory, hak_range_kind_t kind,
                       hak_range_kind_t other) {
    const char *comma = "\n";
    for (size_t i = 0; i < inventory->count; i++) {
        const hak_range_t *range = &inventory->range[i];
        if (range->kind == kind || range->kind == other) {
            hak_sink_format(sink, "%s", comma);
            map_range(sink, range);
            comma = ",\n";
        }
    }
}

void obs_write_map(const hak_sink_t *sink, const obs_snapshot_t *snapshot) {
    (void)snapshot;
    obs_ranges_t inventory;
    obs_ranges_take(&inventory);
    obs_report_head(sink);
    hak_sink_format(sink, ",\n\"unit_bytes\":%u,\"superslab_units\":%u,\n\"superslabs\":[",
                    (unsigned)HAK_UNIT_BYTES, (unsigned)HAK_SUPERSLAB_UNITS);
    map_ranges(sink, &inventory, HAK_RANGE_SUPERSLAB, HAK_RANGE_SUPERSLAB);
    hak_sink_format(sink, "],\n\"huge\":[");
    map_ranges(sink, &inventory, HAK_RANGE_HUGE, HAK_RANGE_CACHED);
    hak_sink_format(sink, "]}\n");
    obs_ranges_drop(&inventory);
}
