/* SPDX-License-Identifier: MIT
 *
 * Every superslab, slab, bitmap and bin is visited. Lists are walked with a
 * bound, so a cycle is found, not followed. */
#include "audit.h"
#include "front/budget.h"
#include "front/tcache.h"
#include "slab/remote.h"
#include "slab/slab_inl.h"
#include "span/span_state.h"

static void audit_expect(hak_audit_t *audit, bool holds, const char *invariant, const void *where) {
    if (!holds && audit->broken == NULL) {
        audit->broken = invariant;
        audit->where = where;
    }
}

/* No message is under way. */
static void audit_marked(hak_audit_t *audit, const hak_slab_t *slab) {
    hak_superslab_t *superslab = hak_pagemap_superslab(slab->base);
    uint64_t count = 0;
    for (uint32_t i = 0; i < slab->capacity; i += 64) {
        uint64_t own = slab->bits[i / 64], sent = 0;
        uint64_t carved = slab->carved <= i ? 0 : hak_mask(slab->carved - i);
        if (hak_remote_has_plane(superslab, hak_remote_plane(i / 64))) {
            sent = hak_load_relaxed(hak_remote_word(superslab, slab->unit, i / 64));
        }
        audit_expect(audit, ((own | sent) & ~carved) == 0, "SLAB-1", slab);
        audit_expect(audit, (own & sent) == 0, "SLAB-1", slab);
        count += hak_popcount(own) + hak_popcount(sent);
    }
    uint64_t waiting = hak_remote_waiting(superslab, slab->unit);
    audit_expect(audit, count == slab->free_count + waiting, "SLAB-1", slab);
    audit->free_blocks += slab->free_count;
}

static void audit_slab(hak_audit_t *audit, const hak_slab_t *slab, uint32_t entry) {
    const hak_sc_info_t *info = hak_sc_info_of_entry(entry);
    audit->slabs++;
    audit->purged_bytes += slab->purged_bytes;
    audit_expect(audit, slab->sc == hak_sc_of_entry(entry), "MAP-2", slab);
    audit_expect(audit, slab->block_bytes == info->bytes && slab->capacity == info->blocks,
                 "SLAB-2", slab);
    audit_expect(audit, slab->free_count <= slab->carved && slab->carved <= slab->capacity,
                 "SLAB-1", slab);
    audit_expect(audit, slab->carved_less_2 == hak_excess(slab->carved, 2), "SLAB-1", slab);
    uint32_t first_entry =
        slab->has_purged_pages ? (uint32_t)HAK_KIND_PURGED : slab->owner->first_entry;
    audit_expect(audit, hak_sc_entry(first_entry, slab->sc) == entry, "MAP-2", slab);
    bool has_blocks = slab->free_count != 0 || slab->carved < slab->capacity;
    if (slab->state == HAK_SLAB_CURRENT) {
        audit_expect(audit, slab->owner->current[slab->sc] == slab, "SLAB-4", slab);
    } else {
        audit_expect(audit, (slab->state == HAK_SLAB_FULL) == !has_blocks, "SLAB-4", slab);
        audit_expect(audit, slab->free_count < slab->carved, "SLAB-3", slab);
    }
    for (unsigned i = 0; i < slab->units; i++) {
        const char *unit = slab->base + (size_t)i * HAK_UNIT_BYTES;
        audit_expect(audit, hak_pagemap_get(hak_pagemap_base(), unit) == entry, "MAP-2", unit);
        audit_expect(audit, hak_slab_of(unit) == slab, "SLAB-5", unit);
    }
    audit_marked(audit, slab);
}

static void audit_superslab(hak_superslab_t *superslab, void *context) {
    hak_audit_t *audit = context;
    audit_expect(audit, hak_pagemap_superslab(superslab->base) == superslab, "MAP-1", superslab);
    uint64_t used = ~(superslab->free_units | superslab->leaving_units);
    audit_expect(audit, (superslab->padding_units & used) == 0, "SPAN-8", superslab);
    audit->unused_dirty_units += hak_popcount(superslab->free_units & ~superslab->clean_units);
    for (unsigned unit = 0; unit < HAK_SUPERSLAB_UNITS; unit++) {
        const char *address = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
        uint32_t entry = hak_pagemap_get(hak_pagemap_base(), address);
        bool is_free = (superslab->free_units >> unit & 1) != 0;
        audit_expect(audit, is_free == (entry == 0), "SPAN-1", address);
        if (hak_slab_is_entry(entry)) {
            const hak_slab_t *slab = (const hak_slab_t *)&superslab->unit[unit];
            if (superslab->units_to_first[unit] == 0) {
                audit_slab(audit, slab, entry);
            }
        }
    }
}

static bool is_empty_bin(const hak_bin_t *bin) {
    return bin->head == NULL && bin->slots_left == 0 && bin->size_reciprocal == 0;
}

/* A list of a tcache: `count` blocks of the class. */
static void audit_list(hak_audit_t *audit, void *const *head, size_t count, unsigned sc) {
    const void *block = *head;
    for (; block != NULL && count != 0; block = hak_link_get(block), count--) {
        uint32_t entry = hak_pagemap_get(hak_pagemap_base(), block);
        if (!hak_slab_is_entry(entry) || hak_sc_of_entry(entry) != sc ||
            !hak_slab_is_block(hak_slab_of(block), block)) {
            audit_expect(audit, false, "TCACHE-2", block);
            return;
        }
        audit->cached_blocks++;
    }
    audit_expect(audit, block == NULL && count == 0, "TCACHE-2", head);
}

