/* SPDX-License-Identifier: MIT
 *
 * RSS by cause. Each resident page of ours gets a cause; the rest of RSS belongs to others.
 *
 * Two independent measurements: causes by the resident pages of each slab, block and table; others
 * by the size of each mapping of the process without our pages. So the causes add up to RSS only if
 * no page is missed or counted twice. Figures are estimates while threads work; a lock is held only
 * while a list is copied. */
#include "rss.h"

typedef struct class_rss {
    uint64_t used_blocks;          /* the program's, in caches, or on their way to owners */
    uint64_t used, free, uncarved; /* resident bytes */
} class_rss_t;

typedef struct rss_work {
    obs_rss_t *out;
    const obs_snapshot_t *snapshot;
    obs_ranges_t inventory;
    class_rss_t sc[HAK_SC_COUNT];
    uint64_t large;       /* resident bytes of large and huge blocks */
    size_t cursor;        /* first range that the next mapping may overlap */
    uint64_t excess_meta; /* looks resident, but is no part of RSS: OS pages that were only read, */
    uint64_t excess_blocks; /* where nobody knows which: in a process that has a forked child */
} rss_work_t;

/* The process may take and give back memory while it is looked at. */
enum { SHARED_DIVISOR = 10 };

/* All of the range, if the kernel does not tell. */
static size_t look(rss_work_t *work, const char *base, size_t bytes) {
    size_t resident = work->out->is_looked_at
                          ? obs_resident(obs_current->reader, (uintptr_t)base, bytes)
                          : SIZE_MAX;
    if (resident == SIZE_MAX) {
        work->out->is_looked_at = false;
        return bytes;
    }
    return resident;
}

/* --- our ranges ------------------------------------------------------------------------------- */

static bool is_huge_page(const hak_range_t *range, unsigned unit) {
    return (range->huge_pages >> unit / HAK_HUGE_PAGE_UNITS & 1) != 0;
}

/* Resident bytes count for blocks in use first: purged pages belong to free blocks. Memory behind
 * the last carved block is untouched, except in a huge page or after an earlier use. */
static void look_at_slab(rss_work_t *work, const hak_range_t *range, const hak_piece_t *piece) {
    const char *base = range->base + (size_t)piece->unit * HAK_UNIT_BYTES;
    class_rss_t *sc = &work->sc[piece->sc];
    size_t all = (size_t)piece->units * HAK_UNIT_BYTES, size = hak_sc_info[piece->sc].bytes;
    size_t made =
        hak_least(hak_align_up(piece->carved * size, obs_current->reader->page_bytes), all);
    uint64_t resident = look(work, base, made);
    uint64_t used = hak_least(resident, (piece->carved - piece->free) * (uint64_t)size);
    uint64_t free = hak_least(resident - used, piece->free * (uint64_t)size);
    uint64_t rest = look(work, base + made, all - made);
    sc->used_blocks += piece->carved - piece->free;
    sc->used += used;
    sc->free += free;
    sc->uncarved += resident - used - free;
    if (is_huge_page(range, piece->unit + (unsigned)(made / HAK_UNIT_BYTES))) {
        work->out->bytes[OBS_CAUSE_huge_page_padding] += rest;
    } else {
        sc->uncarved += rest;
    }
}

static void look_at_piece(void *context, const hak_range_t *range, const hak_piece_t *piece) {
    rss_work_t *work = context;
    obs_cause_t cause = OBS_CAUSE_retained_dirty;
    if (piece->kind == HAK_PIECE_SLAB) {
        look_at_slab(work, range, piece);
        return;
    }
    size_t resident = look(work, range->base + (size_t)piece->unit * HAK_UNIT_BYTES,
                           (size_t)piece->units * HAK_UNIT_BYTES);
    if (piece->kind == HAK_PIECE_LARGE) {
        work->large += resident;
        return;
    }
    if (piece->kind == HAK_PIECE_PADDING ||
        (piece->kind == HAK_PIECE_CLEAN && is_huge_page(range, piece->unit))) {
        cause = OBS_CAUSE_huge_page_padding;
    } else if (piece->kind == HAK_PIECE_CLEAN) {
        cause = OBS_CAUSE_retained_clean;
    }
    work->out->bytes[cause] += resident;
}

