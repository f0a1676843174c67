/* SPDX-License-Identifier: MIT
 *
 * The real core on 256 virtual CPUs: how many cache lines move between them for an operation? What
 * one CPU pays must not grow with their number. Each CPU is a thread of its own; a baton lets one
 * run at a time, in turn, so that the counts are always the same. */
#include "double/os_fault.h"
#include "lines.h"

#include <hakmem/hakmem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 32,       /* operations of a CPU in a turn */
    TURNS_BEFORE = 8, /* that are not counted */
    TURNS = 16,
    BLOCK_BYTES = 64,
    LARGE_BYTES = 100 << 10,
};

typedef struct load {
    const char *name;
    void (*turn)(unsigned cpu, unsigned count);
    unsigned operations; /* in a turn */
    double most;         /* lines an operation, with 256 CPUs */
    double grow;         /* at most so many times as many as with 16 */
} load_t;

static void *held[LINES_CPUS][BATCH]; /* the program's own; not counted */

static void fill(void **blocks, size_t bytes) {
    for (unsigned i = 0; i < BATCH; i++) {
        blocks[i] = hak_malloc(bytes);
        if (blocks[i] == NULL) {
            abort();
        }
    }
}

static void drop(void **blocks) {
    for (unsigned i = 0; i < BATCH; i++) {
        hak_free(blocks[i]);
        blocks[i] = NULL;
    }
}

/* Its own blocks. */
static void turn_own(unsigned cpu, unsigned count) {
    (void)count;
    drop(held[cpu]);
    fill(held[cpu], BLOCK_BYTES);
}

/* Frees what its neighbour has just allocated. */
static void turn_ring(unsigned cpu, unsigned count) {
    drop(held[(cpu + count - 1) % count]);
    fill(held[cpu], BLOCK_BYTES);
}

/* Half of the CPUs allocate, the other half free. */
static void turn_pairs(unsigned cpu, unsigned count) {
    if (cpu < count / 2) {
        fill(held[cpu], BLOCK_BYTES);
    } else {
        drop(held[cpu - count / 2]);
    }
}

/* Blocks of one CPU freed by all others, a few each: many writers of one slab. */
static void turn_fan(unsigned cpu, unsigned count) {
    if (cpu == 0) {
        for (unsigned i = 0; i < count; i++) {
            fill(held[i], BLOCK_BYTES);
        }
        drop(held[0]);
    } else {
        drop(held[cpu]);
    }
}

/* Blocks of many sizes go round in no order, as those of the row exchange. */
static void turn_mix(unsigned cpu, unsigned count) {
    static uint64_t state = 1;
    for (unsigned i = 0; i < BATCH; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        void **place = &held[(state >> 33) % count][(state >> 20) % BATCH];
        hak_free(*place);
        *place = hak_malloc(16u << (state >> 60) % 8);
    }
    (void)cpu;
}

/* Its own blocks of two units each. */
static void turn_large(unsigned cpu, unsigned count) {
    (void)count;
    hak_free(held[cpu][0]);
    held[cpu][0] = hak_malloc(LARGE_BYTES);
}

static void *thread_run(void *argument) {
    unsigned cpu = (unsigned)(uintptr_t)argument;
    hak_os_fault_run_on(cpu);
    lines_run_on(cpu);
    hak_free(hak_malloc(BLOCK_BYTES));
    return NULL;
}

/* Threads that allocate one block. */
static void turn_threads(unsigned cpu, unsigned count) {
    (void)count;
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_run, (void *)(uintptr_t)cpu) != 0) {
        puts("no more threads here");
        exit(77);
    }
    pthread_join(thread, NULL);
}

/* --- the baton -------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed[LINES_CPUS + 1];
static unsigned baton; /* the CPU that runs; `cpus`: nobody */
static const load_t *load;
static unsigned cpus;
static uint64_t result;

static void baton_wait(unsigned cpu) {
    pthread_mutex_lock(&mutex);
    while (baton != cpu) {
        pthread_cond_wait(&passed[cpu], &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static void baton_pass(unsigned to) {
    pthread_mutex_lock(&mutex);
    baton = to;
    pthread_cond_signal(&passed[to]);
    pthread_mutex_unlock(&mutex);
}

static void *cpu_run(void *argument) {
    unsigned cpu = (unsigned)(uintptr_t)argument;
    hak_os_fault_run_on(cpu);
    lines_run_on(cpu);
    for (unsigned turn = 0; turn < TURNS_BEFORE + TURNS; turn++) {
        baton_wait(cpu);
        if (cpu == 0 && turn == TURNS_BEFORE) {
            lines_reset();
        }
        load->turn(cpu, cpus);
        result = lines_moved();
        baton_pass((cpu + 1) % cpus);
    }
    lines_leave();
    baton_wait(cpu);
    baton_pass(cpu + 1 < cpus ? cpu + 1 : LINES_CPUS);
    return NULL;
}

static double run(const load_t *which, unsigned count) {
    pthread_t thread[LINES_CPUS];
    pthread_attr_t small;
    load = which;
    cpus = count;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    for (unsigned i = 0; i < LINES_CPUS; i++) {
        pthread_cond_init(&passed[i], NULL);
    }
    baton = LINES_CPUS;
    memset(held, 0, sizeof held);
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&thread[i], &small, cpu_run, (void *)(uintptr_t)i) != 0) {
            puts("no more threads here");
            exit(77);
        }
    }
    baton_pass(0);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
    }
    pthread_attr_destroy(&small);
    for (unsigned i = 0; i < count; i++) {
        drop(held[i]);
    }
    return (double)result / ((double)count * TURNS * load->operations);
}

/* A counter that all CPUs write: what the bounds are there to find. */
static void turn_counter(unsigned cpu, unsigned count) {
    static uint64_t counter;
    (void)cpu;
    (void)count;
    for (unsigned i = 0; i < BATCH; i++) {
        lines_access(&counter, sizeof counter, 1);
    }
    lines_access(&counter, sizeof counter, 1);
}

int main(int argc, char **argv) {
    static const load_t loads[] = {
        {"own blocks", turn_own, BATCH, 0.01, 2}, {"ring", turn_ring, BATCH, 1.35, 1.1},
        {"pairs", turn_pairs, BATCH, 1.2, 1.1},   {"fan", turn_fan, BATCH, 2.4, 1.4},
        {"mix", turn_mix, BATCH, 3, 1.7},         {"large blocks", turn_large, 1, 20, 1.4},
        {"threads", turn_threads, 1, 90, 1.1},
    };
    static const load_t counter = {"a shared counter", turn_counter, 1, 0, 0};
    hak_os_fault_stop_clock();
    double seen = run(&counter, LINES_CPUS);
    printf("%s: %.3f lines a turn\n", counter.name, seen);
    bool is_good = seen == 1.0;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        double few = run(&loads[i], 16), many = run(&loads[i], LINES_CPUS);
        bool is_fine = many <= loads[i].most && many <= few * loads[i].grow + 0.01;
        printf("%s: %.3f lines an operation with 16 CPUs, %.3f with %u%s\n", loads[i].name, few,
               many, LINES_CPUS, is_fine ? "" : ": FAILED");
        if (!is_fine || argc > 1) {
            lines_print(12);
        }
        is_good = is_good && is_fine;
    }
    (void)argv;
    return is_good ? 0 : 1;
}
