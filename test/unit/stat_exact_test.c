/* SPDX-License-Identifier: MIT
 *
 * Several threads at rest, with blocks in bins, remote lists and in the program's hands:
 * every byte of every superslab is accounted for, once, and what the program holds is what the test
 * knows it holds. */
#include "double/audit.h"
#include "front/event.h"
#include "front/flush.h"
#include "unit/report.h"

enum { EXACT_THREADS = 6, BLOCKS = 3000, STEPS = 20000, MOST = 100000 };

static struct worker {
    void *block[BLOCKS];
    uint32_t size[BLOCKS];
} worker[EXACT_THREADS];

extern uint32_t hak_owner_count;

static pthread_barrier_t barrier, pair;
static obs_snapshot_t shot;

static void replace(struct worker *of, unsigned i, uint64_t *seed) {
    hak_free(of->block[i]);
    uint64_t random = hak_rng_next(seed);
    of->size[i] = (uint32_t)(random / 4 % (random % 8 == 0 ? MOST : 600));
    of->block[i] = random / 8 % 3 == 0 ? NULL : hak_malloc(of->size[i]);
}

/* First its own blocks, then those of its neighbour, which another thread allocated. */
static void *exact_work(void *context) {
    unsigned number = (unsigned)(uintptr_t)context;
    uint64_t seed = number + 1;
    for (unsigned i = 0; i < STEPS; i++) {
        replace(&worker[number], (unsigned)(hak_rng_next(&seed) % BLOCKS), &seed);
    }
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < STEPS / 10; i++) {
        replace(&worker[(number + 1) % EXACT_THREADS], (unsigned)(hak_rng_next(&seed) % BLOCKS),
                &seed);
    }
    if (number % 2 == 0) {
        hak_tcache_flush(hak_tcache_self(hak_pagemap_base())); /* to remote lists */
    }
    pthread_barrier_wait(&barrier); /* at rest */
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Blocks the test holds, by class; HAK_SC_COUNT: large ones, in units. */
static void count_held(uint64_t held[HAK_SC_COUNT + 1]) {
    memset(held, 0, (HAK_SC_COUNT + 1) * sizeof *held);
    for (unsigned i = 0; i < EXACT_THREADS * BLOCKS; i++) {
        uint32_t size = worker[i / BLOCKS].size[i % BLOCKS];
        if (worker[i / BLOCKS].block[i % BLOCKS] == NULL) {
            continue;
        }
        if (size <= HAK_SC_MAX_SIZE) {
            held[hak_sc_of(size)]++;
        } else {
            held[HAK_SC_COUNT] += (size + HAK_UNIT_BYTES - 1) / HAK_UNIT_BYTES;
        }
    }
}

static uint64_t superslab_sum(const obs_snapshot_t *s) {
    return s->live_bytes + s->cached_bytes + s->remote_bytes + s->quarantine_bytes + s->lost_bytes +
           s->slab_free_bytes + s->uncarved_bytes + s->slab_tail_bytes + s->large_bytes +
           s->unused_dirty_bytes + s->unused_clean_bytes;
}

/* At rest, when the snapshot is exact. */
static void expect_exact(void) {
    uint64_t held[HAK_SC_COUNT + 1], live = 0;
    hak_audit_t audit;
    count_held(held);
    report_collect(&shot);
    assert_true(hak_audit_walk(&audit));
    uint64_t cached = 0, blocks = 0, slabs = 0;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        const hak_class_stats_t *s = &shot.sc[sc];
        UNIT_EXPECT(s->live == held[sc], "class %u: %lu, held %lu", hak_sc_info[sc].bytes,
                    (unsigned long)s->live, (unsigned long)held[sc]);
        assert_int_equal(s->live + s->cached + s->remote + s->quarantine + s->free, s->blocks);
        live += s->live * hak_sc_info[sc].bytes;
        cached += s->cached;
        blocks += s->free;
        slabs += s->slabs;
    }
    assert_int_equal(shot.live_bytes, live);
    assert_int_equal(shot.large_bytes, held[HAK_SC_COUNT] * HAK_UNIT_BYTES);
    assert_int_equal(superslab_sum(&shot), shot.superslab_count * HAK_SUPERSLAB_BYTES);
    assert_int_equal(shot.mapped_bytes, shot.superslab_count * HAK_SUPERSLAB_BYTES +
                                            shot.huge_bytes + shot.huge_cached_bytes);
    assert_int_equal(shot.moving_bytes + shot.lost_bytes, 0);
    assert_int_equal(cached, audit.cached_blocks);
    assert_int_equal(blocks, audit.free_blocks);
    assert_int_equal(slabs, audit.slabs);
    assert_int_equal(shot.hole_bytes, audit.purged_bytes);
    assert_int_equal(shot.unused_dirty_bytes, audit.unused_dirty_units * HAK_UNIT_BYTES);
}

