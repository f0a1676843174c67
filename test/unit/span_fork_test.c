/* SPDX-License-Identifier: MIT
 *
 * A fork while another thread purges: units on their way to the kernel are unused in the child. */
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

UNIT_TEST(units_being_purged_are_unused_in_the_child) {
    pthread_t thread;
    void *failed;
    if (unit_is_emulated()) {
        skip();
    }
    hak_free(hak_malloc(1)); /* the process begins: fork is known about */
    unit_span_retain((size_t)1 << 40, 0);
    assert_int_equal(pthread_create(&thread, NULL, purge, &stop), 0);
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
    unit_span_check();
}
