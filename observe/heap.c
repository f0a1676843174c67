/* SPDX-License-Identifier: MIT
 *
 * The list of the allocator's ranges in another program, their pieces and idle pages: what
 * image.h declares, and reports are made of. A running program changes
 * its structures meanwhile: what contradicts itself is read again, and then counted as doubtful.
 * Every loop is bounded by what is mapped. */
#include "image.h"

#include "base/bits.h"
#include "large/huge_record.h"
#include "slab/slab_inl.h"

enum {
    RANGES_MOST = 1 << 22, /* 16 TiB in superslabs, and 235 MB of this program */
    EXTENTS_MOST = 4096,
    BATCH = 256, /* records and pointers that are read at once */
    TRIES = 3,   /* of a superslab that contradicts itself */
    BITMAP_WORDS = 64,
    SUM_DIVISOR = 100, /* RSS and the sum of causes may differ by this part */
};

/* A running process may take and give back memory between the two. */
static bool is_apart(uint64_t a, uint64_t b) {
    return hak_most(a, b) - hak_least(a, b) > hak_most(a, b) / SUM_DIVISOR;
}

const char *obs_ranges_doubt(uint64_t sum_bytes, uint64_t rss_bytes) {
    static char text[256];
    const obs_doubt_t *doubt = &obs_current->doubt;
    bool is_core = obs_current->reader->is_core, is_off = is_apart(sum_bytes, rss_bytes);
    bool is_doubtful = doubt->ranges + doubt->slabs + doubt->lists != 0;
    int length = snprintf(text, sizeof text, "%s%s",
                          is_core ? "a core file does not tell RSS: the memory that it has counts "
                                    "instead"
                                  : "",
                          is_core && (is_doubtful || is_off) ? "; " : "");
    if (is_doubtful) {
        snprintf(text + length, sizeof text - (size_t)length,
                 "uncertain: %u ranges, %u slabs and %u lists changed while they were read, or "
                 "contradict themselves",
                 doubt->ranges, doubt->slabs, doubt->lists);
    } else if (is_off) {
        snprintf(
            text + length, sizeof text - (size_t)length,
            "uncertain: RSS changed while memory was looked at, so the causes do not sum to it");
    }
    return text[0] != '\0' ? text : NULL;
}

/* --- the list --------------------------------------------------------------------------------- */

typedef struct list {
    obs_ranges_t *inventory;
    size_t room, most; /* ranges: in the list, in all that is mapped */
} list_t;

static void list_add(list_t *list, hak_range_t range) {
    obs_ranges_t *inventory = list->inventory;
    if (!obs_is_mapped(obs_current->reader, (uintptr_t)range.base, range.bytes) ||
        range.bytes == 0 || inventory->count >= list->most) {
        obs_current->doubt.ranges++;
        return;
    }
    if (inventory->count == list->room) {
        size_t room = list->room * 2 + BATCH;
        hak_range_t *all = obs_grow(inventory->range, room * sizeof *all);
        if (all == NULL) {
            obs_current->doubt.ranges++;
            return;
        }
        inventory->range = all;
        list->room = room;
    }
    inventory->range[inventory->count++] = range;
}

static void *as_pointer(uint64_t address) {
    return (void *)(uintptr_t)address;
}

static void add_region(list_t *list, uint64_t base, uint64_t bytes, hak_range_kind_t kind) {
    uint64_t page = obs_current->reader->page_bytes, end = base + bytes;
    if (bytes <= obs_current->reader->mapped_bytes) {
        base = hak_align_down(base, page);
        bytes = hak_align_up(end, page) - base;
    }
    list_add(list, (hak_range_t){.base = as_pointer(base), .bytes = bytes, .kind = kind});
}

static void add_regions(list_t *list) {
    obs_image_t *image = obs_current;
    uint64_t at = obs_root_number(image, HAK_DOOR_ROOT_regions, 8);
    add_region(list, obs_root(image, pagemap), obs_size(image, pagemap), HAK_RANGE_META);
    obs_walk_t walk = {0};
    bool is_whole;
    while (obs_walk_on(&walk, at, &is_whole)) {
        obs_region_t region;
        if (!obs_fetch(image, region, at, &region)) {
            break;
        }
        bool is_guard = region.kind == HAK_REGION_GUARD;
        add_region(list, region.base, region.bytes, is_guard ? HAK_RANGE_GUARD : HAK_RANGE_META);
        at = region.next;
    }
    image->doubt.lists += !is_whole;
}

