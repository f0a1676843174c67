/* SPDX-License-Identifier: MIT
 *
 * What bins may grow by: drawn from the budget, shared by threads, given back. */
#include "unit/front.h"

enum { BREATH = 3000, BREATHS = 12 };

/* As much as a load of one size can make of a bin: it goes up and down by more than that holds. */
static void breathe(size_t bytes, unsigned rounds) {
    static HAK_TLS void *block[BREATH];
    for (unsigned round = 0; round < rounds; round++) {
        UNIT_TAKE_ALL(block, BREATH, unit_malloc(bytes));
        UNIT_FREE_ALL(block, BREATH);
    }
}

/* Until every bin was looked at so many times. */
static void settle(hak_tcache_t *tcache, unsigned times) {
    for (unsigned i = 0; i < times * HAK_SC_COUNT; i++) {
        hak_budget_shrink_idle(tcache);
    }
}

UNIT_AROUND(end) {
    hak_knobs.cache_bytes = 4 * MIB;
    hak_collect_thread();
    settle(self(), 20);
    assert_int_equal(self()->drawn, 0);
    assert_int_equal(hak_budget_drawn_bytes(), 0);
    audit();
    return 0;
}

#define BUDGET_TEST(name) UNIT_TEST_WITH(name, NULL, end)

BUDGET_TEST(growth_is_drawn_and_counted) {
    hak_tcache_t *tcache = self();
    breathe(64, BREATHS);
    const hak_bin_side_t *side = &tcache->side[SC_64];
    assert_int_equal(side->capacity, hak_bin_max_capacity(SC_64));
    assert_true(tcache->drawn >= (size_t)(side->capacity - 16) * 64);
    assert_int_equal(hak_budget_drawn_bytes(), tcache->drawn);
    audit(); /* TCACHE-7 */
}

BUDGET_TEST(idle_bins_give_back_what_they_grew_by) {
    hak_tcache_t *tcache = self();
    breathe(64, BREATHS);
    hak_bin_t *bin = &tcache->bin[SC_64];
    hak_bin_side_t *side = &tcache->side[SC_64];
    int32_t capacity = side->capacity;
    assert_true(side->total - bin->slots_left > 16);
    settle(tcache, 1);
    assert_true(side->capacity < capacity);
    settle(tcache, 10);
    assert_int_equal(side->capacity, 16);
    assert_true(side->total - bin->slots_left < capacity / 2);
    settle(tcache, 40);
    assert_true(side->total - bin->slots_left <= 16);
    assert_int_equal(tcache->drawn, 0);
    audit();
}

BUDGET_TEST(bins_in_use_keep_what_they_grew_by) {
    hak_tcache_t *tcache = self();
    breathe(64, BREATHS);
    int32_t capacity = tcache->side[SC_64].capacity;
    for (unsigned i = 0; i < 20; i++) {
        hak_budget_shrink_idle(tcache); /* less than two looks at every bin */
        hak_bin_side(tcache, SC_4096)->idle = 0;
        breathe(64, 1);
    }
    assert_int_equal(tcache->side[SC_64].capacity, capacity);
}

