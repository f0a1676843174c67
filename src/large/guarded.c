/* SPDX-License-Identifier: MIT
 *
 * Guarded large blocks. What is held back keeps its memory, so it is little. */
#include "large/guarded.h"
#include "large/huge_quarantine.h"

#include "os/optional.h"

enum {
    GUARDED_MOST = 192,  /* blocks: their guards may hold memory, 24 MiB */
    GUARDED_FAULTS = 10, /* its calls cost as much (docs/experiments/0112) */
    GUARDED_FAULT_BYTES = 4096,
    HELD_MOST = 32,
    HELD_UNITS = 64,                            /* 4 MiB */
    GUARD_ENTRY = 1 << 8 | HAK_KIND_LARGE_BODY, /* of no block */
};

typedef struct guarded {
    hak_superslab_t *superslab;
    unsigned unit, count; /* of the block */
} guarded_t;

HAK_LOCKED_STATE HAK_LARGE_STATE(4) hak_hold_ring_t hak_guarded_holds;
HAK_LOCKED_STATE uint32_t hak_guarded_blocks; /* [atomic] those held back included */

static char *guarded_base(const guarded_t *it) {
    return it->superslab->base + (size_t)it->unit * HAK_UNIT_BYTES;
}

/* Pages that were inaccessible. */
static bool guarded_reveal(char *first, size_t bytes) {
    bool is_revealed = hak_os_commit(first, bytes);
    if (HAK_MTE && is_revealed) {
        hak_os_tags_allow(first, bytes);
    }
    return is_revealed;
}

/* The span's pages, all accessible again; guards were not written to. */
static void guarded_release(const guarded_t *it) {
    hak_span_free(it->superslab, it->unit - 1, 1, 0);
    hak_span_free(it->superslab, it->unit + it->count, 1, 0);
    hak_span_free(it->superslab, it->unit, it->count, it->count);
    hak_add_relaxed(&hak_guarded_blocks, (uint32_t)-1);
}

/* Units of a span, written to or not. What the kernel keeps inaccessible stays in the span, without
 * memory, and there are no further guards: a filter may forbid them by now. */
static void units_release(hak_superslab_t *superslab, unsigned unit, unsigned count,
                          unsigned touched) {
    char *base = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
    if (guarded_reveal(base, (size_t)count * HAK_UNIT_BYTES)) {
        hak_span_free(superslab, unit, count, touched);
    } else {
        (void)hak_os_purge(base, (size_t)count * HAK_UNIT_BYTES);
        hak_huge_quarantine_end_guards();
    }
}

static void guarded_end(const guarded_t *it, bool is_held) {
    char *first = guarded_base(it) - HAK_UNIT_BYTES;
    size_t bytes = (size_t)(it->count + 2) * HAK_UNIT_BYTES;
    if (guarded_reveal(first, bytes)) {
        guarded_release(it);
        return;
    }
    units_release(it->superslab, it->unit - 1, 1, 0);
    units_release(it->superslab, it->unit + it->count, 1, 0);
    if (is_held) {
        units_release(it->superslab, it->unit, it->count, it->count);
    } else {
        hak_span_free(it->superslab, it->unit, it->count, it->count);
    }
}

/* No data of earlier blocks, as the budget allows. */
static bool guarded_clear(const guarded_t *it) {
    size_t bytes = (size_t)it->count * HAK_UNIT_BYTES;
    if (!hak_huge_quarantine_pay(bytes / GUARDED_FAULT_BYTES, false) ||
        !hak_os_purge(guarded_base(it), bytes)) {
        return false;
    }
    hak_span_note_purged(it->superslab, hak_mask(it->count) << it->unit);
    return true;
}

static bool guarded_conceal(char *base, size_t bytes) {
    bool is_concealed = hak_os_conceal(base, bytes);
    if (!is_concealed) {
        hak_huge_quarantine_end_guards();
    }
    return is_concealed;
}

/* Guards split what could be a huge page. */
bool hak_guarded_alloc(hak_partition_t partition, unsigned count, hak_span_t *span) {
    if (!hak_huge_quarantine_has_guards() ||
        hak_load_relaxed(&hak_guarded_blocks) >= GUARDED_MOST ||
        !hak_huge_quarantine_pay(GUARDED_FAULTS, true) ||
        !hak_span_alloc(partition, count + 2, HAK_UNIT_BYTES, HAK_SPAN_SPARSE, span)) {
        return false;
    }
    guarded_t it = {span->superslab, span->unit + 1, count};
    char *first = span->base, *last = guarded_base(&it) + (size_t)count * HAK_UNIT_BYTES;
    hak_add_relaxed(&hak_guarded_blocks, 1);
    if (!guarded_conceal(first, HAK_UNIT_BYTES)) {
        guarded_release(&it);
        return false;
    }
    if (!guarded_conceal(last, HAK_UNIT_BYTES)) {
        guarded_end(&it, false);
        return false;
    }
    hak_pagemap_set_units(first, 1, GUARD_ENTRY);
    hak_pagemap_set_units(last, 1, GUARD_ENTRY);
    span->base = guarded_base(&it);
    span->unit = it.unit;
    span->count = count;
    span->is_zero = span->is_zero || guarded_clear(&it);
    return true;
}

/* --- held back -------------------------------------------------------------------------------- */

static void held_end(const hak_hold_t *hold) {
    hak_superslab_t *superslab = hak_pagemap_superslab(hold->base);
    size_t unit = (size_t)(hold->base - superslab->base) / HAK_UNIT_BYTES;
    guarded_t it = {superslab, (unsigned)unit, (unsigned)(hold->bytes / HAK_UNIT_BYTES)};
    guarded_end(&it, true);
}

void hak_guarded_free(hak_superslab_t *superslab, unsigned unit, unsigned count) {
    guarded_t it = {superslab, unit, count};
    char *base = guarded_base(&it);
    hak_pagemap_set_units(base - HAK_UNIT_BYTES, count + 2, 0);
    hak_hold_t hold = {.base = base, .bytes = (size_t)count * HAK_UNIT_BYTES};
    bool is_held = hak_huge_quarantine_has_guards() && guarded_conceal(base, hold.bytes);
    if (is_held) {
        size_t most_bytes = (size_t)(HELD_UNITS - count) * HAK_UNIT_BYTES;
        hak_hold_trim(&hak_guarded_holds, HELD_MOST - 1, most_bytes, held_end);
    }
    if (!is_held || !hak_hold_push(&hak_guarded_holds, hold)) {
        guarded_end(&it, is_held);
    }
}

bool hak_guarded_grow(hak_superslab_t *superslab, unsigned unit, unsigned count, unsigned wanted) {
    char *block = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
    char *guard = block + (size_t)count * HAK_UNIT_BYTES;
    char *next = block + (size_t)wanted * HAK_UNIT_BYTES;
    if (!hak_span_extend(superslab, unit, count + 1, wanted + 1)) {
        return false;
    }
    if (!guarded_conceal(next, HAK_UNIT_BYTES)) {
        hak_span_free(superslab, unit + count + 1, wanted - count, 0);
        return false;
    }
    if (!guarded_reveal(guard, HAK_UNIT_BYTES)) {
        if (wanted - count > 1) {
            hak_span_free(superslab, unit + count + 1, wanted - count - 1, 0);
        }
        units_release(superslab, unit + wanted, 1, 0);
        return false;
    }
    hak_pagemap_set_units(next, 1, GUARD_ENTRY);
    return true;
}

bool hak_guarded_flush(void) {
    return hak_hold_trim(&hak_guarded_holds, 0, 0, held_end);
}