static void add_huge(list_t *list, uint64_t base, uint64_t bytes, bool is_cached) {
    hak_range_kind_t kind = is_cached ? HAK_RANGE_CACHED : HAK_RANGE_HUGE;
    list_add(list, (hak_range_t){.base = as_pointer(base), .bytes = bytes, .kind = kind});
}

/* Some records of one chunk. false: they cannot be read. */
static bool add_records(list_t *list, uint64_t at, size_t count) {
    obs_image_t *image = obs_current;
    size_t bytes = obs_size(image, record);
    char *raw = obs_take(count * bytes);
    bool is_read = raw != NULL && obs_read(image->reader, at, raw, count * bytes);
    for (size_t i = 0; is_read && i < count; i++) {
        obs_record_t record;
        obs_decode(image, record, at + i * bytes, raw + i * bytes, &record);
        if (record.base != 0) {
            add_huge(list, record.base, record.bytes, record.is_vacant != 0);
        }
    }
    obs_drop(raw);
    return is_read;
}

static void add_huge_blocks(list_t *list) {
    obs_image_t *image = obs_current;
    obs_huge_t huge;
    uint64_t chunks = image->row[HAK_DOOR_AT_huge_chunk].bytes / 8, chunk = 0;
    size_t bytes = obs_size(image, record);
    if (!obs_fetch(image, huge, obs_root(image, huge), &huge) ||
        huge.record_count > chunks << HUGE_CHUNK_LOG2 || bytes > 4096) {
        image->doubt.lists++;
        return;
    }
    for (uint32_t i = 0; i < huge.record_count; i += BATCH) {
        uint32_t inside = i & ((1u << HUGE_CHUNK_LOG2) - 1);
        bool is_read =
            inside != 0 ||
            obs_read_word(image->reader, huge.chunk + (i >> HUGE_CHUNK_LOG2) * 8, &chunk);
        size_t count = hak_least(huge.record_count - i, BATCH);
        if (!is_read || !add_records(list, chunk + inside * bytes, count)) {
            image->doubt.lists++;
            return;
        }
    }
}

static void add_extents(list_t *list) {
    obs_image_t *image = obs_current;
    obs_huge_cache_t cache;
    if (!obs_fetch(image, huge_cache, obs_root(image, huge_cache), &cache) ||
        cache.extent_count > EXTENTS_MOST) {
        image->doubt.lists++;
        return;
    }
    for (uint32_t i = 0; i < cache.extent_count; i++) {
        obs_extent_t extent;
        if (!obs_fetch(image, extent, obs_root(image, extents) + i * obs_size(image, extent),
                       &extent)) {
            image->doubt.lists++;
            return;
        }
        add_huge(list, extent.base, extent.bytes, true);
    }
}

static void add_superslab(list_t *list, uint64_t at) {
    obs_image_t *image = obs_current;
    obs_superslab_t superslab;
    if (!obs_fetch(image, superslab, at, &superslab) || superslab.base % HAK_SUPERSLAB_BYTES != 0) {
        image->doubt.ranges++;
        return;
    }
    list_add(list, (hak_range_t){.base = as_pointer(superslab.base),
                                 .bytes = HAK_SUPERSLAB_BYTES,
                                 .kind = HAK_RANGE_SUPERSLAB,
                                 .superslab = as_pointer(at),
                                 .huge_pages = superslab.huge_pages,
                                 .free_units = superslab.free_units,
                                 .clean_units = superslab.clean_units,
                                 .padding_units = superslab.padding_units});
}

static void add_superslabs(list_t *list) {
    obs_image_t *image = obs_current;
    uint64_t pointer[BATCH];
    obs_spans_t spans;
    if (!obs_fetch(image, spans, obs_root(image, spans), &spans) || spans.end > spans.capacity ||
        !obs_is_mapped(image->reader, spans.table, spans.end * sizeof *pointer)) {
        image->doubt.lists++;
        return;
    }
    for (uint32_t i = 0; i < spans.end; i += BATCH) {
        size_t count = hak_least(spans.end - i, BATCH);
        if (!obs_read(image->reader, spans.table + i * sizeof *pointer, pointer,
                      count * sizeof *pointer)) {
            image->doubt.lists++;
            return;
        }
        for (size_t j = 0; j < count; j++) {
            if (pointer[j] != 0) {
                add_superslab(list, pointer[j]);
            }
        }
    }
}