BUDGET_TEST(thread_above_its_share_gives_back) {
    hak_tcache_t *tcache = self();
    breathe(64, BREATHS);
    size_t drawn = tcache->drawn;
    hak_knobs.cache_bytes = 4096;
    for (unsigned i = 0; i < 10 * HAK_SC_COUNT; i++) {
        breathe(64, 1);
        hak_budget_shrink_idle(tcache);
    }
    assert_true(tcache->drawn < drawn);
    assert_true(tcache->drawn <= hak_budget_bytes());
    audit();
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { THREADS_SOME = 40 };

static pthread_barrier_t figures_read;

static void *breathe_and_wait(void *context) {
    for (size_t bytes = 16; bytes <= 1024; bytes *= 2) {
        breathe(bytes, 3);
    }
    pthread_barrier_wait(&figures_read); /* the figures are read */
    pthread_barrier_wait(&figures_read);
    return context;
}

static void threads_start(pthread_t *thread, unsigned count) {
    assert_int_equal(pthread_barrier_init(&figures_read, NULL, count + 1), 0);
    unit_pthread_create_all(thread, count, breathe_and_wait, NULL, 0);
    pthread_barrier_wait(&figures_read);
}

static void threads_end(const pthread_t *thread, unsigned count) {
    pthread_barrier_wait(&figures_read);
    unit_pthread_join_all(thread, count);
    pthread_barrier_destroy(&figures_read);
}

BUDGET_TEST(threads_together_stay_within_the_budget) {
    pthread_t thread[THREADS_SOME];
    hak_knobs.cache_bytes = 64u << 10;
    threads_start(thread, THREADS_SOME);
    size_t drawn = hak_budget_drawn_bytes();
    assert_true(drawn > 0);
    /* a step of those that run at a time; what a thread may always have */
    assert_true(drawn <= hak_budget_bytes() + 2 * MIB / 16 + THREADS_SOME * (size_t)4096);
    audit();
    threads_end(thread, THREADS_SOME);
    assert_int_equal(hak_budget_drawn_bytes(), self()->drawn);
}

enum { THREADS_MANY = 100000 };

/* The capacity after a long run of frees, of a bin that began with none. */
static int32_t capacity_after_a_run(size_t size) {
    enum { BREATH = 40 };
    void *block[BREATH];
    UNIT_TAKE_ALL(block, BREATH, unit_malloc(size));
    UNIT_FREE_ALL(block, BREATH);
    return hak_bin_side(self(), hak_sc_of_aligned(size, 1))->capacity;
}

/* Of a thread whose bins begin with nothing of this class. */
static void *work_without_room(void *context) {
    hak_tcache_t *tcache = self();
    const hak_bin_side_t *side = hak_bin_side(tcache, SC_16384);
    bool is_right = tcache->initial_bytes == 128 && side->capacity == 0;
    hak_knobs.cache_bytes = 0;
    breathe(16384, 1);
    is_right = is_right && side->capacity == 0 && tcache->bin[SC_16384].head == NULL;
    hak_knobs.cache_bytes = (size_t)THREADS_MANY * MIB;
    /* up to 8 KiB leave at once */
    is_right = is_right && capacity_after_a_run(4096 - HAK_CANARY_BYTES) == 2;
    is_right = is_right && capacity_after_a_run(32768 - HAK_CANARY_BYTES) == 0;
    breathe(16384, BREATHS);
    is_right = is_right && side->capacity == hak_bin_max_capacity(SC_16384);
    audit();
    settle(tcache, 20);
    is_right = is_right && side->capacity == 0 && tcache->drawn == 0;
    return is_right ? context : NULL;
}

BUDGET_TEST(threads_of_many_begin_small) {
    void *result = NULL;
    assert_int_equal(hak_bin_initial_capacity(128, SC_16384), 0);
    assert_int_equal(hak_budget_initial_bytes(), HAK_BIN_INITIAL_BYTES);
    for (unsigned i = 0; i < THREADS_MANY; i++) {
        hak_budget_join();
    }
    assert_int_equal(hak_budget_initial_bytes(), 128);
    result = unit_pthread_create_and_join(work_without_room, &figures_read);
    assert_ptr_equal(result, &figures_read);
    for (unsigned i = 0; i < THREADS_MANY; i++) {
        hak_budget_quit();
    }
    assert_int_equal(hak_budget_initial_bytes(), HAK_BIN_INITIAL_BYTES);
}

BUDGET_TEST(child_of_a_fork_has_its_own_draws_alone) {
    enum { FEW = 4 };
    pthread_t thread[FEW];
    if (unit_is_emulated()) {
        skip();
    }
    breathe(64, BREATHS);
    threads_start(thread, FEW);
    assert_true(hak_budget_drawn_bytes() > self()->drawn);
    pid_t child = fork();
    if (child == 0) {
        bool is_exact = hak_budget_drawn_bytes() == self()->drawn;
        hak_collect_thread();
        settle(self(), 60);
        _exit(is_exact && hak_budget_drawn_bytes() == 0 ? 0 : 1);
    }
    assert_int_equal(unit_wait(child), 0);
    threads_end(thread, FEW);
}
