/* SPDX-License-Identifier: MIT
 * larson THREADS OPS MODE [MIN MAX BLOCKS]
 *
 * Measures: a server over its life. THREADS lanes each hold an array of BLOCKS blocks and replace
 * random ones by blocks of random sizes. After LIFE replacements a lane's thread starts a fresh
 * thread, which goes on with the array, and ends: blocks outlive the thread that allocated them and
 * are freed by others; thread caches are set up and torn down all the time. The first blocks come
 * from the main thread. MODE "sized" does the same through C++'s operator new and its delete with a
 * size, so that an allocator's own path for known sizes is used.
 * Known from: P. Larson and M. Krishnan, "Memory allocation for long-running server applications"
 * (1998); programs of that name are in most allocators' benchmark collections. Ours does a fixed
 * number of replacements instead of running for a fixed time.
 * Does not measure: large blocks, use of the blocks' contents beyond both ends.
 * One operation is one replacement: a pair of free and malloc. OPS is for each lane. */
#include "bench.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>

enum { LIFE = 100 }; /* rounds through the array before the next thread takes over */

typedef struct slot {
    void *block;
    size_t size;
} slot_t;

typedef struct lane {
    _Alignas(64) slot_t *slots;
    bench_rng_t rng;
    uint64_t left, sum, live, peak;
    pthread_t runner; /* the thread that had the lane last; not yet joined, unless it is main */
    bool started;
} lane_t;

static struct {
    uint32_t blocks, min, max;
    bool sized;
    sem_t done; /* once for each lane */
    void *(*operator_new)(size_t);
    void (*operator_delete)(void *, size_t);
} larson;

static void *operator_named(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL && dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL) != NULL) {
        address = dlsym(RTLD_DEFAULT, name);
    }
    if (address == NULL) {
        bench_fail("no %s: neither the allocator nor libstdc++ has it", name);
    }
    return address;
}

/* The operators of the preloaded allocator, if it has any; else libstdc++'s, which call malloc and
 * free. Looked up instead of linked, so that plain mode runs without C++. */
static void find_operators(void) {
    void *address = operator_named("_Znwm");
    memcpy(&larson.operator_new, &address, sizeof address);
    address = operator_named("_ZdlPvm");
    memcpy(&larson.operator_delete, &address, sizeof address);
}

static inline __attribute__((always_inline)) void replace(lane_t *lane, slot_t *slot, bool sized) {
    if (slot->block != NULL) {
        lane->sum += bench_marks(slot->block, slot->size) + slot->size;
        lane->live -= slot->size;
        if (sized) {
            larson.operator_delete(slot->block, slot->size);
        } else {
            free(slot->block);
        }
    }
    slot->size = bench_between(&lane->rng, larson.min, larson.max);
    slot->block =
        sized ? larson.operator_new(slot->size) : bench_need(malloc(slot->size), slot->size);
    bench_mark(slot->block, slot->size, (unsigned char)slot->size);
    lane->live += slot->size;
    lane->peak = lane->live > lane->peak ? lane->live : lane->peak;
}

static void run_life(lane_t *lane) {
    uint64_t life = (uint64_t)LIFE * larson.blocks;
    uint64_t count = lane->left < life ? lane->left : life;
    lane->left -= count;
    if (larson.sized) {
        for (uint64_t i = 0; i < count; i++) {
            replace(lane, &lane->slots[bench_below(&lane->rng, larson.blocks)], true);
        }
    } else {
        for (uint64_t i = 0; i < count; i++) {
            replace(lane, &lane->slots[bench_below(&lane->rng, larson.blocks)], false);
        }
    }
}

static void start_thread(lane_t *lane);

static void *thread_main(void *argument) {
    lane_t *lane = argument;
    run_life(lane);
    if (lane->started) {
        pthread_join(lane->runner, NULL);
    }
    lane->started = true;
    lane->runner = pthread_self();
    if (lane->left > 0) {
        start_thread(lane);
    } else {
        sem_post(&larson.done);
    }
    return NULL;
}

static void start_thread(lane_t *lane) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, thread_main, lane);
    if (error != 0) {
        bench_fail("cannot start a thread: %s", strerror(error));
    }
}

/* No cache line holds parts of two lanes'. */
static slot_t *make_slots(void) {
    size_t size = (larson.blocks * sizeof(slot_t) + 63) & ~(size_t)63;
    return memset(bench_need(aligned_alloc(64, size), size), 0, size);
}

static lane_t *make_lanes(unsigned count, uint64_t operations) {
    lane_t *lanes = aligned_alloc(_Alignof(lane_t), count * sizeof *lanes);
    bench_need(lanes, count * sizeof *lanes);
    for (unsigned i = 0; i < count; i++) {
        lanes[i] = (lane_t){.rng = bench_rng(i), .left = operations};
        lanes[i].slots = make_slots();
        for (uint32_t k = 0; k < larson.blocks; k++) {
            replace(&lanes[i], &lanes[i].slots[k], larson.sized);
        }
    }
    return lanes;
}

static uint64_t end_lane(lane_t *lane) {
    for (uint32_t i = 0; i < larson.blocks; i++) {
        slot_t *slot = &lane->slots[i];
        lane->sum += bench_marks(slot->block, slot->size) + slot->size;
        if (larson.sized) {
            larson.operator_delete(slot->block, slot->size);
        } else {
            free(slot->block);
        }
    }
    free(lane->slots);
    return lane->sum;
}

int main(int argc, char **argv) {
    static const char *const modes[] = {"plain", "sized", NULL};
    bench_init(argc, argv, "THREADS OPS MODE [MIN MAX BLOCKS]");
    unsigned threads = (unsigned)bench_arg(1, 4, 1, 1024, "THREADS");
    uint64_t operations = bench_arg(2, 5000000, 1, UINT64_MAX >> 16, "OPS");
    larson.sized = bench_choice(3, modes, "MODE") == 1;
    larson.min = (uint32_t)bench_arg(4, 8, 1, 1u << 30, "MIN");
    larson.max =
        (uint32_t)bench_arg(5, larson.min > 1000 ? larson.min : 1000, larson.min, 1u << 30, "MAX");
    larson.blocks = (uint32_t)bench_arg(6, 1000, 1, 1u << 24, "BLOCKS");
    if (larson.sized) {
        find_operators();
    }
    sem_init(&larson.done, 0, 0);
    lane_t *lanes = make_lanes(threads, operations);

    bench_start();
    for (unsigned i = 0; i < threads; i++) {
        start_thread(&lanes[i]);
    }
    for (unsigned i = 0; i < threads; i++) {
        while (sem_wait(&larson.done) != 0) {
        }
    }
    bench_stop(threads * operations);

    uint64_t sum = 0, peak = 0;
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(lanes[i].runner, NULL);
        sum += end_lane(&lanes[i]);
        peak += lanes[i].peak; /* not all at once: an upper bound, a close one */
    }
    free(lanes);
    sem_destroy(&larson.done);
    bench_live_peak(peak);
    return bench_finish(sum);
}
