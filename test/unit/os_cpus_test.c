/* SPDX-License-Identifier: MIT
 *
 * CPUs that a process came to use after its start: it was started on one, then might use more. */
#include "unit/front.h"
#include "unit/os.h"

enum { CPUS = 64, CPUS_FIRST = 4000, QUOTA = 3 }; /* no machine that runs this has as many */

static const size_t CACHE_BYTES = 1u << 20;
static pthread_barrier_t barrier;

extern const unsigned __rseq_size HAK_WEAK; /* 0: the C library keeps no CPU number */

static void *work(void *home) {
    hak_free(unit_malloc(100));
    *(hak_owner_t **)home = self()->home;
    return NULL;
}

static void *work_on_cpu(void *cpu) {
    cpu_set_t set;
    hak_owner_t *home;
    CPU_ZERO(&set);
    CPU_SET(*(int *)cpu, &set);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
    return work(&home);
}

UNIT_TEST(process_widened_to_two_cpus_has_the_budget_of_two) {
    cpu_set_t all;
    int count = 0, cpu[CPU_SETSIZE];
    memset(&all, 0xff, sizeof all);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        cpu[count] = i;
        count += CPU_ISSET(i, &all) != 0;
    }
    if (count < 2 || &__rseq_size == NULL || __rseq_size == 0 || unit_is_emulated()) {
        print_message("one CPU, or the C library does not tell which\n");
        skip();
    }
    for (int i = 0; i < 2; i++) {
        unit_pthread_create_and_join(work_on_cpu, &cpu[i]);
    }
    assert_int_equal(hak_os_cpu_count(), 2);
    assert_int_equal(hak_budget_bytes(), 2 * CACHE_BYTES);
}

typedef struct worker {
    hak_owner_t *home;
    uint32_t cpu;
} worker_t;

static void *work_on_double(void *context) {
    worker_t *worker = context;
    hak_os_fault_run_on(worker->cpu);
    work(&worker->home);
    pthread_barrier_wait(&barrier);
    return NULL;
}

UNIT_TEST(cpus_that_threads_run_on_have_an_owner_each) {
    static worker_t worker[CPUS];
    pthread_t thread[CPUS];
    unsigned before = hak_os_cpu_count();
    assert_int_equal(pthread_barrier_init(&barrier, NULL, CPUS), 0);
    for (unsigned i = 0; i < CPUS; i++) {
        worker[i].cpu = CPUS_FIRST + i;
    }
    unit_pthread_create_all(thread, CPUS, work_on_double, worker, sizeof *worker);
    unit_pthread_join_all(thread, CPUS);
    for (unsigned i = 0; i < CPUS; i++) {
        for (unsigned k = 0; k < i; k++) {
            UNIT_EXPECT(worker[i].home != worker[k].home, "threads %u and %u of 64", k, i);
        }
    }
    assert_int_equal(hak_os_cpu_count(), before + CPUS);
    assert_int_equal(hak_budget_bytes(), QUOTA * CACHE_BYTES);
}

UNIT_TEST(cpu_known_already_or_not_told_adds_none) {
    static const uint32_t cpu[] = {UINT32_MAX, UINT32_MAX - 1, 1u << 13, CPUS_FIRST};
    unsigned before;
    hak_os_fault_run_on(CPUS_FIRST);
    before = hak_os_cpu_count();
    for (unsigned i = 0; i < UNIT_COUNT(cpu); i++) {
        hak_os_fault_run_on(cpu[i]);
        assert_int_equal(hak_os_cpu_count(), before);
    }
    hak_os_init();
    assert_true(hak_os_cpu_count() >= before);
}

static size_t serve_quota(const char *path, char *buffer, size_t capacity) {
    const char *text = strcmp(path, "/proc/self/cgroup") == 0              ? "0::/group\n"
                       : strcmp(path, "/sys/fs/cgroup/group/cpu.max") == 0 ? "300000 100000\n"
                                                                           : "";
    strncpy(buffer, text, capacity);
    return strlen(text);
}

/* What the core counts at its start is the CPUs of then. */
static void start_on_one_cpu(char **argv) {
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

static int cpus_start(int argc, char **argv) {
    (void)argc;
    start_on_one_cpu(argv);
    hak_os_memory_t memory;
    hak_os_fault_files(serve_quota);
    hak_os_fault_groups_anew();
    (void)hak_os_memory_limit(&memory);
    hak_knobs.cgroup = true;
    hak_knobs.cache_bytes = CACHE_BYTES;
    return UNIT_GO_ON;
}

UNIT_START(cpus_start)