/* What the observer says of each thread. */
static obs_snapshot_t seen;

static void see_threads(void) {
    static obs_reader_t reader;
    static obs_image_t image;
    report_open(&reader, &image);
    obs_drop_threads();
    obs_collect(&seen);
    obs_close(&reader);
}

static void expect_threads(unsigned least) {
    uint64_t cached = 0, attached = 0;
    if (unit_is_emulated()) {
        return; /* its files are not those of the kernel, which the observer reads */
    }
    see_threads();
    assert_non_null(obs_threads.thread);
    for (size_t i = 0; i < obs_threads.count; i++) {
        cached += obs_threads.thread[i].cached_bytes;
        attached += obs_threads.thread[i].is_attached;
        assert_true(obs_threads.thread[i].owner < hak_owner_count);
    }
    assert_int_equal(cached, shot.cached_bytes + shot.quarantine_bytes);
    assert_int_equal(attached, shot.thread_count);
    assert_in_range(attached, least, least + 1);
}

/* The core and the observer make the same figures, but for those that only the observer has. */
static void expect_seen(void) {
    if (unit_is_emulated()) {
        return;
    }
    see_threads();
    seen.keep_units_ms = seen.keep_huge_ms = 0;
    seen.keep_units_saves_bytes = seen.keep_huge_saves_bytes = 0;
    const uint64_t *a = (const uint64_t *)&shot, *b = (const uint64_t *)&seen;
    for (size_t i = 0; i < sizeof shot / sizeof *a; i++) {
        UNIT_EXPECT(a[i] == b[i], "figure %zu: %lu, the observer says %lu", i, (unsigned long)a[i],
                    (unsigned long)b[i]);
    }
}

UNIT_TEST(every_byte_of_threads_at_rest_is_accounted_for) {
    pthread_t thread[EXACT_THREADS];
    pthread_barrier_init(&barrier, NULL, EXACT_THREADS + 1);
    unit_pthread_create_all(thread, EXACT_THREADS, exact_work, NULL, 1);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* all are at rest */
    expect_exact();
    assert_true(shot.cached_bytes > 0 && shot.slab_free_bytes > 0);
    assert_int_equal(HAK_HARDEN, shot.quarantine_bytes > 0);
    expect_threads(EXACT_THREADS);
    expect_seen();
    pthread_barrier_wait(&barrier);
    unit_pthread_join_all(thread, EXACT_THREADS);
    expect_exact();
    hak_malloc_trim(0); /* purges idle pages, unmaps superslabs */
    expect_exact();
    assert_true(shot.hole_bytes > 0 && shot.remote_bytes == 0);
    for (unsigned i = 0; i < EXACT_THREADS * BLOCKS; i++) {
        hak_free(worker[i / BLOCKS].block[i % BLOCKS]);
        worker[i / BLOCKS].block[i % BLOCKS] = NULL;
    }
    expect_exact();
    assert_int_equal(shot.live_bytes, 0);
}

/* What the thread's own caches hold counts as in use. */
static void collect_at_rest(void) {
    hak_collect_thread();
    report_collect(&shot);
}

UNIT_TEST(blocks_large_and_huge_are_counted_exactly) {
    hak_malloc_trim(0);
    collect_at_rest();
    assert_int_equal(shot.in_use_bytes + shot.mapped_bytes, 0);
    assert_int_equal(shot.process.superslab_map, shot.process.superslab_unmap);
    uint64_t allocs = shot.events.large_alloc;
    void *a = hak_malloc(100000); /* 2 units */
    void *b = hak_malloc(1 << 20);
    void *c = hak_malloc((1 << 20) + 1);
    void *d = hak_malloc(5 << 20);
    collect_at_rest();
    assert_int_equal(shot.large_count, 2);
    assert_int_equal(shot.large_bytes, 2 * HAK_UNIT_BYTES + (1 << 20));
    assert_int_equal(shot.huge_count, 2);
    assert_int_equal(shot.huge_bytes, (6 << 20) + HAK_UNIT_BYTES + 2 * HAK_HUGE_GUARD_BYTES);
    assert_int_equal(shot.huge_cached_bytes, 0);
    assert_int_equal(shot.events.large_alloc, allocs + 4);
    hak_free(a);
    hak_free(b);
    hak_free(c);
    hak_free(d);
    collect_at_rest();
    assert_int_equal(shot.in_use_bytes, 0);
    assert_int_equal(shot.large_count + shot.huge_count, 0);
    assert_int_equal(shot.huge_cached_bytes, (6 << 20) + HAK_UNIT_BYTES + 2 * HAK_HUGE_GUARD_BYTES);
    assert_int_equal(shot.unused_dirty_bytes, 2 * HAK_UNIT_BYTES + (1 << 20));
}

