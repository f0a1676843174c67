/* SPDX-License-Identifier: MIT
 *
 * CPUs that a process may not use any more: its owners and its budget become fewer, and more again.
 */
#include "unit/cpus.h"

#include <sys/wait.h>

enum { FEW = 24, LARGE_BYTES = 100 << 10, TICKS = 300, STEPS = 20000 };

/* CPUs of the real mask, and the first of the double's: threads can not be bound to that. */
static unsigned least_cpus(void) {
    cpu_set_t mask;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    return (unsigned)CPU_COUNT(&mask) + 1;
}

/* Threads that start beside this one notice: the second one of those that are a second apart. */
static void start_threads_for_a_while(unsigned threads) {
    (void)self();
    hak_os_fault_stop_clock();
    for (unsigned i = 0; i < 3; i++) {
        hak_os_fault_advance_clock(2000000000);
        assert_in_range(count_homes(threads, false), 1, threads);
    }
}

static void process_narrowed_widened_and_narrowed_has_the_budget_of_its_cpus(void **state) {
    (void)state;
    int cpu[CPU_SETSIZE];
    if (!widen(cpu)) {
        skip();
    }
    for (unsigned i = 0; i < 2; i++) {
        cpu_set_t all, one;
        run_on_both(cpu);
        assert_true(hak_os_cpu_count() >= 2);
        assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
        CPU_ZERO(&one);
        CPU_SET(cpu[0], &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        hak_os_fault_run_on((uint32_t)cpu[0]);
        (void)self(); /* beside which they start */
        hak_os_fault_stop_clock();
        for (unsigned k = 0; k < 3; k++) {
            pthread_t thread;
            hak_os_fault_advance_clock(2000000000);
            assert_int_equal(pthread_create(&thread, NULL, work_on_cpu, &cpu[0]), 0);
            pthread_join(thread, NULL);
        }
        assert_int_equal(hak_os_cpu_count(), 1);
        assert_int_equal(hak_budget_bytes(), CACHE_BYTES);
        assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
        hak_os_fault_clear();
    }
}

static void count_owner(hak_owner_t *owner, void *context) {
    ((uint32_t *)context)[0]++;
    ((uint32_t *)context)[1] += hak_load_relaxed(&owner->users);
}

static void owners_with_users_follow_the_cpus_both_ways(void **state) {
    (void)state;
    uint32_t before[2] = {0}, after[2] = {0};
    if (lacks_numbers()) {
        skip();
    }
    unsigned least = least_cpus();
    assert_true(FEW > 2 * least);
    assert_int_equal(count_homes(CPUS, true), CPUS);
    hak_owner_visit(count_owner, before);
    for (unsigned i = 0; i < 2; i++) {
        assert_in_range(hak_os_cpu_count(), CPUS, CPUS + least);
        start_threads_for_a_while(FEW);
        assert_in_range(hak_os_cpu_count(), least - 1, least);
        assert_in_range(count_homes(FEW, false), 1, 2 * least);
        assert_int_equal(count_homes(CPUS, true), CPUS);
    }
    hak_owner_visit(count_owner, after);
    assert_in_range(after[0], before[0], 2 * (CPUS + least)); /* a locked home may bring in more */
    assert_int_equal(after[1], 1);                            /* OWNER-1: this thread */
    hak_os_fault_clear();
}

static pthread_barrier_t lives;

static void *live_on(void *context) {
    worker_t *worker = context;
    void *block[50];
    hak_os_fault_run_on(worker->cpu);
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
        block[i] = hak_malloc(500);
    }
    pthread_barrier_wait(&lives); /* all have a home */
    pthread_barrier_wait(&lives); /* and one CPU is left */
    hak_os_fault_run_on(CPUS_FIRST);
    for (unsigned i = 0; i < TICKS; i++) {
        hak_free(hak_malloc(LARGE_BYTES));
    }
    worker->home = self()->home;
    pthread_barrier_wait(&lives);
    for (unsigned i = 0; i < UNIT_COUNT(block); i++) {
        hak_free(block[i]);
    }
    return NULL;
}