/* By address; of two with the same base the longer is first. */
static int range_compare(const void *a, const void *b) {
    const hak_range_t *left = a, *right = b;
    uintptr_t x = (uintptr_t)left->base, y = (uintptr_t)right->base;
    return x != y ? (x > y) - (x < y) : (left->bytes < right->bytes) - (left->bytes > right->bytes);
}

/* Two tables may share an OS page. Other overlaps were freed and taken meanwhile: none counts
 * twice. */
static void ranges_part(obs_ranges_t *inventory) {
    hak_range_t *range = inventory->range;
    size_t kept = 0;
    for (size_t i = 0; i < inventory->count; i++) {
        hak_range_t *last = kept != 0 ? &range[kept - 1] : NULL;
        uintptr_t end = last != NULL ? (uintptr_t)last->base + last->bytes : 0;
        bool overlaps = last != NULL && (uintptr_t)range[i].base < end;
        if (overlaps && (last->kind == HAK_RANGE_SUPERSLAB || range[i].base == last->base)) {
            obs_current->doubt.ranges++;
            continue;
        }
        if (overlaps) {
            obs_current->doubt.ranges += last->kind < HAK_RANGE_META;
            last->bytes = (size_t)(range[i].base - last->base);
        }
        range[kept++] = range[i];
    }
    inventory->count = kept;
}

void obs_ranges_take(obs_ranges_t *inventory) {
    obs_image_t *image = obs_current;
    *inventory = (obs_ranges_t){0};
    list_t list = {
        .inventory = inventory,
        .most = hak_least(image->reader->mapped_bytes / image->reader->page_bytes, RANGES_MOST)};
    add_regions(&list);
    add_huge_blocks(&list);
    add_extents(&list);
    add_superslabs(&list);
    if (inventory->count != 0) {
        obs_sort(inventory->range, inventory->count, sizeof *inventory->range, range_compare);
        ranges_part(inventory);
    }
    image->ranges = inventory;
}

void obs_ranges_drop(obs_ranges_t *inventory) {
    obs_drop(inventory->range);
    *inventory = (obs_ranges_t){0};
    obs_current->ranges = NULL;
}

/* --- superslabs ------------------------------------------------------------------------------- */

enum { RECORDS_MOST = HAK_SUPERSLAB_UNITS * 1024 };

/* What is known of a superslab: the pieces are made of it. */
typedef struct view {
    uint64_t at; /* of the record */
    obs_superslab_t record;
    uint32_t entry[HAK_SUPERSLAB_UNITS]; /* of the page map */
    bool is_there;                       /* the page map leads to the record */
    bool is_good;                        /* nothing in it contradicts itself */
    char unit[RECORDS_MOST];
} view_t;

static view_t view;

bool obs_leaf_of(obs_image_t *image, uint64_t address, obs_leaf_t *leaf) {
    obs_pagemap_t map;
    uint64_t way;
    obs_decode(image, pagemap, obs_root(image, pagemap), NULL, &map);
    if (!obs_read_word(image->reader, map.root + (address >> HAK_PAGEMAP_LEAF_LOG2 & 0xffff) * 8,
                       &way)) {
        return false;
    }
    obs_decode(image, leaf, map.zero + way * sizeof(uint32_t), NULL, leaf);
    return true;
}

