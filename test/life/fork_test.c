/* SPDX-License-Identifier: MIT
 *
 * fork in a process whose threads allocate: do parent and children go on allocating and freeing,
 * also what they inherited, without a hang, through _exit and exit, in chains and with threads?
 * Arguments: forks (default 500), allocating threads (default 8).
 */
#include <sys/wait.h>

#include "thread/block.h"

enum { THREADS_MAX = 64, INHERITED_COUNT = 256, CHAIN_LENGTH = 40 };

static size_t fork_count, thread_count;
static atomic_bool stop;
static block_t *inherited[INHERITED_COUNT];

static void *allocate_until_stopped(void *argument) {
    enum { KEPT_COUNT = 100 };
    uint64_t state = (uintptr_t)argument + 1;
    block_t *blocks[KEPT_COUNT] = {NULL};
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        blocks_churn(blocks, KEPT_COUNT, 1, &state);
    }
    blocks_unmake(blocks, KEPT_COUNT, &state);
    return NULL;
}

static void work(uint64_t seed) {
    enum { WORK_COUNT = 200 };
    uint64_t state = seed + 1;
    block_t *blocks[WORK_COUNT];
    blocks_make(blocks, WORK_COUNT, &state);
    blocks_unmake(blocks, WORK_COUNT, &state);
}

static void *work_in_thread(void *argument) {
    work((uintptr_t)argument);
    return NULL;
}

static void child_main(size_t index) {
    uint64_t state = index + 1;
    expect_watchdog();
    work(index);
    blocks_unmake(inherited, INHERITED_COUNT, &state);
    work(index + 1);
    if (index % 5 == 0 && !expect_is_emulated()) {
        pthread_join(thread_start(work_in_thread, (void *)(uintptr_t)index), NULL);
    }
    if (index % 2 == 0) {
        _exit(0);
    }
    exit(0);
}

static void fork_with_allocating_threads_leaves_both_sides_working(void) {
    if (expect_is_emulated()) {
        return;
    }
    pthread_t threads[THREADS_MAX];
    uint64_t state = 1;
    threads_start(threads, thread_count, allocate_until_stopped, 0);
    blocks_make(inherited, INHERITED_COUNT, &state);
    for (size_t i = 0; i < fork_count; ++i) {
        pid_t child = fork();
        if (child == 0) {
            child_main(i);
        }
        size_t place = i % INHERITED_COUNT; /* the parent goes on while the child lives */
        block_unmake(inherited[place], &state);
        inherited[place] = block_make(&state);
        EXPECT_CHILD(child, 0);
    }
    atomic_store(&stop, true);
    threads_join(threads, thread_count);
    blocks_unmake(inherited, INHERITED_COUNT, &state);
}

/* Every child forks the next one, allocating before and after. */
static void fork_chain_works_at_every_depth(void) {
    block_t *handed_down[CHAIN_LENGTH];
    uint64_t state = 5;
    pid_t first = fork();
    if (first != 0) {
        EXPECT_CHILD(first, 0);
        return;
    }
    expect_watchdog();
    for (size_t depth = 0; depth < CHAIN_LENGTH; ++depth) {
        handed_down[depth] = block_make(&state);
        work(depth);
        pid_t child = fork();
        if (child != 0) {
            int status = -1;
            _exit(child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1);
        }
    }
    for (size_t depth = 0; depth < CHAIN_LENGTH; ++depth) {
        block_unmake(handed_down[depth], &state);
    }
    exit(0);
}

/* A thread other than the main one forks; in the child it is the only one. */
static void *fork_here(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    block_t *mine = block_make(&state);
    pid_t child = fork();
    if (child == 0) {
        expect_watchdog();
        block_unmake(mine, &state);
        work(state);
        if (!expect_is_emulated()) {
            pthread_join(thread_start(work_in_thread, NULL), NULL);
        }
        exit(0);
    }
    EXPECT_CHILD(child, 0);
    block_unmake(mine, &state);
    return NULL;
}

static void fork_from_several_threads_at_once_works(void) {
    enum { FORKER_COUNT = 6, ROUNDS = 10 };
    if (expect_is_emulated()) {
        return;
    }
    for (size_t round = 0; round < ROUNDS; ++round) {
        pthread_t threads[FORKER_COUNT];
        threads_start(threads, FORKER_COUNT, fork_here, round * 10);
        threads_join(threads, FORKER_COUNT);
    }
}

/* Handlers of the program run between those of the allocator and may allocate on all sides. */
static void allocate_in_handler(void) {
    work(77);
}

static void fork_handlers_may_allocate(void) {
    EXPECT_EQ(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler), 0);
    for (size_t i = 0; i < 20; ++i) {
        pid_t child = fork();
        if (child == 0) {
            expect_watchdog();
            work(i);
            exit(0);
        }
        EXPECT_CHILD(child, 0);
    }
}

int main(int argc, char **argv) {
    fork_count = expect_arg(argc, argv, 1, expect_cases(500));
    thread_count = expect_arg(argc, argv, 2, 8);
    if (thread_count > THREADS_MAX) {
        expect_skip("too many threads");
    }
    family_load();
    expect_watchdog();
    RUN(fork_with_allocating_threads_leaves_both_sides_working);
    RUN(fork_chain_works_at_every_depth);
    RUN(fork_from_several_threads_at_once_works);
    RUN(fork_handlers_may_allocate);
    return expect_status();
}
