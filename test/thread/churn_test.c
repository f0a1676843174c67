/* SPDX-License-Identifier: MIT
 *
 * Short threads, one after the other and a few at a time. Each leaves blocks behind that later
 * threads free. Is the memory of dead threads, what they cached among it, used again (no growth
 * after the first tenth)? Arguments: threads (default 20 000), at a time (default 4), blocks of
 * each (default 60; 2 000 fill the caches of many sizes).
 */
#include "thread/block.h"

enum { LIFE_BLOCKS_MAX = 2000, LEGACY_COUNT = 512, AT_A_TIME_MAX = 64 };

static size_t thread_count, at_a_time, life_blocks;
static _Atomic(block_t *) legacy[LEGACY_COUNT];

static void *short_life(void *argument) {
    uint64_t state = 0x9e3779b97f4a7c15u * ((uintptr_t)argument + 1);
    static _Thread_local block_t *blocks[LIFE_BLOCKS_MAX];
    blocks_make(blocks, life_blocks, &state);
    for (size_t i = 0; i < life_blocks; ++i) {
        if (i % 3 == 0) { /* left to whoever comes by */
            size_t place = expect_random(&state) % LEGACY_COUNT;
            blocks[i] = atomic_exchange_explicit(&legacy[place], blocks[i], memory_order_acq_rel);
        }
        block_unmake(blocks[i], &state);
    }
    return NULL;
}

static void run_lives(size_t count) {
    pthread_t threads[AT_A_TIME_MAX];
    for (size_t done = 0; done < count; done += at_a_time) {
        threads_start(threads, at_a_time, short_life, done);
        threads_join(threads, at_a_time);
    }
}

static void churn_of_short_threads_does_not_grow(void) {
    run_lives(thread_count / 10);
    size_t before = expect_rss_bytes();
    run_lives(thread_count - thread_count / 10);
    expect_rss_at_most(before, before / 2 + (16 << 20));
    uint64_t state = 1;
    for (size_t i = 0; i < LEGACY_COUNT; ++i) {
        block_unmake(atomic_exchange(&legacy[i], NULL), &state);
    }
}

int main(int argc, char **argv) {
    thread_count = expect_arg(argc, argv, 1, expect_cases(20000));
    at_a_time = expect_arg(argc, argv, 2, 4);
    life_blocks = expect_arg(argc, argv, 3, 60);
    if (at_a_time == 0 || at_a_time > AT_A_TIME_MAX || life_blocks > LIFE_BLOCKS_MAX) {
        expect_skip("too many threads at a time, or blocks");
    }
    family_load();
    RUN(churn_of_short_threads_does_not_grow);
    return expect_status();
}
