/* SPDX-License-Identifier: MIT
 *
 * Several threads fork at once while others allocate, free each other's blocks, start and end. Does
 * every child work: allocate, free blocks that others made before the fork, start a thread, trim;
 * and end? fork_test.c in ../life has one thread that forks, and allocation without remote frees.
 * Arguments: forks (default 300), threads that fork (4), that allocate (4), that start and end
 * others (2), seed (1).
 */
#include "thread/mailbox.h"

enum { THREADS_MAX = 32, OWN_COUNT = 64, WORK_COUNT = 150 };

static size_t fork_count, forker_count, allocator_count, starter_count;
static uint64_t seed;
static _Atomic size_t forks_begun;
static atomic_bool is_over;

static uint64_t state_of(size_t kind, size_t index) {
    return (seed * 31 + kind) * 0x9e3779b97f4a7c15u + index + 1;
}

/* Allocates and frees, own blocks and those of others. */
static void *work(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    block_t *blocks[WORK_COUNT];
    blocks_make(blocks, WORK_COUNT, &state);
    for (size_t i = 0; i < WORK_COUNT; ++i) {
        if (i % 2 == 0) {
            blocks[i] = mailbox_swap(blocks[i], &state);
        }
        block_unmake(blocks[i], &state);
    }
    return NULL;
}

static void *allocate_until_over(void *argument) {
    uint64_t state = state_of(1, (uintptr_t)argument);
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        work((void *)(uintptr_t)expect_random(&state));
    }
    return NULL;
}

static void *start_until_over(void *argument) {
    uint64_t state = state_of(2, (uintptr_t)argument);
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        pthread_t thread = thread_start(work, (void *)(uintptr_t)expect_random(&state));
        EXPECT_EQ(pthread_join(thread, NULL), 0);
    }
    return NULL;
}

/* The child has one thread and, in the mailboxes and in `own`, blocks of many that are gone. */
__attribute__((noreturn)) static void child_main(block_t **own, uint64_t state) {
    expect_watchdog();
    work((void *)(uintptr_t)expect_random(&state));
    mailbox_empty_all(&state);
    blocks_unmake(own, OWN_COUNT, &state);
    if (!expect_is_emulated()) {
        pthread_t thread = thread_start(work, (void *)(uintptr_t)expect_random(&state));
        EXPECT_EQ(pthread_join(thread, NULL), 0);
    }
    if (family.trim != NULL) {
        family.trim(0);
    }
    work((void *)(uintptr_t)expect_random(&state));
    _exit(0);
}

static void *fork_until_over(void *argument) {
    uint64_t state = state_of(3, (uintptr_t)argument);
    block_t *own[OWN_COUNT] = {NULL};
    while (atomic_fetch_add(&forks_begun, 1) < fork_count) {
        for (size_t i = 0; i < OWN_COUNT; i += 1 + expect_random(&state) % 4) {
            own[i] = mailbox_swap(own[i], &state);
            if (own[i] == NULL) {
                own[i] = block_make(&state);
            }
        }
        pid_t child = fork();
        if (child == 0) {
            child_main(own, state);
        }
        for (size_t i = 0; i < OWN_COUNT; i += 8) { /* while the child lives */
            block_unmake(own[i], &state);
            own[i] = block_make(&state);
        }
        EXPECT_CHILD(child, 0);
    }
    blocks_unmake(own, OWN_COUNT, &state);
    return NULL;
}

static void fork_under_load_leaves_every_child_working(void) {
    static pthread_t forkers[THREADS_MAX], allocators[THREADS_MAX], starters[THREADS_MAX];
    threads_start(allocators, allocator_count, allocate_until_over, 0);
    threads_start(starters, starter_count, start_until_over, 0);
    threads_start(forkers, forker_count, fork_until_over, 0);
    threads_join(forkers, forker_count);
    atomic_store(&is_over, true);
    threads_join(allocators, allocator_count);
    threads_join(starters, starter_count);
    uint64_t state = seed + 1;
    mailbox_empty_all(&state);
}

int main(int argc, char **argv) {
    fork_count = expect_arg(argc, argv, 1, expect_cases(300));
    forker_count = expect_arg(argc, argv, 2, 4);
    allocator_count = expect_arg(argc, argv, 3, 4);
    starter_count = expect_arg(argc, argv, 4, 2);
    seed = expect_arg(argc, argv, 5, 1);
    if (forker_count > THREADS_MAX || allocator_count > THREADS_MAX ||
        starter_count > THREADS_MAX) {
        expect_skip("too many threads");
    }
    expect_say("fork_load_test %zu %zu %zu %zu %llu\n", fork_count, forker_count, allocator_count,
               starter_count, (unsigned long long)seed);
    family_load();
    RUN(fork_under_load_leaves_every_child_working);
    return expect_status();
}
