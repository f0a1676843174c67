/* SPDX-License-Identifier: MIT
 * idle_threads THREADS
 *
 * Measures: what threads cost that have worked once and then wait, as the pool of a server does.
 * Each of THREADS threads allocates 248 blocks of 16 to 512 bytes (64 KiB), frees all but every
 * 62nd and sleeps. Once all sleep, 1 KiB for each is in use; the field "idle_kib" is what the
 * process then has, and the figure to look at, with the peak: blocks that caches of sleeping
 * threads keep are of no use to anyone. Each thread also costs about 13 KiB of stack.
 * Known from: thread pools; "memory per idle thread" is a known weakness of per-thread caches.
 * Does not measure: speed, though its time includes the start of the threads.
 * One operation is one thread. */
#include "bench.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { BURST = 248, KEEP_EVERY = 62, SMALLEST = 16, LARGEST = 512, STACK = 256 << 10 };

typedef struct block {
    void *address;
    size_t size;
} block_t;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t all_idle, leave;
    unsigned threads, idle;
    bool over;
    uint64_t sum;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .all_idle = PTHREAD_COND_INITIALIZER,
          .leave = PTHREAD_COND_INITIALIZER};

static uint64_t end(block_t block) {
    uint64_t sum = bench_marks(block.address, block.size) + block.size;
    free(block.address);
    return sum;
}

static void sleep_until_over(void) {
    pthread_mutex_lock(&pool.lock);
    if (++pool.idle == pool.threads) {
        pthread_cond_signal(&pool.all_idle);
    }
    while (!pool.over) {
        pthread_cond_wait(&pool.leave, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
}

static void *work(void *number) {
    block_t blocks[BURST];
    bench_rng_t rng = bench_rng((uintptr_t)number);
    uint64_t sum = 0;
    for (unsigned i = 0; i < BURST; i++) {
        size_t size = bench_between(&rng, SMALLEST, LARGEST);
        blocks[i] = (block_t){bench_need(malloc(size), size), size};
        bench_mark(blocks[i].address, size, (unsigned char)size);
    }
    for (unsigned i = 0; i < BURST; i++) {
        sum += i % KEEP_EVERY != 0 ? end(blocks[i]) : 0;
    }
    sleep_until_over();
    for (unsigned i = 0; i < BURST; i += KEEP_EVERY) {
        sum += end(blocks[i]);
    }
    pthread_mutex_lock(&pool.lock);
    pool.sum += sum;
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

static void start_threads(pthread_t *threads) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (unsigned i = 0; i < pool.threads; i++) {
        int error = pthread_create(&threads[i], &attributes, work, (void *)(uintptr_t)i);
        if (error != 0) {
            bench_fail("cannot start thread %u: %s", i, strerror(error));
        }
    }
    pthread_attr_destroy(&attributes);
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS");
    pool.threads = (unsigned)bench_arg(1, 1000, 1, 30000, "THREADS");
    pthread_t *threads = bench_need(calloc(pool.threads, sizeof *threads), sizeof *threads);

    bench_start();
    start_threads(threads);
    pthread_mutex_lock(&pool.lock);
    while (pool.idle < pool.threads) {
        pthread_cond_wait(&pool.all_idle, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    bench_stop(pool.threads);

    char idle[64];
    snprintf(idle, sizeof idle, "\"idle_kib\":%llu", (unsigned long long)bench_rss_kib());
    bench_extra(idle);
    pthread_mutex_lock(&pool.lock);
    pool.over = true;
    pthread_cond_broadcast(&pool.leave);
    pthread_mutex_unlock(&pool.lock);
    for (unsigned i = 0; i < pool.threads; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
    return bench_finish(pool.sum);
}
