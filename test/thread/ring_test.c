/* SPDX-License-Identifier: MIT
 *
 * Threads that free each other's blocks: each puts what it allocates into a random mailbox and
 * frees what it finds there. Does every block keep its contents, and does memory stay bounded?
 * Arguments: threads (default 64), exchanges a thread (default 20 000), mailboxes a thread (8).
 */
#include "thread/block.h"

enum { THREADS_MAX = 256, BOXES_MAX = 64 };

static size_t thread_count, exchange_count, box_count;
static _Atomic(block_t *) boxes[THREADS_MAX * BOXES_MAX];

/* All threads of a run live at the same time, in every run: how much memory a run needs depends on
 * how many there are at once, and two runs are compared. */
static pthread_barrier_t all_here;

static void *exchange(void *argument) {
    pthread_barrier_wait(&all_here);
    uint64_t state = 0x9e3779b97f4a7c15u * ((uintptr_t)argument + 1);
    size_t boxes_in_use = thread_count * box_count;
    for (size_t i = 0; i < exchange_count; ++i) {
        block_t *mine = block_make(&state);
        size_t box = expect_random(&state) % boxes_in_use;
        block_unmake(atomic_exchange_explicit(&boxes[box], mine, memory_order_acq_rel), &state);
    }
    pthread_barrier_wait(&all_here);
    return NULL;
}

static void run_threads(void) {
    static pthread_t threads[THREADS_MAX];
    EXPECT_EQ(pthread_barrier_init(&all_here, NULL, (unsigned)thread_count), 0);
    threads_start(threads, thread_count, exchange, 0);
    threads_join(threads, thread_count);
    pthread_barrier_destroy(&all_here);
}

static void empty_boxes(void) {
    uint64_t state = 1;
    for (size_t i = 0; i < thread_count * box_count; ++i) {
        block_unmake(atomic_exchange(&boxes[i], NULL), &state);
    }
}

static void ring_of_threads_keeps_contents_and_does_not_grow(void) {
    run_threads();
    size_t before = expect_rss_bytes();
    run_threads();
    expect_rss_at_most(before, before / 2 + ((expect_is_hardened() ? 96u : 32u) << 20));
    empty_boxes();
}

int main(int argc, char **argv) {
    thread_count = expect_arg(argc, argv, 1, 64);
    exchange_count = expect_arg(argc, argv, 2, expect_cases(20000));
    box_count = expect_arg(argc, argv, 3, 8);
    if (thread_count > THREADS_MAX || box_count > BOXES_MAX) {
        expect_skip("too many threads or mailboxes");
    }
    family_load();
    RUN(ring_of_threads_keeps_contents_and_does_not_grow);
    return expect_status();
}
