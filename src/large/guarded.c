/* SPDX-License-Identifier: MIT
 *
 * Guarded large blocks. What is held back keeps its memory, so it is little: a ring, the oldest of
 * which leaves when it is full. */
#include "large/guarded.h"
#include "large/huge_quarantine.h"

#include "base/knobs.h"
#include "os/lock.h"
#include "os/optional.h"

enum {
    GUARDED_MOST = 192,  /* blocks: their guards may hold memory, 24 MiB */
    GUARDED_FAULTS = 10, /* its calls cost as much (docs/experiments/0112) */
    GUARDED_FAULT_BYTES = 4096,
    RING_SLOTS = 32,
    RING_UNITS = 64,                            /* 4 MiB */
    GUARD_ENTRY = 1 << 8 | HAK_KIND_LARGE_BODY, /* of no block */
};

typedef struct guarded {
    hak_superslab_t *superslab;
    unsigned unit, count; /* of the block */
} guarded_t;

HAK_LOCKED_STATE HAK_LARGE_STATE(4) struct guarded_ring {
    uint32_t first, count;      /* [lock HUGE] of the ring */
    uint32_t units;             /* [lock HUGE] of all */
    uint32_t blocks;            /* [atomic] guarded ones, those held back included */
    guarded_t slot[RING_SLOTS]; /* [lock HUGE] */
} hak_guarded_ring;

static char *guarded_base(const guarded_t *it) {
    return it->superslab->base + (size_t)it->unit * HAK_UNIT_BYTES;
}

/* The span's pages, all accessible again; guards were not written to. */
static void guarded_release(const guarded_t *it) {
    hak_span_free(it->superslab, it->unit - 1, 1, 0);
    hak_span_free(it->superslab, it->unit + it->count, 1, 0);
    hak_span_free(it->superslab, it->unit, it->count, it->count);
    hak_add_relaxed(&hak_guarded_ring.blocks, (uint32_t)-1);
}

/* Units of a span, written to or not. What the kernel keeps inaccessible stays in the span, without
 * memory, and there are no further guards: a filter may forbid them by now. */
static void units_release(hak_superslab_t *superslab, unsigned unit, unsigned count,
                          unsigned touched) {
    char *base = superslab->base + (size_t)unit * HAK_UNIT_BYTES;
    if (hak_os_commit(base, (size_t)count * HAK_UNIT_BYTES)) {
        hak_span_free(superslab, unit, count, touched);
    } else {
        (void)hak_os_purge(base, (size_t)count * HAK_UNIT_BYTES);
        hak_huge_quarantine_end_guards();
    }
}

static void guarded_end(const guarded_t *it, bool is_held) {
    char *first = guarded_base(it) - HAK_UNIT_BYTES;
    size_t bytes = (size_t)(it->count + 2) * HAK_UNIT_BYTES;
    if (hak_os_commit(first, bytes)) {
        if (HAK_MTE) {
            hak_os_tags_allow(first, bytes);
        }
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

/* Near a limit what is held back, and the guards' own memory, would be missed. */
static bool guards_may_be(void) {
    return hak_huge_quarantine_has_guards() && !hak_load_relaxed(&hak_knobs.is_tight);
}

/* Guards split what could be a huge page. */
bool hak_guarded_alloc(hak_partition_t partition, unsigned count, hak_span_t *span) {
    if (!guards_may_be() || hak_load_relaxed(&hak_guarded_ring.blocks) >= GUARDED_MOST ||
        !hak_huge_quarantine_pay(GUARDED_FAULTS, true) ||
        !hak_span_alloc(partition, count + 2, HAK_UNIT_BYTES, HAK_SPAN_SPARSE, span)) {
        return false;
    }
    guarded_t it = {span->superslab, span->unit + 1, count};
    char *first = span->base, *last = guarded_base(&it) + (size_t)count * HAK_UNIT_BYTES;
    hak_add_relaxed(&hak_guarded_ring.blocks, 1);
    if (!guarded_conceal(first, HAK_UNIT_BYTES)) {
        guarded_release(&it);
        return false;
    }
    if (!guarded_conceal(last, HAK_UNIT_BYTES)) {
        guarded_end(&it, false);
        return false;
    }
    hak_pagemap_set(first, 1, GUARD_ENTRY);
    hak_pagemap_set(last, 1, GUARD_ENTRY);
    span->base = guarded_base(&it);
    span->unit = it.unit;
    span->count = count;
    span->is_zero = span->is_zero || guarded_clear(&it);
    return true;
}

/* --- held back -------------------------------------------------------------------------------- */

/* The oldest, if the ring has more blocks or units. */
static bool ring_pop(uint32_t most, uint32_t most_units, guarded_t *oldest) {
    struct guarded_ring *ring = &hak_guarded_ring;
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool is_over = ring->count > most || (ring->count != 0 && ring->units > most_units);
    if (is_over) {
        *oldest = ring->slot[ring->first];
        ring->first = (ring->first + 1) % RING_SLOTS;
        ring->count--;
        ring->units -= oldest->count;
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return is_over;
}

static bool ring_trim(uint32_t most, uint32_t most_units) {
    guarded_t oldest;
    bool is_any = false;
    while (ring_pop(most, most_units, &oldest)) {
        guarded_end(&oldest, true);
        is_any = true;
    }
    return is_any;
}

static bool ring_push(const guarded_t *it) {
    struct guarded_ring *ring = &hak_guarded_ring;
    hak_lock_acquire(HAK_LOCK_HUGE);
    bool has_slot = ring->count < RING_SLOTS; /* unless many threads came at once */
    if (has_slot) {
        ring->slot[(ring->first + ring->count) % RING_SLOTS] = *it;
        ring->count++;
        ring->units += it->count;
    }
    hak_lock_release(HAK_LOCK_HUGE);
    return has_slot;
}

void hak_guarded_free(hak_superslab_t *superslab, unsigned unit, unsigned count) {
    guarded_t it = {superslab, unit, count};
    char *base = guarded_base(&it);
    hak_pagemap_set(base - HAK_UNIT_BYTES, count + 2, 0);
    bool is_held = guards_may_be() && guarded_conceal(base, (size_t)count * HAK_UNIT_BYTES);
    if (is_held) {
        ring_trim(RING_SLOTS - 1, RING_UNITS - count);
    }
    if (!is_held || !ring_push(&it)) {
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
    if (!hak_os_commit(guard, HAK_UNIT_BYTES)) {
        if (wanted - count > 1) {
            hak_span_free(superslab, unit + count + 1, wanted - count - 1, 0);
        }
        units_release(superslab, unit + wanted, 1, 0);
        return false;
    }
    hak_pagemap_set(next, 1, GUARD_ENTRY);
    return true;
}

bool hak_guarded_flush(void) {
    return ring_trim(0, 0);
}