enum { GIVEN = 60 };

static void *make_blocks(void *context) {
    for (unsigned i = 0; i < GIVEN; i++) {
        ((void **)context)[i] = hak_malloc(64 - HAK_CANARY_BYTES);
    }
    pthread_barrier_wait(&pair);
    pthread_barrier_wait(&pair);
    return NULL;
}

/* Two threads have two homes, and nobody gets in their way. */
UNIT_TEST(blocks_on_their_way_to_another_owner_are_told_apart) {
    static void *block[GIVEN];
    const hak_class_stats_t *s = &shot.sc[SC_64];
    pthread_t thread;
    hak_os_fault_stop_clock();
    hak_free(hak_malloc(1));                        /* this thread has a cache */
    hak_tcache_self(hak_pagemap_base())->ticks = 0; /* no event merges what is on its way */
    hak_collect_thread();
    pthread_barrier_init(&pair, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, make_blocks, block), 0);
    pthread_barrier_wait(&pair);
    hak_stat_collect(&shot.heap);
    assert_int_equal(s->live, GIVEN);
    uint64_t maker = s->cached;
    UNIT_FREE_ALL(block, GIVEN);
    hak_stat_collect(&shot.heap);
    assert_int_equal(s->cached - maker + s->remote + s->quarantine, GIVEN);
    assert_int_equal(HAK_HARDEN, s->quarantine != 0);
    assert_int_equal(s->live, 0);
    hak_tcache_flush(hak_tcache_self(hak_pagemap_base()));
    hak_stat_collect(&shot.heap);
    assert_int_equal(s->remote, GIVEN);
    assert_int_equal(s->live + s->cached - maker + s->quarantine, 0);
    assert_int_equal(shot.remote_bytes, GIVEN * 64);
    pthread_barrier_wait(&pair);
    pthread_join(thread, NULL);
    hak_owner_collect();
    hak_stat_collect(&shot.heap);
    assert_int_equal(s->live + s->remote, 0);
    hak_os_fault_clear();
}

/* Hardened: the thread has a second cache, for types without pointers. */
UNIT_TEST(thread_with_two_caches_has_one_line) {
    hak_tcache_t *own = hak_tcache_self(hak_pagemap_base());
    void *block = hak_malloc(3000);
    uintptr_t before = hak_partition_enter(HAK_PARTITION_PLAIN);
    assert_int_equal(hak_tcache_self(hak_pagemap_base()) != own, HAK_HARDEN);
    void *plain = hak_malloc(5000);
    hak_partition_leave(before);
    hak_free(plain);
    hak_free(block);
    see_threads();
    unsigned lines = 0;
    for (size_t i = 0; i < obs_threads.count; i++) {
        const obs_thread_stats_t *line = &obs_threads.thread[i];
        lines += line->id == own->thread_id;
        if (line->id == own->thread_id) {
            assert_true(line->is_attached);
            assert_true(line->cached_bytes >= 3000 + 5000);
        }
    }
    assert_int_equal(lines, 1);
    hak_stat_collect(&shot.heap);
    expect_threads(1);
}

UNIT_TEST(thread_that_works_while_it_is_read_is_not_idle) {
    uint32_t now = (uint32_t)(hak_os_now_ns() / HAK_EVENT_STEP_NS);
    hak_tcache_self(hak_pagemap_base())->event_step = now + 10; /* after the reader's clock */
    see_threads();
    assert_true(obs_threads.count != 0);
    for (size_t i = 0; i < obs_threads.count; i++) {
        assert_in_range(obs_threads.thread[i].idle_ms, 0, 3600 * 1000);
    }
}

static void count_lines(void *context, const char *data, size_t length) {
    unsigned *lines = context;
    for (size_t i = 0; i < length; i++) {
        *lines += data[i] == '\n';
    }
}

UNIT_TEST(totals_are_told_without_memory) {
    hak_os_fault_clear();
    hak_os_fault_plan(HAK_OS_CALL_MAP, 0, 1u << 30);
    expect_exact();
    unsigned lines = 0;
    hak_stat_write_text(&(hak_sink_t){.put = count_lines, .context = &lines});
    assert_true(lines > 25);
    hak_os_fault_clear();
}