/* TCACHE-7 */
static size_t audit_growth(hak_tcache_t *tcache, unsigned sc) {
    const hak_bin_side_t *side = hak_bin_side(tcache, sc);
    int32_t charge = hak_bin_charge(tcache, sc, side->capacity, side->want);
    return (size_t)charge * hak_sc_info[sc].bytes;
}

static bool audit_tcache(hak_tcache_t *tcache, void *context) {
    hak_audit_t *audit = context;
    size_t drawn = 0;
    if (hak_tcache_is_left(tcache) && tcache->changing != 0) {
        return true; /* its thread ended inside an operation */
    }
    for (unsigned sc = 0; sc < HAK_SC_COUNT && tcache->first_entry != 0; sc++) {
        const hak_bin_t *bin = &tcache->bin[sc];
        const hak_bin_side_t *side = hak_bin_side(tcache, sc);
        audit_expect(audit, side->total >= bin->slots_left, "TCACHE-3", bin);
        bool has_begun = (tcache->begun >> sc & 1) != 0;
        audit_expect(audit, has_begun == (side->want != 0), "TCACHE-8", side);
        audit_expect(audit, has_begun || (bin->head == NULL && bin->size_reciprocal == 0),
                     "TCACHE-8", bin);
        int64_t cached = side->total - bin->slots_left;
        audit_list(audit, &bin->head, cached < 0 ? 0 : (size_t)cached, sc);
        drawn += audit_growth(tcache, sc);
    }
    audit_expect(audit, is_empty_bin(&tcache->none), "TCACHE-9", tcache);
    for (unsigned i = 0; i < sizeof tcache->others / sizeof *tcache->others; i++) {
        audit_expect(audit, is_empty_bin(&tcache->others[i]), "TCACHE-9", tcache);
    }
    audit_expect(audit, drawn == tcache->drawn || !tcache->is_attached, "TCACHE-7", tcache);
    return true;
}

/* Each byte above the lowest level is the largest of its line, or promises more. */
static bool summary_adds_up(const hak_summary_t *summary) {
    size_t count = hak_span_state.capacity;
    for (unsigned level = 0; level < hak_summary_top(summary->size_log2);
         level++, count /= HAK_SUMMARY_LINE) {
        for (size_t i = 0; i < count / HAK_SUMMARY_LINE; i++) {
            const uint8_t *line = &summary->level[level][i * HAK_SUMMARY_LINE];
            uint8_t most = 0;
            for (unsigned place = 0; place < HAK_SUMMARY_LINE; place++) {
                most = line[place] > most ? line[place] : most;
            }
            if (summary->level[level + 1][i] < most) {
                return false;
            }
        }
    }
    return count <= HAK_SUMMARY_LINE;
}

/* SPAN-4: promises may be too large, but none is kept for another partition. */
static bool fit_is_true(uint32_t index, unsigned n) {
    const hak_superslab_t *superslab = hak_span_state.table[index];
    bool is_plain = superslab != NULL && hak_span_partition(superslab) == HAK_PARTITION_PLAIN;
    bool is_kept = n % HAK_SPAN_ALIGNS == 0 || (hak_span_state.alignments >> n & 1) != 0;
    unsigned stated = hak_summary_get(&hak_span_state.fit[n], index);
    uint64_t places = hak_fit_starts(n % HAK_SPAN_ALIGNS);
    return !is_kept ? stated == 0
           : superslab == NULL || is_plain != (n == HAK_SPAN_ALIGNS)
               ? true
               : stated >= hak_longest_run(superslab->free_units, places);
}

static bool dirty_is_true(uint32_t index) {
    const hak_superslab_t *superslab = hak_span_state.table[index];
    bool is_dirty = superslab != NULL && (superslab->free_units & ~superslab->clean_units) != 0;
    bool stated = hak_summary_get(&hak_span_state.dirty, index) != 0;
    return stated >= is_dirty;
}

const char *hak_audit_summaries(void) {
    const hak_span_state_t *state = &hak_span_state;
    bool does_fit = true, is_vacant = true, is_dirty = true;
    for (uint32_t i = 0; i < state->capacity; i++) {
        for (unsigned n = 0; n < HAK_SPAN_FITS; n++) {
            does_fit = does_fit && fit_is_true(i, n);
        }
        bool is_hole = i < state->end && state->table[i] == NULL;
        is_vacant = is_vacant && hak_summary_get(&state->vacant, i) == is_hole;
        is_dirty = is_dirty && dirty_is_true(i);
    }
    for (unsigned n = 0; n < HAK_SPAN_FITS && state->capacity != 0; n++) {
        does_fit = does_fit && summary_adds_up(&state->fit[n]);
    }
    is_vacant = is_vacant && (state->capacity == 0 || summary_adds_up(&state->vacant));
    is_dirty = is_dirty && (state->capacity == 0 || summary_adds_up(&state->dirty));
    return !does_fit ? "SPAN-4" : !is_vacant ? "SPAN-9" : !is_dirty ? "SPAN-10" : NULL;
}

bool hak_audit_walk(hak_audit_t *audit) {
    *audit = (hak_audit_t){0};
    hak_tcache_visit(audit_tcache, audit);
    hak_span_visit(audit_superslab, audit);
    hak_span_stats_t stats;
    hak_span_stats(&stats);
    audit_expect(audit, stats.unused_dirty_bytes == audit->unused_dirty_units * HAK_UNIT_BYTES,
                 "SPAN-3", NULL);
    const char *summaries = hak_audit_summaries();
    audit_expect(audit, summaries == NULL, summaries, &hak_span_state);
    audit_expect(audit, hak_load_relaxed(&hak_span_purged_bytes) == audit->purged_bytes, "SLAB-8",
                 NULL);
    return audit->broken == NULL;
}
