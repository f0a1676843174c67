/* SPDX-License-Identifier: MIT
 *
 * Blocks are replaced about in the order in which they came. A thread has a part of the table for
 * a phase, and frees what another thread made in the phase before. All of a block is written to. */
#include "tight_load.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "double/rng.h"

enum { THREADS_MOST = 8, JITTER = 64, LEAST_AVERAGE = 256 };

typedef struct ring {
    unsigned char **block;
    uint32_t *size;
    size_t places, first, count, bytes;
} ring_t;

static ring_t rings[THREADS_MOST];
static pthread_barrier_t barrier;
static tight_load_t *load;
static size_t faults_seen;
static pthread_mutex_t sample_mutex = PTHREAD_MUTEX_INITIALIZER;

typedef struct worker {
    unsigned number;
    uint64_t random;
    size_t unsampled_bytes, sampled_bytes;
    double begin;
} worker_t;

size_t tight_load_begin(const tight_load_t *wanted) {
    size_t places = wanted->live_bytes / wanted->threads / LEAST_AVERAGE * 2, sum = 0;
    for (unsigned i = 0; i < wanted->threads; ++i) {
        size_t bytes = places * (sizeof *rings[i].block + sizeof *rings[i].size);
        void *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(all != MAP_FAILED);
        memset(all, 1, bytes);
        rings[i].block = all;
        rings[i].size = (uint32_t *)(rings[i].block + places);
        rings[i].places = places;
        sum += bytes;
    }
    return sum;
}

/* Small, medium, large, huge, all of them, and small again. */
static size_t size_draw(unsigned phase, uint64_t *random) {
    static const size_t least[TIGHT_PHASES] = {16, 1000, 70000, 1100000, 16, 100};
    static const size_t most[TIGHT_PHASES] = {1000, 8000, 500000, 4000000, 4000000, 2000};
    uint64_t draw = hak_rng_next(random);
    size_t low = least[phase], high = most[phase];
    if (phase == 4) { /* as much memory in each power of two */
        static const unsigned char shift[16] = {0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 10, 12};
        low = (size_t)256 << shift[draw >> 60];
        high = 2 * low;
    }
    return low + draw % (high - low);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void pace(const worker_t *worker) {
    if (load->rate_bytes != 0) {
        double due = (double)worker->sampled_bytes * load->threads / (double)load->rate_bytes;
        double ahead = worker->begin + due - now();
        if (ahead > 0) {
            usleep((useconds_t)(ahead * 1e6));
        }
    }
}

static void sample(worker_t *worker, size_t bytes, unsigned phase) {
    worker->unsampled_bytes += bytes;
    if (worker->unsampled_bytes < TIGHT_SAMPLE_BYTES) {
        return;
    }
    size_t resident = expect_rss_bytes(), weight = worker->unsampled_bytes / TIGHT_SAMPLE_BYTES;
    worker->unsampled_bytes %= TIGHT_SAMPLE_BYTES;
    worker->sampled_bytes += weight * TIGHT_SAMPLE_BYTES;
    pthread_mutex_lock(&sample_mutex);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    size_t faults = (size_t)usage.ru_minflt - faults_seen;
    faults_seen += faults;
    load->samples += weight;
    if (resident > load->limit_bytes) {
        load->above += weight;
        load->faults_above += faults;
        load->phase_above[phase] += weight;
    }
    load->peak_bytes = resident > load->peak_bytes ? resident : load->peak_bytes;
    if (load->told != NULL) {
        load->told(resident);
    }
    pthread_mutex_unlock(&sample_mutex);
    pace(worker);
}

static void ring_pop(ring_t *ring) {
    ring->bytes -= ring->size[ring->first];
    family.free(ring->block[ring->first]);
    ring->first = (ring->first + 1) % ring->places;
    ring->count--;
}

/* Not quite in order: the next one changes places with one of those behind it. */
static void ring_mix(ring_t *ring, uint64_t *random) {
    size_t with = (ring->first + hak_rng_next(random) % JITTER) % ring->places;
    if (ring->count > JITTER) {
        unsigned char *block = ring->block[ring->first];
        uint32_t size = ring->size[ring->first];
        ring->block[ring->first] = ring->block[with];
        ring->size[ring->first] = ring->size[with];
        ring->block[with] = block;
        ring->size[with] = size;
    }
}

static void ring_turn(ring_t *ring, worker_t *worker, unsigned phase) {
    size_t share = load->live_bytes / load->threads;
    for (size_t done = 0; done < share * load->turns;) {
        size_t size = size_draw(phase, &worker->random);
        while (ring->count != 0 && (ring->bytes + size > share || ring->count == ring->places)) {
            ring_mix(ring, &worker->random);
            ring_pop(ring);
        }
        size_t at = (ring->first + ring->count) % ring->places;
        ring->block[at] = family.malloc(size);
        EXPECT(ring->block[at] != NULL);
        memset(ring->block[at], (int)worker->number, size);
        ring->size[at] = (uint32_t)size;
        ring->bytes += size;
        ring->count++;
        done += size;
        sample(worker, size, phase);
    }
}

static void *work(void *context) {
    worker_t *worker = context;
    for (unsigned phase = 0; phase < load->phases; ++phase) {
        pthread_barrier_wait(&barrier);
        ring_turn(&rings[(worker->number + phase) % load->threads], worker, phase % TIGHT_PHASES);
    }
    return NULL;
}

void tight_load_run(tight_load_t *wanted) {
    static worker_t workers[THREADS_MOST];
    pthread_t thread[THREADS_MOST];
    load = wanted;
    double begin = now();
    EXPECT_EQ(pthread_barrier_init(&barrier, NULL, load->threads), 0);
    for (unsigned i = 0; i < load->threads; ++i) {
        workers[i] = (worker_t){.number = i, .random = i + 1, .begin = begin};
        EXPECT_EQ(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < load->threads; ++i) {
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    }
    load->seconds = now() - begin;
    for (unsigned i = 0; i < load->threads; ++i) {
        while (rings[i].count != 0) {
            ring_pop(&rings[i]);
        }
    }
}
