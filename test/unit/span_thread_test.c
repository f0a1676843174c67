/* SPDX-License-Identifier: MIT
 *
 * Spans taken, given back and purged by several threads at once. */
#include "unit/span.h"

enum { THREAD_THREADS = 4, ROUNDS = 400 };

static void *churn(void *context) {
    uint64_t seed = (uintptr_t)context;
    hak_span_t held[8];
    bool is_held[8] = {false};
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t random = hak_rng_next(&seed);
        hak_span_t *span = &held[random % 8];
        if (is_held[random % 8]) {
            unit_span_free(span, span->count);
        } else if (!hak_span_alloc(HAK_PARTITION_ANY, 1 + (random >> 8) % 20, HAK_UNIT_BYTES,
                                   (random >> 30 & 1) != 0 ? HAK_SPAN_DENSE : HAK_SPAN_SPARSE,
                                   span)) {
            return (void *)1;
        } else {
            memset(span->base, 1, 64);
        }
        is_held[random % 8] = !is_held[random % 8];
        if (random >> 60 == 0) {
            hak_span_purge(0);
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        if (is_held[i]) {
            unit_span_free(&held[i], held[i].count);
        }
    }
    return NULL;
}

UNIT_TEST(purge_beside_other_threads_loses_nothing) {
    pthread_t threads[THREAD_THREADS];
    void *result;
    unit_span_retain(2u * MIB, 10);
    hak_os_init();
    hak_knobs.huge_pages = true;
    hak_span_t pin = unit_span(64, HAK_UNIT_BYTES); /* enough in use for huge pages */
    hak_span_t other_pin = unit_span(64, HAK_UNIT_BYTES);
    for (uintptr_t i = 0; i < THREAD_THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    }
    for (unsigned i = 0; i < THREAD_THREADS; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    unit_span_free(&pin, 0);
    unit_span_free(&other_pin, 0);
    assert_int_equal(unit_span_check().in_use_bytes, 0);
    assert_true(hak_counters.huge_page_open > 0);
}