static void look_at_range(rss_work_t *work, const hak_range_t *range) {
    static const obs_cause_t causes[] = {
        [HAK_RANGE_CACHED] = OBS_CAUSE_retained_dirty,
        [HAK_RANGE_META] = OBS_CAUSE_metadata,
        [HAK_RANGE_GUARD] = OBS_CAUSE_guard,
    };
    if (range->kind == HAK_RANGE_SUPERSLAB) {
        obs_pieces(range, look_at_piece, work);
        return;
    }
    size_t resident = look(work, range->base, range->bytes);
    if (range->kind == HAK_RANGE_HUGE) {
        work->large += resident;
    } else {
        work->out->bytes[causes[range->kind]] += resident;
    }
}

/* --- by size class ---------------------------------------------------------------------------- */

static uint64_t share(uint64_t bytes, uint64_t part, uint64_t all) {
    return all == 0 ? 0 : (uint64_t)((double)bytes * ((double)part / (double)all));
}

static void class_add(obs_rss_t *out, obs_cause_t cause, unsigned block_bytes, uint64_t bytes) {
    out->bytes[cause] += bytes;
    if (bytes > out->most[cause].bytes) {
        out->most[cause].block_bytes = block_bytes;
        out->most[cause].bytes = bytes;
    }
}

/* Only the number of used blocks in caches is known: the program's blocks get their bytes first,
 * the caches share the rest by number. */
static void class_split(rss_work_t *work, unsigned sc) {
    const class_rss_t *of = &work->sc[sc];
    const hak_class_stats_t *stats = &work->snapshot->sc[sc];
    const hak_bin_counters_t *bin = &work->snapshot->bin[sc];
    obs_rss_t *out = work->out;
    unsigned size = hak_sc_info[sc].bytes;
    uint64_t cached = stats->cached + stats->lost;
    uint64_t waiting = cached + stats->remote + stats->quarantine;
    uint64_t live_blocks = of->used_blocks > waiting ? of->used_blocks - waiting : 0;
    uint64_t live = waiting == 0 ? of->used : hak_least(of->used, live_blocks * size);
    uint64_t left = of->used - live;
    uint64_t given = bin->refill * size; /* bytes handed out; asked_bytes: requested */
    uint64_t slack = share(live, hak_excess(given, bin->asked_bytes), given);
    uint64_t bins = share(left, cached, waiting), remote = share(left, stats->remote, waiting);
    uint64_t held = share(left, stats->quarantine, waiting);
    class_add(out, OBS_CAUSE_live, size, live - slack + (left - bins - remote - held));
    class_add(out, OBS_CAUSE_slack, size, slack);
    class_add(out, OBS_CAUSE_slab_free, size, of->free);
    class_add(out, OBS_CAUSE_uncarved, size, of->uncarved);
    class_add(out, OBS_CAUSE_bins, size, bins);
    class_add(out, OBS_CAUSE_remote, size, remote);
    out->bytes[OBS_CAUSE_guard] += held;
}

/* --- memory that malloc_trim(0) gives back ---------------------------------------------------- */

static void look_at_idle(const char *base, size_t free_bytes, size_t uncarved_bytes,
                         void *context) {
    rss_work_t *work = context;
    uint64_t *returnable = work->out->returnable;
    returnable[OBS_CAUSE_slab_free] += look(work, base, free_bytes);
    if (uncarved_bytes != 0) {
        returnable[OBS_CAUSE_uncarved] += look(work, base + free_bytes, uncarved_bytes);
    }
}

/* Uncarved parts of huge pages are returnable, too, but their cause is not known. */
static void look_at_returnable(rss_work_t *work) {
    obs_rss_t *out = work->out;
    for (unsigned cause = 0; cause < OBS_CAUSE_COUNT; cause++) {
        out->returnable[cause] = OBS_UNKNOWN;
    }
    out->returnable[OBS_CAUSE_slab_free] = out->returnable[OBS_CAUSE_uncarved] = 0;
    obs_visit_idle(look_at_idle, work);
    out->returnable[OBS_CAUSE_retained_dirty] = out->bytes[OBS_CAUSE_retained_dirty];
    for (unsigned cause = OBS_CAUSE_slab_free; cause <= OBS_CAUSE_uncarved; cause++) {
        out->returnable[cause] = hak_least(out->returnable[cause], out->bytes[cause]);
    }
}

/* --- other memory of the process -------------------------------------------------------------- */

/* Whether the shared pages of a mapping are the page of zeros, which a debugger that writes a core
 * file leaves behind everywhere: RSS lacks them. Those of a forked child it has. */
