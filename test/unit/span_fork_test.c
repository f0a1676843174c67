/* SPDX-License-Identifier: MIT
 *
 * A fork while other threads purge and take: units on their way to the kernel are unused in the
 * child, and all are counted anew. */
#include "hakmem/hakmem.h"
#include "unit/span.h"

#include <stdatomic.h>

enum { FORKS = 200, FORK_SPANS = 4, FORK_SPAN_UNITS = 60 };

static atomic_bool stop;

static void *purge(void *context) {
    hak_span_t spans[FORK_SPANS];
    for (unsigned round = 0; !atomic_load(&stop); round++) {
        for (unsigned i = 0; i < FORK_SPANS; i++) {
            if (!hak_span_alloc(HAK_PARTITION_ANY, FORK_SPAN_UNITS, HAK_UNIT_BYTES, HAK_SPAN_SPARSE,
                                &spans[i])) {
                return context;
            }
            memset(spans[i].base, 1, (size_t)FORK_SPAN_UNITS * HAK_UNIT_BYTES);
        }
        unit_span_free_all(spans, FORK_SPANS, FORK_SPAN_UNITS);
        hak_span_purge(round % 2 * HAK_UNIT_BYTES); /* purged, or unmapped */
    }
    return NULL;
}

/* Most of it between a change of units and its counts, promises and zeros. */
static void *take_one_by_one(void *context) {
    for (hak_span_t span; !atomic_load(&stop);) {
        if (!hak_span_alloc(HAK_PARTITION_ANY, 1, HAK_UNIT_BYTES, HAK_SPAN_SPARSE, &span)) {
            return context;
        }
        span.base[0] = 1;
        unit_span_free(&span, 1);
    }
    return NULL;
}

/* No more than there is: a search that is promised more writes to the record, and so copies its OS
 * page. */
static void expect_exact(hak_superslab_t *superslab, void *context) {
    uint32_t index = superslab->index;
    assert_ptr_equal(context, NULL);
    assert_int_equal(hak_summary_get(&hak_span_state.fit[0], index),
                     hak_longest_run(superslab->free_units, ~0ull));
    assert_int_equal(hak_summary_get(&hak_span_state.dirty, index),
                     (superslab->free_units & ~superslab->clean_units) != 0);
}

UNIT_TEST(fork_at_rest_promises_no_more_than_there_is) {
    hak_free(hak_malloc(1));
    unit_span_retain((size_t)1 << 40, 0);
    hak_span_t large = unit_span(FORK_SPAN_UNITS, HAK_UNIT_BYTES);
    hak_span_t rest = unit_span(HAK_SUPERSLAB_UNITS, HAK_UNIT_BYTES); /* promises are lowered */
    hak_span_purge(0);
    for (unsigned i = 0; i < 2; i++) { /* once as a purge leaves it, once in a child */
        pid_t child = i == 0 ? 0 : fork();
        if (child == 0) {
            hak_span_visit(expect_exact, NULL);
        }
        if (child == 0 && i != 0) {
            _exit(0);
        }
        assert_int_equal(i == 0 ? 0 : unit_wait(child), 0);
    }
    unit_span_free(&large, FORK_SPAN_UNITS);
    unit_span_free(&rest, HAK_SUPERSLAB_UNITS);
    hak_span_purge(0);
}

UNIT_TEST(units_being_purged_are_unused_in_the_child) {
    pthread_t thread, taker;
    void *failed;
    if (unit_is_emulated()) {
        skip();
    }
    hak_free(hak_malloc(1)); /* the process begins: fork is known about */
    unit_span_retain((size_t)1 << 40, 0);
    assert_int_equal(pthread_create(&thread, NULL, purge, &stop), 0);
    assert_int_equal(pthread_create(&taker, NULL, take_one_by_one, &stop), 0);
    for (unsigned i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            unit_span_check();
            _exit(0);
        }
        assert_int_equal(unit_wait(child), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, &failed);
    assert_null(failed);
    pthread_join(taker, &failed);
    assert_null(failed);
    unit_span_check();
}
