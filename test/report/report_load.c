/* SPDX-License-Identifier: MIT
 *
 * Eight threads allocate and free to each other, and the process forks. Meanwhile parent and
 * children write reports of every format to files of a folder: FORMAT.NUMBER, FORMAT.child.NUMBER,
 * and FORMAT.end when the threads are gone.
 *
 * Usage: report_load FOLDER */
#include "api/where.h"
#include "base/atomics.h"
#include "double/rng.h"
#include "hakmem/hakmem.h"
#include "observe.h"
#include "stat/stat.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, SLOTS = 1024, ROUNDS = 20 };

static void *slot[SLOTS]; /* [atomic] */
static uint32_t started;  /* [atomic] threads */
static uint32_t is_over;  /* [atomic] */
static const char *folder;

static void expect(bool holds, const char *what) {
    if (!holds) {
        dprintf(2, "report_load: %s failed\n", what);
        _exit(1);
    }
}

static void *work(void *context) {
    uint64_t seed = (uintptr_t)context;
    hak_free(hak_malloc(1)); /* attached, before it counts */
    hak_add_relaxed(&started, 1);
    while (hak_load_relaxed(&is_over) == 0) {
        uint64_t random = hak_rng_next(&seed);
        size_t size = random / SLOTS % (random % 32 == 0 ? 2000000 : 700);
        void *block = hak_malloc(size);
        hak_free(__atomic_exchange_n(&slot[random % SLOTS], block, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void put(void *file, const char *data, size_t length) {
    expect(fwrite(data, 1, length, file) == length, "fwrite");
}

static void write_all(const char *end) {
    static obs_reader_t reader;
    static obs_image_t image;
    static const struct {
        const char *name;
        obs_verb_t verb;
        obs_form_t form;
    } reports[] = {{"text", OBS_STATS, OBS_TEXT},
                   {"json", OBS_STATS, OBS_JSON},
                   {"metrics", OBS_STATS, OBS_METRICS},
                   {"explain", OBS_EXPLAIN, OBS_JSON},
                   {"map", OBS_MAP, OBS_JSON}};
    char path[512];
    expect(obs_open_self(&reader, true) && obs_image_open(&image, &reader), reader.error);
    for (unsigned i = 0; i <= sizeof reports / sizeof *reports; i++) {
        bool is_xml = i == sizeof reports / sizeof *reports;
        snprintf(path, sizeof path, "%s/%s.%s", folder, is_xml ? "xml" : reports[i].name, end);
        FILE *file = fopen(path, "we");
        expect(file != NULL, path);
        const hak_sink_t sink = {.put = put, .context = file};
        if (is_xml) {
            hak_stat_write_xml(&sink);
        } else {
            obs_forget(&reader);
            obs_report(&image, reports[i].verb, reports[i].form, &sink);
        }
        fclose(file);
    }
    obs_close(&reader);
}

/* The child goes on allocating, in what it has of the caches of others. */
static void child(unsigned round) {
    char end[32];
    where_watch(WHERE_PATIENCE_SECONDS);
    for (unsigned i = 0; i < 1000; i++) {
        hak_free(slot[i]);
        slot[i] = hak_malloc(i);
    }
    snprintf(end, sizeof end, "child.%u", round);
    write_all(end);
    _exit(0);
}

static void run_round(unsigned round) {
    char end[32];
    int status = 0;
    pid_t pid = fork();
    expect(pid >= 0, "fork");
    if (pid == 0) {
        child(round);
    }
    snprintf(end, sizeof end, "%u", round);
    write_all(end);
    expect(waitpid(pid, &status, 0) == pid && status == 0, "a child");
}

int main(int argc, char **argv) {
    pthread_t thread[THREADS];
    expect(argc == 2, "Usage: report_load FOLDER:");
    folder = argv[1];
    slot[0] = hak_malloc(1); /* this thread has a cache, too */
    for (uintptr_t i = 0; i < THREADS; i++) {
        expect(pthread_create(&thread[i], NULL, work, (void *)(i + 1)) == 0, "pthread_create");
    }
    while (hak_load_relaxed(&started) < THREADS) {
        sched_yield();
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        run_round(round);
    }
    hak_store_relaxed(&is_over, 1);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    write_all("end");
    return 0;
}