static bool view_read(obs_image_t *image, const hak_range_t *range) {
    uint64_t base = (uintptr_t)range->base, pointer;
    size_t unit_bytes = obs_size(image, unit);
    obs_leaf_t leaf;
    view.at = (uintptr_t)range->superslab;
    view.is_there = view.is_good = false;
    if (unit_bytes > RECORDS_MOST / HAK_SUPERSLAB_UNITS || obs_size(image, slab) > unit_bytes ||
        !obs_leaf_of(image, base, &leaf) || !obs_fetch(image, superslab, view.at, &view.record)) {
        return false;
    }
    uint64_t inside = (uint32_t)base >> HAK_SUPERSLAB_LOG2, first = (uint32_t)base >> HAK_UNIT_LOG2;
    bool is_read =
        obs_read_word(image->reader, leaf.superslab + inside * 8, &pointer) &&
        obs_read(image->reader, leaf.entry + first * 4, view.entry, sizeof view.entry) &&
        obs_read(image->reader, view.record.unit, view.unit, HAK_SUPERSLAB_UNITS * unit_bytes);
    view.is_there = is_read && pointer == view.at;
    return is_read;
}

static void slab_at(obs_image_t *image, unsigned unit, obs_slab_t *slab) {
    size_t bytes = obs_size(image, unit);
    obs_decode(image, slab, view.record.unit + unit * bytes, view.unit + unit * bytes, slab);
}

static bool is_slab_start(unsigned unit) {
    return hak_slab_is_entry(view.entry[unit]) &&
           hak_sc_of_entry(view.entry[unit]) < HAK_SC_COUNT &&
           view.record.units_to_first[unit] == 0;
}

/* Whether what the record, its slabs and the page map say fits together. */
static bool view_is_good(obs_image_t *image, const hak_range_t *range) {
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS; unit++) {
        bool is_free = (view.record.free_units >> unit & 1) != 0;
        if (is_free && view.entry[unit] != 0) {
            return false;
        }
        if (is_slab_start(unit)) {
            unsigned sc = hak_sc_of_entry(view.entry[unit]);
            obs_slab_t slab;
            slab_at(image, unit, &slab);
            if (slab.sc != sc || slab.carved > hak_sc_info[sc].blocks ||
                slab.free_count > slab.carved ||
                slab.base != (uintptr_t)range->base + (uint64_t)unit * HAK_UNIT_BYTES) {
                return false;
            }
        }
    }
    return true;
}

/* Reads a superslab until it does not contradict itself, some times at most. */
static void view_take(const hak_range_t *range) {
    obs_image_t *image = obs_current;
    for (unsigned i = 0; i < TRIES && !view.is_good; i++) {
        if (i != 0) {
            obs_forget(image->reader);
        }
        view.is_good = view_read(image, range) && view_is_good(image, range);
    }
    image->doubt.slabs += !view.is_good;
}

static hak_piece_kind_t unit_kind(unsigned unit) {
    uint64_t bit = 1ull << unit;
    return (view.record.free_units & bit) == 0      ? HAK_PIECE_DIRTY
           : (view.record.clean_units & bit) != 0   ? HAK_PIECE_CLEAN
           : (view.record.padding_units & bit) != 0 ? HAK_PIECE_PADDING
                                                    : HAK_PIECE_DIRTY;
}

static void piece_slab(hak_piece_t *piece) {
    const hak_sc_info_t *info = &hak_sc_info[hak_sc_of_entry(view.entry[piece->unit])];
    obs_slab_t slab;
    slab_at(obs_current, piece->unit, &slab);
    piece->kind = HAK_PIECE_SLAB;
    piece->units = (unsigned)hak_least(info->units, HAK_SUPERSLAB_UNITS - piece->unit);
    piece->sc = hak_sc_of_entry(view.entry[piece->unit]);
    piece->carved = (uint32_t)hak_least(slab.carved, info->blocks);
    piece->free = (uint32_t)hak_least(slab.free_count, piece->carved);
}

static bool is_continued(const hak_piece_t *piece, uint32_t entry) {
    unsigned next = piece->unit + piece->units;
    return piece->kind == HAK_PIECE_LARGE
               ? view.entry[next] == HAK_KIND_LARGE_BODY
               : entry == 0 && view.entry[next] == 0 && unit_kind(next) == piece->kind;
}

static hak_piece_t piece_at(unsigned unit) {
    hak_piece_t piece = {.unit = unit, .units = 1};
    uint32_t entry = view.entry[unit];
    if (!view.is_there) { /* it is gone */
        piece.kind = HAK_PIECE_DIRTY;
        piece.units = HAK_SUPERSLAB_UNITS - unit;
        return piece;
    }
    if (is_slab_start(unit)) {
        piece_slab(&piece);
        return piece;
    }
    bool is_large = entry == HAK_KIND_LARGE || entry == HAK_KIND_LARGE_BODY;
    piece.kind = is_large ? HAK_PIECE_LARGE : unit_kind(unit);
    while (unit + piece.units < HAK_SUPERSLAB_UNITS && is_continued(&piece, entry)) {
        piece.units++;
    }
    return piece;
}

