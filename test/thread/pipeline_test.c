/* SPDX-License-Identifier: MIT
 *
 * Producers that only allocate and consumers that only free, over a bounded queue. Does what
 * consumers free come back to the producers, so that memory stays at what the queue can hold?
 * Arguments: blocks in total (default 600 000), pairs of producer and consumer (default 3).
 */
#include "thread/block.h"

enum { QUEUE_CAPACITY = 1024, PAIRS_MAX = 32 };

static size_t block_count, pair_count;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    pthread_cond_t drained;
    block_t *blocks[QUEUE_CAPACITY];
    size_t put_count;
    size_t taken_count;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .filled = PTHREAD_COND_INITIALIZER,
           .drained = PTHREAD_COND_INITIALIZER};

static void queue_put(block_t *block) {
    pthread_mutex_lock(&queue.lock);
    while (queue.put_count - queue.taken_count == QUEUE_CAPACITY) {
        pthread_cond_wait(&queue.drained, &queue.lock);
    }
    queue.blocks[queue.put_count++ % QUEUE_CAPACITY] = block;
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
}

static block_t *queue_take(void) {
    pthread_mutex_lock(&queue.lock);
    while (queue.put_count == queue.taken_count) {
        pthread_cond_wait(&queue.filled, &queue.lock);
    }
    block_t *block = queue.blocks[queue.taken_count++ % QUEUE_CAPACITY];
    pthread_cond_signal(&queue.drained);
    pthread_mutex_unlock(&queue.lock);
    return block;
}

static void *produce(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    for (size_t i = 0; i < block_count / pair_count; ++i) {
        size_t size = block_random_size(&state);
        block_t *block = family.malloc(size);
        EXPECT(block != NULL);
        block_stamp(block, size, (uint32_t)i);
        queue_put(block);
    }
    return NULL;
}

/* Never allocates: this thread has only ever freed what others own. */
static void *consume(void *argument) {
    (void)argument;
    for (size_t i = 0; i < block_count / pair_count; ++i) {
        block_t *block = queue_take();
        block_check(block);
        family.free(block);
    }
    return NULL;
}

static void run_pairs(void) {
    pthread_t threads[2 * PAIRS_MAX];
    for (size_t i = 0; i < pair_count; ++i) {
        threads[2 * i] = thread_start(produce, (void *)(uintptr_t)i);
        threads[2 * i + 1] = thread_start(consume, NULL);
    }
    for (size_t i = 0; i < 2 * pair_count; ++i) {
        EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    }
}

static void pipeline_memory_stays_at_what_the_queue_holds(void) {
    size_t before = expect_rss_bytes();
    run_pairs();
    run_pairs();
    /* 1 024 blocks of 1.3 KiB on average wait; the rest is what caches may keep. */
    expect_rss_at_most(before, 64 << 20);
}

/* Many blocks pile up, then one thread frees them all while their owner sleeps or is gone. */
static block_t **pile;
static size_t pile_count;

static void *pile_up(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    blocks_make(pile, pile_count, &state);
    return NULL;
}

static void *pile_free(void *argument) {
    (void)argument;
    for (size_t i = 0; i < pile_count; ++i) {
        block_check(pile[i]);
        family.free(pile[i]);
    }
    return NULL;
}

static void pile_freed_by_another_thread_is_reused(void) {
    pile_count = block_count / 20;
    pile = family.calloc(pile_count, sizeof *pile);
    EXPECT(pile != NULL);
    size_t after_first = 0;
    for (size_t round = 0; round < 10; ++round) {
        EXPECT_EQ(pthread_join(thread_start(pile_up, (void *)(uintptr_t)round), NULL), 0);
        if (round == 1) {
            after_first = expect_rss_bytes();
        }
        EXPECT_EQ(pthread_join(thread_start(pile_free, NULL), NULL), 0);
    }
    expect_rss_at_most(after_first, after_first / 2 + (16 << 20));
    family.free(pile);
}

int main(int argc, char **argv) {
    block_count = expect_arg(argc, argv, 1, expect_cases(600000));
    pair_count = expect_arg(argc, argv, 2, 3);
    if (pair_count == 0 || pair_count > PAIRS_MAX) {
        expect_skip("too many pairs");
    }
    family_load();
    RUN(pipeline_memory_stays_at_what_the_queue_holds);
    RUN(pile_freed_by_another_thread_is_reused);
    return expect_status();
}