static bool lacks_shared(const obs_mapping_t *mapping) {
    obs_reader_t *reader = obs_current->reader;
    uint64_t bytes = mapping->end - mapping->start;
    uint64_t shared = obs_shared(reader, mapping->start, bytes);
    uint64_t all = obs_resident(reader, mapping->start, bytes);
    uint64_t lacking = hak_excess(all, mapping->resident_bytes);
    return all != SIZE_MAX && lacking != 0 &&
           hak_excess(shared, lacking) <= mapping->resident_bytes / SHARED_DIVISOR;
}

static void look_at_mapping(size_t number, rss_work_t *work) {
    const obs_mapping_t *mapping = &obs_current->reader->mapping[number];
    const hak_range_t *range = work->inventory.range;
    size_t count = work->inventory.count, i = work->cursor;
    uint64_t ours = 0, shared = 0;
    bool has_blocks = false;
    while (i < count && (uintptr_t)range[i].base + range[i].bytes <= mapping->start) {
        i++;
    }
    work->cursor = i;
    for (; i < count && (uintptr_t)range[i].base < mapping->end; i++) {
        uintptr_t from = (uintptr_t)range[i].base, to = from + range[i].bytes;
        from = from > mapping->start ? from : mapping->start;
        to = to < mapping->end ? to : mapping->end;
        ours += look(work, (const char *)from, to - from);
        shared += obs_shared(obs_current->reader, from, to - from);
        has_blocks |= range[i].kind < HAK_RANGE_META;
    }
    if (shared != 0 && obs_current->reader->knows_rss && lacks_shared(mapping)) {
        obs_set_zeros(obs_current->reader, number);
        ours = hak_excess(ours, shared);
    }
    work->out->rss_bytes += mapping->resident_bytes;
    if (ours <= mapping->resident_bytes) {
        work->out->other[mapping->kind] += mapping->resident_bytes - ours;
    } else if (has_blocks) { /* the list itself may lie beside them */
        work->excess_blocks += ours - mapping->resident_bytes;
    } else {
        work->excess_meta += ours - mapping->resident_bytes;
    }
}

static void take_off(uint64_t *from, uint64_t bytes) {
    *from -= hak_least(*from, bytes);
}

/* Before our ranges: which of their pages are no part of RSS is known then. */
static void look_at_mappings(rss_work_t *work) {
    for (size_t i = 0; i < obs_current->reader->mapping_count; i++) {
        look_at_mapping(i, work);
    }
}

static void look_at_others(rss_work_t *work) {
    const obs_reader_t *reader = obs_current->reader;
    obs_rss_t *out = work->out;
    out->is_told = reader->knows_rss && out->rss_bytes != 0;
    if (out->is_told) {
        for (unsigned kind = 0; kind < OBS_MAPPING_KINDS; kind++) {
            out->bytes[OBS_CAUSE_others] += out->other[kind];
        }
        if (out->is_looked_at) {
            take_off(&out->bytes[OBS_CAUSE_metadata], work->excess_meta);
            take_off(&out->bytes[OBS_CAUSE_live], work->excess_blocks);
        }
        return;
    }
    out->rss_bytes = obs_current->reader->resident_bytes;
    out->bytes[OBS_CAUSE_others] = out->rss_bytes;
    take_off(&out->bytes[OBS_CAUSE_others], obs_rss_sum(out) - out->rss_bytes);
}

void obs_rss_measure(obs_rss_t *rss, const obs_snapshot_t *snapshot) {
    rss_work_t work = {.out = rss, .snapshot = snapshot};
    *rss = (obs_rss_t){.is_looked_at = true};
    obs_ranges_take(&work.inventory);
    rss->is_listed = work.inventory.range != NULL;
    look_at_mappings(&work);
    for (size_t i = 0; rss->is_listed && i < work.inventory.count; i++) {
        look_at_range(&work, &work.inventory.range[i]);
    }
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        class_split(&work, sc);
    }
    class_add(rss, OBS_CAUSE_live, 0, work.large);
    look_at_returnable(&work);
    look_at_others(&work);
    rss->doubt = obs_ranges_doubt(obs_rss_sum(rss), rss->rss_bytes);
    obs_ranges_drop(&work.inventory);
}

uint64_t obs_rss_sum(const obs_rss_t *rss) {
    uint64_t sum = 0;
    for (unsigned cause = 0; cause < OBS_CAUSE_COUNT; cause++) {
        sum += rss->bytes[cause];
    }
    return sum;
}