void obs_pieces(const hak_range_t *range, hak_piece_visit_t *visit, void *context) {
    view.is_good = false;
    view_take(range);
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS;) {
        hak_piece_t piece = piece_at(unit);
        visit(context, range, &piece);
        unit += piece.units;
    }
}

uint64_t obs_free_units(void) {
    return view.is_there ? view.record.free_units : 0;
}

uint64_t obs_clean_units(void) {
    return view.is_there ? view.record.clean_units : 0;
}

/* The first word of a slab's line in the first plane (slab/remote.h). */
uint64_t obs_remote_waiting(unsigned unit) {
    obs_image_t *image = obs_current;
    uint64_t number = 0, line = view.record.plane + unit * (uint64_t)obs_size(image, line);
    bool is_used = view.is_there && (view.record.planes_used & 1) != 0;
    return is_used && obs_read_word(image->reader, line, &number) ? number : 0;
}

/* --- idle pages, as slab/idle_pages.c finds them ---------------------------------------------- */

typedef struct bitmap {
    uint64_t word[BITMAP_WORDS];
    uint32_t carved;
} bitmap_t;

typedef struct idle {
    obs_idle_visit_t *visit;
    void *context;
    uint64_t apart; /* the owner whose slabs are in no list */
} idle_t;

static void idle_visit(const idle_t *idle, const bitmap_t *bitmap, const obs_slab_t *slab) {
    const hak_sc_info_t *info = &hak_sc_info[slab->sc];
    uint64_t page = obs_current->reader->page_bytes, all = info->units * (uint64_t)HAK_UNIT_BYTES;
    uint64_t made = hak_least(hak_align_up((size_t)bitmap->carved * info->bytes, page), all);
    for (uint32_t end = 0; end < bitmap->carved;) {
        uint32_t block = hak_bit_next(bitmap->word, end, bitmap->carved, 0);
        end = hak_bit_next(bitmap->word, block, bitmap->carved, ~0ull);
        uint64_t from = hak_align_up((size_t)block * info->bytes, page);
        uint64_t to = end < bitmap->carved ? (uint64_t)end * info->bytes : all;
        to = hak_align_down(to, page);
        if (from < to) {
            uint64_t split = hak_least(to, made);
            split = hak_most(split, from);
            idle->visit(as_pointer(slab->base + from), split - from, to - split, idle->context);
        }
    }
}

static void idle_piece(void *context, const hak_range_t *range, const hak_piece_t *piece) {
    const idle_t *idle = context;
    obs_slab_t slab;
    bitmap_t bitmap;
    (void)range;
    if (piece->kind != HAK_PIECE_SLAB || !view.is_good) {
        return;
    }
    slab_at(obs_current, piece->unit, &slab);
    if (slab.state != HAK_SLAB_PARTIAL || slab.owner == idle->apart) {
        return;
    }
    bitmap.carved = piece->carved;
    size_t words = (piece->carved + 63) / 64;
    if (words <= BITMAP_WORDS &&
        obs_read(obs_current->reader, slab.bits, bitmap.word, words * sizeof *bitmap.word)) {
        idle_visit(idle, &bitmap, &slab);
    } else {
        obs_current->doubt.slabs++;
    }
}

void obs_visit_idle(obs_idle_visit_t *visit, void *context) {
    const obs_ranges_t *inventory = obs_current->ranges;
    uint32_t doubtful = obs_current->doubt.slabs;
    idle_t idle = {visit, context, obs_root_number(obs_current, HAK_DOOR_ROOT_owner_apart, 8)};
    for (size_t i = 0; i < inventory->count; i++) {
        if (inventory->range[i].kind == HAK_RANGE_SUPERSLAB) {
            obs_pieces(&inventory->range[i], idle_piece, &idle);
        }
    }
    obs_current->doubt.slabs = doubtful; /* each was counted before */
}
