/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of CPUs that come and go: threads on CPUs that no machine has, by the double
 * of the system, and on two that most machines have. */
#ifndef HAK_TEST_UNIT_CPUS_H
#define HAK_TEST_UNIT_CPUS_H

#include "base/knobs.h"
#include "double/os_fault.h"
#include "front/budget.h"
#include "hakmem/hakmem.h"
#include "os/optional.h"
#include "unit/front.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { CPUS = 64, CPUS_FIRST = 4000, QUOTA = 3 }; /* no machine that runs this has as many */

static const size_t CACHE_BYTES = 1u << 20;
static pthread_barrier_t barrier;

extern const unsigned __rseq_size HAK_WEAK; /* 0: the C library keeps no CPU number */

static inline bool lacks_numbers(void) {
    return &__rseq_size == NULL || __rseq_size == 0;
}

static inline void *work(void *home) {
    hak_free(hak_malloc(100));
    *(hak_owner_t **)home = self()->home;
    return NULL;
}

static inline void *work_on_cpu(void *cpu) {
    cpu_set_t set;
    hak_owner_t *home;
    CPU_ZERO(&set);
    CPU_SET(*(int *)cpu, &set);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
    return work(&home);
}

/* The process may use all CPUs. false: that is one, or the C library does not tell which. */
static inline bool widen(int cpu[CPU_SETSIZE]) {
    cpu_set_t all;
    int count = 0;
    memset(&all, 0xff, sizeof all);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        cpu[count] = i;
        count += CPU_ISSET(i, &all) != 0;
    }
    return count >= 2 && !lacks_numbers() && !unit_is_emulated();
}

static inline void run_on_both(int *cpu) {
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, work_on_cpu, &cpu[i]), 0);
        pthread_join(thread, NULL);
    }
}

typedef struct worker {
    pthread_t thread;
    hak_owner_t *home;
    uint32_t cpu;
} worker_t;

static inline void *work_on_double(void *context) {
    worker_t *worker = context;
    hak_os_fault_run_on(worker->cpu);
    work(&worker->home);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static inline unsigned distinct_homes(const worker_t *worker, unsigned count) {
    unsigned homes = 0;
    for (unsigned i = 0; i < count; i++) {
        bool is_first = true;
        for (unsigned k = 0; k < i; k++) {
            is_first = is_first && worker[i].home != worker[k].home;
        }
        homes += is_first;
    }
    return homes;
}

/* The homes of so many threads at a time, on different CPUs or on the first of them. */
static inline unsigned count_homes(unsigned threads, bool is_spread) {
    static worker_t worker[CPUS];
    assert_int_equal(pthread_barrier_init(&barrier, NULL, threads), 0);
    for (unsigned i = 0; i < threads; i++) {
        worker[i].cpu = CPUS_FIRST + (is_spread ? i : 0);
        assert_int_equal(pthread_create(&worker[i].thread, NULL, work_on_double, &worker[i]), 0);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(worker[i].thread, NULL);
    }
    return distinct_homes(worker, threads);
}

static inline size_t serve_quota(const char *path, char *buffer, size_t capacity) {
    const char *text = strcmp(path, "/proc/self/cgroup") == 0              ? "0::/group\n"
                       : strcmp(path, "/sys/fs/cgroup/group/cpu.max") == 0 ? "300000 100000\n"
                                                                           : "";
    strncpy(buffer, text, capacity);
    return strlen(text);
}

/* What the core counts at its start is the CPUs of then. */
static inline void start_on_one_cpu(char **argv) {
    if (getenv("HAK_UNIT_NARROW") == NULL && !unit_is_emulated()) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(sched_getcpu(), &set);
        setenv("HAK_UNIT_NARROW", "1", 1);
        if (sched_setaffinity(0, sizeof set, &set) == 0) {
            execv("/proc/self/exe", argv);
        }
        abort();
    }
}

/* Three CPUs are the quota. */
static inline void unit_cpus_begin(char **argv) {
    start_on_one_cpu(argv);
    hak_os_memory_t memory;
    hak_os_fault_files(serve_quota);
    hak_os_fault_groups_anew();
    (void)hak_os_memory_limit(&memory);
    hak_knobs.cgroup = true;
    hak_knobs.cache_bytes = CACHE_BYTES;
}

#endif
