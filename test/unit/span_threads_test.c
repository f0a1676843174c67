/* SPDX-License-Identifier: MIT
 *
 * Threads that take, grow and give units of the same superslabs, while another one purges: no unit
 * is in two spans, what is called zero is, and at rest all adds up (SPAN-1 to SPAN-10). */
#include "unit/span.h"

#include <stdatomic.h>

enum { TAKERS = 3, TAKER_SPANS = 24, TAKER_STEPS = 6000 };

static atomic_bool purge_stops;

static void *purge_often(void *context) {
    for (unsigned round = 0; !atomic_load(&purge_stops); round++) {
        hak_span_purge(round % 4 == 0 ? 0 : (size_t)8 << 20);
    }
    return context;
}

/* The first word of each unit; of other units it is left as it was. */
static void mark(const hak_span_t *span, unsigned from, uint64_t value) {
    for (unsigned unit = from; unit < span->count; unit++) {
        *(uint64_t *)(span->base + (size_t)unit * HAK_UNIT_BYTES) = value;
    }
}

static bool is_marked(const hak_span_t *span, uint64_t value) {
    bool is_same = true;
    for (unsigned unit = 0; unit < span->count; unit++) {
        is_same = is_same && *(uint64_t *)(span->base + (size_t)unit * HAK_UNIT_BYTES) == value;
    }
    return is_same;
}

/* Returns its context if all was right. */
static void *take_and_give(void *context) {
    hak_span_t held[TAKER_SPANS];
    unsigned count = 0;
    uint64_t name = (uint64_t)(uintptr_t)context, seed = name;
    for (unsigned step = 0; step < TAKER_STEPS; step++) {
        uint64_t random = hak_rng_next(&seed);
        unsigned which = count == 0 ? 0 : (unsigned)(random >> 8) % count;
        hak_span_t *span = &held[which];
        if (count < TAKER_SPANS && random % 2 == 0) {
            unsigned units = 1 + (unsigned)(random >> 16) % (random % 3 == 0 ? 16 : 2);
            hak_dense_t *use = random % 5 == 0 ? HAK_SPAN_DENSE : HAK_SPAN_SPARSE;
            size_t align = (size_t)HAK_UNIT_BYTES << (random % 64 == 0);
            span = &held[count++];
            if (!hak_span_alloc(HAK_PARTITION_ANY, units, align, use, span) ||
                (span->is_zero && !is_marked(span, 0))) {
                return NULL;
            }
            mark(span, 0, name);
        } else if (count != 0 && random % 16 == 1) {
            bool is_more =
                hak_span_extend(span->superslab, span->unit, span->count, span->count + 1);
            span->count += is_more;
            mark(span, span->count - is_more, name);
        } else if (count != 0) {
            if (!is_marked(span, name)) {
                return NULL;
            }
            hak_span_free(span->superslab, span->unit, span->count, span->count);
            held[which] = held[--count];
        }
    }
    for (unsigned i = 0; i < count; i++) {
        hak_span_free(held[i].superslab, held[i].unit, held[i].count, held[i].count);
    }
    return context;
}

SPAN_TEST(units_that_threads_take_at_once_are_in_one_span) {
    pthread_t purger, taker[TAKERS];
    atomic_store(&purge_stops, false);
    assert_int_equal(pthread_create(&purger, NULL, purge_often, NULL), 0);
    for (uintptr_t i = 0; i < TAKERS; i++) {
        assert_int_equal(pthread_create(&taker[i], NULL, take_and_give, (void *)(i + 1)), 0);
    }
    for (uintptr_t i = 0; i < TAKERS; i++) {
        void *name;
        pthread_join(taker[i], &name);
        assert_ptr_equal(name, (void *)(i + 1));
    }
    atomic_store(&purge_stops, true);
    pthread_join(purger, NULL);
    assert_int_equal(unit_span_check().in_use_bytes, 0);
}
