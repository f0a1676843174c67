/* SPDX-License-Identifier: MIT
 *
 * Totals in both formats, taken while threads allocate, free to each other, come and go. Under
 * ThreadSanitizer, too. */
#include "base/atomics.h"
#include "unit/report.h"

enum { REPORTED_THREADS = 8, SLOTS = 512, ROUNDS = 40, LIVES = 4 };

static void *slot[SLOTS]; /* [atomic] */
static uint32_t is_over;  /* [atomic] */
static uint32_t started;  /* [atomic] threads */

static void *thread_work(void *context) {
    uint64_t seed = (uintptr_t)context;
    hak_add_relaxed(&started, 1);
    for (unsigned i = 0; hak_load_relaxed(&is_over) == 0 && i < 100000; i++) {
        uint64_t random = hak_rng_next(&seed);
        size_t size = random / SLOTS % (random % 16 == 0 ? 300000 : 500);
        void *block = hak_malloc(size);
        hak_free(__atomic_exchange_n(&slot[random % SLOTS], block, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

/* Each thread ends and another one begins, now and then. */
static void *live(void *context) {
    for (uintptr_t i = 1; i <= LIVES; i++) {
        unit_pthread_create_and_join(thread_work, (void *)((uintptr_t)context + i));
    }
    return NULL;
}

static void put_nowhere(void *context, const char *data, size_t length) {
    size_t *sum = context;
    assert_true(length != 0 && length <= 1024);
    assert_null(memchr(data, '\0', length));
    *sum += length;
}

UNIT_TEST(reports_are_taken_while_threads_work) {
    pthread_t thread[REPORTED_THREADS];
    size_t sum = 0;
    const hak_sink_t sink = {.put = put_nowhere, .context = &sum};
    hak_snapshot_t snapshot;
    for (uintptr_t i = 0; i < REPORTED_THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, live, (void *)(i * 1000)), 0);
    }
    while (hak_load_relaxed(&started) < REPORTED_THREADS) {
        sched_yield();
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        (i % 2 == 0 ? hak_stat_write_text : hak_stat_write_xml)(&sink);
        hak_stat_collect(&snapshot);
        assert_true(snapshot.live_bytes <= snapshot.mapped_bytes);
        assert_true(snapshot.slab_free_bytes <= snapshot.mapped_bytes);
    }
    hak_store_relaxed(&is_over, 1);
    unit_pthread_join_all(thread, REPORTED_THREADS);
    assert_true(sum > ROUNDS * 500);
    UNIT_FREE_ALL(slot, SLOTS);
    hak_malloc_trim(0);
    hak_stat_collect(&snapshot);
    assert_int_equal(snapshot.live_bytes + snapshot.large_bytes + snapshot.remote_bytes, 0);
}
