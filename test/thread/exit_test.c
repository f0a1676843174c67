/* SPDX-License-Identifier: MIT
 *
 * Threads that exit with full caches and threads that sit idle with them. Is the memory used again
 * by the next generation, does an idle thread cost little, can its blocks be freed from outside?
 * Arguments: generations (default 150), idle threads (default 200).
 */
#include "thread/block.h"
#include "thread/gate.h"

enum { GENERATION_THREADS = 4, CACHE_BLOCKS = 2000, IDLE_MAX = 1000, IDLE_BLOCKS = 200 };

static size_t generation_count, idle_count;

/* Fills the caches of many sizes: allocates a pile, frees all of it, exits. */
static void *fill_caches(void *argument) {
    static _Thread_local block_t *blocks[CACHE_BLOCKS];
    uint64_t state = (uintptr_t)argument + 1;
    blocks_make(blocks, CACHE_BLOCKS, &state);
    blocks_unmake(blocks, CACHE_BLOCKS, &state);
    return NULL;
}

static void run_generations(size_t count) {
    for (size_t generation = 0; generation < count; ++generation) {
        pthread_t threads[GENERATION_THREADS];
        threads_start(threads, GENERATION_THREADS, fill_caches, generation * 7);
        threads_join(threads, GENERATION_THREADS);
    }
}

static void exit_with_full_caches_leaves_memory_for_the_next_generation(void) {
    run_generations(generation_count / 10 + 1);
    size_t before = expect_rss_bytes();
    run_generations(generation_count);
    expect_rss_at_most(before, before / 2 + (16 << 20));
}

static gate_t idle_gate = GATE_CLOSED;
static block_t *idle_legacy[IDLE_MAX];

static void *idle_life(void *argument) {
    size_t index = (uintptr_t)argument;
    uint64_t state = index + 1;
    block_t *blocks[IDLE_BLOCKS];
    blocks_make(blocks, IDLE_BLOCKS, &state);
    idle_legacy[index] = blocks[0];
    for (size_t i = 1; i < IDLE_BLOCKS; ++i) {
        block_unmake(blocks[i], &state);
    }
    gate_sleep(&idle_gate);
    block_unmake(block_make(&state), &state); /* the cache still works after the rest */
    return NULL;
}

static void idle_threads_cost_little_and_their_blocks_can_be_freed(void) {
    static pthread_t threads[IDLE_MAX];
    size_t before = expect_rss_bytes();
    threads_start(threads, idle_count, idle_life, 0);
    gate_await(&idle_gate, idle_count);
    expect_rss_at_most(before, idle_count * (1 << 20) + (32 << 20));
    uint64_t state = 99;
    blocks_unmake(idle_legacy, idle_count, &state);
    gate_open(&idle_gate);
    threads_join(threads, idle_count);
}

int main(int argc, char **argv) {
    generation_count = expect_arg(argc, argv, 1, 150);
    idle_count = expect_arg(argc, argv, 2, 200);
    if (idle_count > IDLE_MAX) {
        expect_skip("too many idle threads");
    }
    family_load();
    RUN(exit_with_full_caches_leaves_memory_for_the_next_generation);
    RUN(idle_threads_cost_little_and_their_blocks_can_be_freed);
    return expect_status();
}
