/* SPDX-License-Identifier: MIT
 *
 * The kernel refuses mappings: a request that no reclaim can serve leaves all caches alone, and one
 * that it refused is not asked for again at every refill. */
#include "base/atomics.h"
#include "double/os_fault.h"
#include "large/large.h"
#include "reclaim/reclaim.h"
#include "unit/front.h"

#include <errno.h>

enum {
    CACHED_BYTES = 3 * MIB,
    SMALL_BYTES = 3000,
    FILLERS = 4096,
    ROUNDS = 1000,
    ASKED_MOST = 100, /* of ROUNDS requests */
};
static const size_t HOPELESS_BYTES = (size_t)1 << 46;

static void *fillers[FILLERS];
static unsigned filler_count;

static size_t refused_cached(void) {
    hak_large_stats_t stats;
    hak_large_stats(&stats);
    return stats.huge_cached_bytes;
}

static size_t superslabs(void) {
    hak_span_stats_t stats;
    hak_span_stats(&stats);
    return stats.superslab_count;
}

static void cache_fill(void) {
    hak_free(memset(unit_malloc(CACHED_BYTES), 1, CACHED_BYTES - HAK_CANARY_BYTES));
    assert_true(refused_cached() >= CACHED_BYTES);
}

UNIT_TEST(request_that_reclaim_cannot_serve_leaves_the_caches_alone) {
    hak_tcache_t *tcache = self();
    unsigned sc = hak_sc_of(SMALL_BYTES);
    cache_fill();
    hak_free(unit_malloc(SMALL_BYTES));
    void *head = tcache->bin[sc].head;
    assert_non_null(head);
    size_t before = refused_cached(), superslabs_before = superslabs();
    uint64_t oom = tcache->counters.oom;
    errno = 0;
    assert_null(unit_malloc(HOPELESS_BYTES));
    assert_int_equal(errno, ENOMEM);
    assert_null(hak_aligned_alloc(MIB, HOPELESS_BYTES));
    assert_int_equal(tcache->counters.oom, oom + 2);
    assert_int_equal(refused_cached(), before);
    assert_int_equal(superslabs(), superslabs_before);
    assert_ptr_equal(tcache->bin[sc].head, head);
    hak_reclaim_trim(0);
    audit();
}

/* Until nothing but a cached mapping is left, which no superslab fits into. */
static void memory_fill(void) {
    hak_free(unit_malloc(SMALL_BYTES)); /* the thread's first blocks */
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, UINT64_MAX);
    while (filler_count < FILLERS && (fillers[filler_count] = unit_malloc(MIB / 2)) != NULL) {
        filler_count++;
    }
    while (filler_count < FILLERS && (fillers[filler_count] = unit_malloc(SMALL_BYTES)) != NULL) {
        filler_count++;
    }
    assert_in_range(filler_count, 1, FILLERS - 1);
}

static void memory_empty(void) {
    hak_os_fault_clear();
    while (filler_count > 0) {
        hak_free(fillers[--filler_count]);
    }
    hak_reclaim_trim(0);
    audit();
}

static uint64_t asked(void) {
    return hak_os_fault_calls(HAK_OS_CALL_MAP);
}

UNIT_TEST(superslab_that_was_refused_is_not_asked_for_at_every_refill) {
    hak_reclaim_trim(0);
    void *large = unit_malloc(CACHED_BYTES);
    assert_non_null(large);
    memory_fill();
    hak_free(large);
    for (unsigned i = 0; i < ROUNDS; i++) { /* refusals in a row */
        hak_free(unit_malloc(SMALL_BYTES));
    }
    uint64_t before = asked();
    for (unsigned i = 0; i < ROUNDS; i++) {
        void *block = unit_malloc(SMALL_BYTES);
        assert_non_null(block);
        hak_free(block);
    }
    assert_in_range(asked() - before, 1, ASKED_MOST);
    memory_empty();
}

/* The kernel may have room again: at once after an unmapping, soon in any case. */
UNIT_TEST(superslab_that_was_refused_is_asked_for_after_an_unmapping) {
    hak_span_t span;
    void *range = hak_os_map(MIB, MIB);
    memory_fill();
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_false(hak_span_alloc(HAK_PARTITION_ANY, HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES,
                                    HAK_SPAN_SPARSE, &span));
    }
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 0);
    assert_true(hak_os_unmap(range, MIB));
    assert_true(hak_span_alloc(HAK_PARTITION_ANY, HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES,
                               HAK_SPAN_SPARSE, &span));
    hak_span_free(span.superslab, span.unit, span.count, 0);
    memory_empty();
}

UNIT_TEST(superslab_that_was_refused_is_asked_for_again_soon) {
    enum { SKIPPED_MOST = 64 };
    hak_span_t span;
    unsigned skipped = 0;
    memory_fill();
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_false(hak_span_alloc(HAK_PARTITION_ANY, HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES,
                                    HAK_SPAN_SPARSE, &span));
    }
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 0);
    while (!hak_span_alloc(HAK_PARTITION_ANY, HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES, HAK_SPAN_SPARSE,
                           &span)) {
        assert_true(hak_span_is_refused);
        assert_in_range(++skipped, 1, SKIPPED_MOST);
    }
    assert_false(hak_span_is_refused);
    hak_span_free(span.superslab, span.unit, span.count, 0);
    memory_empty();
}

/* 4 MiB are wanted, 3 of them cached: no other call of the kernel fails. */
UNIT_TEST(request_that_reclaim_can_serve_takes_the_caches) {
    cache_fill();
    size_t before = refused_cached();
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1);
    void *block = unit_malloc(before + MIB);
    assert_non_null(block);
    hak_os_fault_clear();
    hak_free(block);
    hak_reclaim_trim(0);
    audit();
}