static void start_lives(worker_t *worker) {
    assert_int_equal(pthread_barrier_init(&lives, NULL, CPUS + 1), 0);
    for (unsigned i = 0; i < CPUS; i++) {
        worker[i].cpu = CPUS_FIRST + i;
        assert_int_equal(pthread_create(&worker[i].thread, NULL, live_on, &worker[i]), 0);
    }
    pthread_barrier_wait(&lives);
}

static void end_lives(worker_t *worker, uint32_t users[2]) {
    pthread_barrier_wait(&lives);
    pthread_barrier_wait(&lives);
    hak_owner_visit(count_owner, users);
    for (unsigned i = 0; i < CPUS; i++) {
        pthread_join(worker[i].thread, NULL);
    }
}

static void threads_that_live_on_leave_surplus_owners(void **state) {
    (void)state;
    static worker_t worker[CPUS];
    uint32_t users[2] = {0};
    if (lacks_numbers()) {
        skip();
    }
    start_lives(worker);
    start_threads_for_a_while(FEW);
    assert_in_range(hak_os_cpu_count(), least_cpus() - 1, least_cpus());
    end_lives(worker, users);
    assert_in_range(users[1], 1, CPUS + 1); /* OWNER-1; some have ended perhaps */
    assert_in_range(distinct_homes(worker, CPUS), 1, 2 * least_cpus());
    hak_os_fault_clear();
    hak_collect_thread();
    audit();
}

static void child_of_a_fork_follows_on(void **state) {
    (void)state;
    static worker_t worker[CPUS];
    uint32_t users[2] = {0};
    int status = -1;
    if (lacks_numbers() || unit_is_emulated()) {
        skip();
    }
    start_lives(worker);
    start_threads_for_a_while(FEW);
    unsigned before = hak_os_cpu_count();
    pid_t child = fork();
    if (child == 0) {
        hak_owner_visit(count_owner, users);
        bool is_right = hak_os_cpu_count() == before && users[1] == 1;
        if (!UNIT_IS_TSAN) { /* which allows no threads here */
            is_right = is_right && count_homes(FEW, false) <= 2 * least_cpus();
            is_right = is_right && count_homes(CPUS, true) == CPUS;
            start_threads_for_a_while(FEW);
            is_right = is_right && hak_os_cpu_count() <= least_cpus();
        }
        _exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end_lives(worker, users);
    hak_os_fault_clear();
}

static void *count_and_follow(void *context) {
    uint64_t seed = (uintptr_t)context;
    for (unsigned i = 0; i < unit_rounds(STEPS); i++) {
        uint64_t random = hak_rng_next(&seed);
        hak_os_fault_run_on(CPUS_FIRST + (uint32_t)(random % CPUS));
        if (random >> 60 == 0) {
            hak_os_fault_advance_clock(2000000000);
            hak_os_cpu_follow();
        }
        if (hak_os_cpu_count() - 1 >= CPU_SETSIZE) {
            return NULL;
        }
    }
    return context;
}

static void count_is_right_after_many_counted_and_followed(void **state) {
    (void)state;
    pthread_t thread[4];
    void *result[4];
    if (lacks_numbers()) {
        skip();
    }
    hak_os_fault_stop_clock();
    for (uintptr_t i = 0; i < UNIT_COUNT(thread); i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, count_and_follow, (void *)(i + 1)), 0);
    }
    for (unsigned i = 0; i < UNIT_COUNT(thread); i++) {
        pthread_join(thread[i], &result[i]);
        assert_ptr_equal(result[i], i + 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        hak_os_fault_advance_clock(2000000000);
        hak_os_cpu_follow();
    }
    assert_in_range(hak_os_cpu_count(), least_cpus() - 1, least_cpus());
    hak_os_fault_clear();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(process_narrowed_widened_and_narrowed_has_the_budget_of_its_cpus),
    cmocka_unit_test(owners_with_users_follow_the_cpus_both_ways),
    cmocka_unit_test(threads_that_live_on_leave_surplus_owners),
    cmocka_unit_test(child_of_a_fork_follows_on),
    cmocka_unit_test(count_is_right_after_many_counted_and_followed),
};

int main(int argc, char **argv) {
    (void)argc;
    unit_cpus_begin(argv);
    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? 0 : 1;
}
