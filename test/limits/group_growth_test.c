/* SPDX-License-Identifier: MIT
 *
 * Live data of less than a third of a control group's limit, whose mix of sizes shifts: what slabs
 * of earlier sizes hold goes back before the limit is reached, at any speed. So the clock stands
 * still here. Real memory; the double of the operating system says what the files of the group say.
 * usage: group_growth_test THREADS */
#include <pthread.h>
#include <sys/mman.h>

#include "api/family.h"
#include "base/counters.h"
#include "base/knobs.h"
#include "double/os_fault.h"
#include "double/rng.h"
#include "os/optional.h"
#include "reclaim/reclaim.h"

enum {
    MEBIBYTE = 1 << 20,
    LIVE_BYTES = 24 * MEBIBYTE,
    LIMIT_BYTES = 80 * MEBIBYTE, /* unlimited it is 105 */
    PLACES = 400000,
    SHIFTS = 6,
    SIZE_MOST = 9000,
    THREADS_MOST = 8,
};

static const unsigned averages[SHIFTS] = {16, 200, 1500, 64, 6000, 400};
static size_t threads, base_bytes, peak_bytes; /* [atomic] the last */

static size_t used_bytes(void) {
    size_t used = (size_t)hak_os_resident_all();
    return used > base_bytes ? used - base_bytes : 0;
}

static size_t serve(const char *path, char *buffer, size_t capacity) {
    const char *file = strrchr(path, '/') + 1;
    if (strcmp(path, "/proc/self/statm") == 0) {
        return HAK_OS_FAULT_REAL;
    }
    if (strcmp(file, "cgroup") == 0) {
        return (size_t)snprintf(buffer, capacity, "1:memory:/group\n");
    }
    if (strcmp(path, "/sys/fs/cgroup/memory/group/memory.limit_in_bytes") == 0) {
        return (size_t)snprintf(buffer, capacity, "%d\n", LIMIT_BYTES);
    }
    if (strcmp(path, "/sys/fs/cgroup/memory/group/memory.usage_in_bytes") == 0) {
        return (size_t)snprintf(buffer, capacity, "%zu\n", used_bytes());
    }
    return 0;
}

typedef struct place {
    unsigned char *block;
    size_t bytes;
} place_t;

typedef struct worker {
    place_t *place;
    size_t live, unseen;
    uint64_t random;
} worker_t;

static worker_t workers[THREADS_MOST];

static place_t *drop(worker_t *worker) {
    place_t *place = &worker->place[hak_rng_next(&worker->random) % (PLACES / threads)];
    family.free(place->block);
    worker->live -= place->bytes;
    *place = (place_t){NULL, 0};
    return place;
}

static void see_peak(void) {
    size_t used = used_bytes(), before = __atomic_load_n(&peak_bytes, __ATOMIC_RELAXED);
    while (used > before && !__atomic_compare_exchange_n(&peak_bytes, &before, used, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void *work(void *argument) {
    worker_t *worker = argument;
    size_t share = LIVE_BYTES / threads;
    for (unsigned shift = 0; shift < SHIFTS; shift++) {
        for (size_t done = 0; done < share;) {
            place_t *place = drop(worker);
            while (worker->live + SIZE_MOST > share) {
                place = drop(worker);
            }
            size_t half = averages[shift] / 2;
            size_t bytes = half + hak_rng_next(&worker->random) % (2 * half + 1);
            place->block = family.malloc(bytes);
            EXPECT(place->block != NULL);
            memset(place->block, 1, bytes);
            place->bytes = bytes;
            worker->live += bytes;
            worker->unseen += bytes;
            done += bytes;
            if (worker->unseen >= MEBIBYTE / 4) {
                worker->unseen = 0;
                see_peak();
            }
        }
    }
    return NULL;
}

static void growth_stays_below_the_limit(void) {
    pthread_t thread[THREADS_MOST];
    size_t bytes = PLACES * sizeof(place_t);
    place_t *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(all != MAP_FAILED);
    memset(all, 0, bytes);
    hak_os_fault_stop_clock();
    hak_os_fault_files(serve);
    hak_os_fault_groups_anew();
    base_bytes = (size_t)hak_os_resident_all();
    hak_limit_start();
    EXPECT(hak_knobs.limit_bytes == LIMIT_BYTES);
    for (size_t i = 0; i < threads; i++) {
        workers[i] = (worker_t){.place = all + i * (PLACES / threads), .random = 7 + i};
        EXPECT(pthread_create(&thread[i], NULL, work, &workers[i]) == 0);
    }
    for (size_t i = 0; i < threads; i++) {
        EXPECT(pthread_join(thread[i], NULL) == 0);
    }
    expect_say("peak %zu MiB, %zu reads\n", peak_bytes >> 20, (size_t)hak_counters.limit_reads);
    EXPECT(peak_bytes > LIMIT_BYTES / 2); /* it takes what it may */
    EXPECT(peak_bytes <= LIMIT_BYTES);
    EXPECT(hak_counters.limit_reads <= 1000); /* once each 1.25 MiB taken */
}

int main(int argc, char **argv) {
    family_load();
    expect_watchdog();
    if (expect_is_emulated()) {
        expect_skip("resident memory of an emulator");
    }
    threads = argc > 1 ? (size_t)atoi(argv[1]) : 1;
    RUN(growth_stays_below_the_limit);
    return expect_status();
}
