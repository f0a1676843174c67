/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of span/: what the invariants of span.h say about the whole state. */
#ifndef HAK_TEST_UNIT_SPAN_H
#define HAK_TEST_UNIT_SPAN_H

#include "base/counters.h"
#include "base/knobs.h"
#include "double/audit.h"
#include "double/os_fault.h"
#include "os/optional.h"
#include "os/os.h"
#include "reclaim/reclaim.h"
#include "span/pagemap.h"
#include "span/span.h"
#include "span/span_state.h"
#include "unit/unit.h"

typedef struct unit_span_sums {
    size_t superslabs, whole_superslabs, used_units, unused_dirty_units, huge_pages;
} unit_span_sums_t;

static inline void unit_span_sum(hak_superslab_t *superslab, void *context) {
    unit_span_sums_t *sums = context;
    sums->superslabs++;
    sums->whole_superslabs += superslab->free_units == ~0ull;
    sums->used_units += hak_popcount(~superslab->free_units);
    sums->unused_dirty_units += hak_popcount(superslab->free_units & ~superslab->clean_units);
    sums->huge_pages += hak_popcount(superslab->huge_pages);
    for (unsigned i = 0; i < HAK_SUPERSLAB_HUGE_PAGES; i++) { /* SPAN-6 */
        uint64_t range = hak_span_huge_page(i);
        assert_true((superslab->huge_pages >> i & 1) == 0 ||
                    (superslab->clean_units & range) == 0 ||
                    (superslab->clean_units & superslab->free_units & range) == range);
    }
    assert_ptr_equal(hak_pagemap_superslab(superslab->base), superslab);
    assert_int_equal((uintptr_t)superslab->base % HAK_SUPERSLAB_BYTES, 0);
}

/* SPAN-1, SPAN-3, SPAN-4, SPAN-6, SPAN-7, SPAN-9, SPAN-10: the totals equal the sums over all
 * superslabs. Only at rest. */
static inline hak_span_stats_t unit_span_check(void) {
    unit_span_sums_t sums = {0};
    hak_span_stats_t stats;
    hak_span_visit(unit_span_sum, &sums);
    hak_span_stats(&stats);
    assert_null(hak_audit_summaries());
    assert_int_equal(stats.superslab_count, sums.superslabs);
    assert_int_equal(hak_span_state.whole_count, sums.whole_superslabs);
    assert_int_equal(hak_span_state.huge_page_count, sums.huge_pages);
    assert_int_equal(stats.mapped_bytes, sums.superslabs * HAK_SUPERSLAB_BYTES);
    assert_int_equal(stats.in_use_bytes, sums.used_units * HAK_UNIT_BYTES);
    assert_int_equal(stats.unused_dirty_bytes, sums.unused_dirty_units * HAK_UNIT_BYTES);
    assert_in_range(hak_span_unused(hak_span_counts()), hak_span_state.low_units, /* SPAN-7 */
                    hak_span_state.high_units);
    return stats;
}

/* Sets a byte of a summary. */
static inline void unit_summary_set(hak_summary_t *summary, uint32_t place, unsigned value) {
    if (value > hak_summary_get(summary, place)) {
        hak_summary_raise(summary, place, value);
    } else {
        (void)hak_summary_lower(summary, place, value);
    }
}

/* Nothing is purged unless the test asks for it, nothing decays, and nothing is learned. */
static inline void unit_span_retain(size_t least_bytes, size_t percent) {
    hak_knobs.retain_min_bytes = least_bytes;
    hak_knobs.retain_percent = percent;
    hak_knobs.learn = 0;
    hak_knobs.retain_learned_percent = 0;
    hak_knobs.retain_idle_bytes = (size_t)1 << 40;
}

static inline void unit_span_free(const hak_span_t *span, unsigned touched) {
    hak_span_free(span->superslab, span->unit, span->count, touched);
    hak_reclaim_serve(NULL); /* as the front does */
}

static inline void unit_span_free_all(const hak_span_t *spans, unsigned count, unsigned touched) {
    for (unsigned i = 0; i < count; i++) {
        unit_span_free(&spans[i], touched);
    }
}

static struct unit_span_left {
    hak_superslab_t *superslab[8192];
    unsigned count;
} unit_span_left;

static inline void unit_span_note_left(hak_superslab_t *superslab, void *unused) {
    (void)unused;
    if (superslab->free_units != ~0ull) {
        assert_true(unit_span_left.count < UNIT_COUNT(unit_span_left.superslab));
        unit_span_left.superslab[unit_span_left.count++] = superslab;
    }
}

/* Teardown: what the test left in use is freed, and all goes back. */
UNIT_AROUND(unit_span_end) {
    hak_os_fault_clear();
    unit_span_retain((size_t)1 << 40, 0); /* no superslab goes meanwhile */
    unit_span_left.count = 0;
    hak_span_visit(unit_span_note_left, NULL);
    for (unsigned i = 0; i < unit_span_left.count; i++) {
        hak_superslab_t *superslab = unit_span_left.superslab[i];
        for (uint64_t used = ~superslab->free_units; used != 0; used = ~superslab->free_units) {
            unsigned unit = hak_ctz(used), count = hak_run_around(used, unit);
            unit_span_free(&(hak_span_t){.superslab = superslab, .unit = unit, .count = count},
                           count);
        }
    }
    hak_span_purge(0);
    hak_span_stats_t stats = unit_span_check();
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.superslab_count, 0);
    return 0;
}

static inline hak_span_t unit_span(unsigned count, size_t align) {
    hak_span_t span = {0};
    UNIT_EXPECT(hak_span_alloc(HAK_PARTITION_ANY, count, align, HAK_SPAN_SPARSE, &span),
                "%u units at %zu", count, align);
    assert_int_equal(span.count, count);
    assert_int_equal((uintptr_t)span.base % align, 0);
    assert_int_equal((uintptr_t)span.base % HAK_UNIT_BYTES, 0);
    assert_ptr_equal(span.base, span.superslab->base + (size_t)span.unit * HAK_UNIT_BYTES);
    assert_true(span.unit + count <= HAK_SUPERSLAB_UNITS);
    assert_ptr_equal(hak_pagemap_superslab(span.base), span.superslab);
    return span;
}

/* One byte of every OS page, and the last: enough to see what the kernel gave. */
static inline bool unit_span_reads_zero(const char *base, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 4096) {
        if (base[at] != 0 || base[at + 4095] != 0) {
            return false;
        }
    }
    return true;
}

/* Setup: nothing fails, nothing is purged unasked. */
UNIT_AROUND(unit_span_begin) {
    hak_os_init();
    hak_os_fault_clear();
    unit_span_retain((size_t)1 << 40, 0);
    return 0;
}

/* A span that was written to. */
static inline hak_span_t unit_span_dirty(unsigned count) {
    hak_span_t span = unit_span(count, HAK_UNIT_BYTES);
    memset(span.base, 0xee, (size_t)count * HAK_UNIT_BYTES);
    return span;
}

#define SPAN_TEST(name) UNIT_TEST_WITH(name, unit_span_begin, unit_span_end)

#endif
