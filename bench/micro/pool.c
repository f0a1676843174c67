/* SPDX-License-Identifier: MIT
 * pool THREADS TASKS [CHAINS TURNS]
 *
 * Measures: a pool of threads whose tasks free what other tasks made, with work in between. Each
 * thread has an inbox. A task brings 24 blocks of 16 to 1024 bytes (each doubling about equally
 * likely) and one of 1 to 8 KiB: it reads and frees them, thinks (TURNS random numbers, 500), makes
 * as many for the task that follows it, and sends that one to a random thread. CHAINS (16) such
 * chains of tasks for each thread are under way, so threads seldom wait. With more than one thread
 * most blocks are freed by another thread than made them, a few at a time.
 * Known from: executors of servers and of languages' run-time systems (futures, actors, pipelines).
 * Does not measure: stealing of work; who frees is decided by the task, not by load, so that the
 * work is the same on each machine.
 * One operation is one block, tasks among them: a malloc and a free. TASKS is for each thread. */
#include "bench.h"

#include <stdatomic.h>

enum { BLOCKS = 24, SMALLEST = 16, LARGEST = 1024, BUFFER = 1 << 10, LARGEST_BUFFER = 8 << 10 };

typedef struct block {
    struct block *next;
    uint32_t size;
} block_t;

typedef struct task {
    struct task *next; /* in an inbox */
    block_t *blocks;
    bench_rng_t rng;
    uint64_t left; /* tasks of the chain, with this one */
} task_t;

/* On a cache line of its own. */
typedef struct inbox {
    _Alignas(64) _Atomic(task_t *) first;
} inbox_t;

typedef struct work {
    inbox_t *inboxes;
    uint64_t links; /* tasks in a chain */
    uint32_t chains, turns;
    _Alignas(64) atomic_uint running; /* chains that have not ended */
} work_t;

static block_t *make(bench_rng_t *rng, block_t *next, uint32_t smallest, uint32_t largest) {
    uint32_t size = bench_log_between(rng, smallest, largest);
    block_t *block = bench_need(malloc(size), size);
    bench_mark(block, size, (unsigned char)size);
    *block = (block_t){next, size};
    return block;
}

static task_t *make_task(bench_rng_t rng, uint64_t left) {
    task_t *task = bench_need(malloc(sizeof *task), sizeof *task);
    block_t *blocks = make(&rng, NULL, BUFFER, LARGEST_BUFFER);
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks = make(&rng, blocks, SMALLEST, LARGEST);
    }
    *task = (task_t){NULL, blocks, rng, left};
    return task;
}

static uint64_t free_blocks(block_t *block) {
    uint64_t sum = 0;
    while (block != NULL) {
        block_t *next = block->next;
        sum += block->size + ((unsigned char *)block)[block->size - 1];
        free(block);
        block = next;
    }
    return sum;
}

static void send(inbox_t *inbox, task_t *task) {
    task_t *first = atomic_load_explicit(&inbox->first, memory_order_relaxed);
    do {
        task->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&inbox->first, &first, task,
                                                    memory_order_release, memory_order_relaxed));
}

/* All tasks that are there, the newest first. */
static task_t *receive(inbox_t *inbox) {
    if (atomic_load_explicit(&inbox->first, memory_order_relaxed) == NULL) {
        return NULL;
    }
    return atomic_exchange_explicit(&inbox->first, NULL, memory_order_acquire);
}

static uint64_t run_task(work_t *work, task_t *task, unsigned threads) {
    uint64_t sum = free_blocks(task->blocks);
    for (uint32_t i = 0; i < work->turns; i++) {
        bench_random(&task->rng);
    }
    bench_rng_t rng = task->rng;
    uint64_t left = task->left - 1;
    free(task);
    if (left > 0) {
        uint32_t place = bench_below(&rng, threads);
        send(&work->inboxes[place], make_task(rng, left));
    } else {
        atomic_fetch_sub(&work->running, 1);
    }
    return sum + rng.state % 1024;
}

static void body(bench_thread_t *thread) {
    work_t *work = thread->context;
    inbox_t *inbox = &work->inboxes[thread->index];
    unsigned turns = 0;
    for (uint32_t i = 0; i < work->chains; i++) {
        send(inbox, make_task(bench_rng(thread->index * work->chains + i), work->links));
    }
    bench_start_together(thread);
    while (atomic_load_explicit(&work->running, memory_order_relaxed) > 0) {
        task_t *task = receive(inbox);
        if (task == NULL) {
            bench_relax(&turns);
            continue;
        }
        turns = 0;
        while (task != NULL) {
            task_t *next = task->next;
            thread->check += run_task(work, task, thread->count);
            task = next;
        }
    }
    bench_stop_together(thread, work->links * work->chains * thread->count * (BLOCKS + 2));
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS TASKS [CHAINS TURNS]");
    unsigned threads = (unsigned)bench_arg(1, 4, 1, 1024, "THREADS");
    uint64_t tasks = bench_arg(2, 100000, 1, UINT32_MAX, "TASKS");
    uint32_t chains = (uint32_t)bench_arg(3, 16, 1, 1024, "CHAINS");
    uint32_t turns = (uint32_t)bench_arg(4, 500, 0, 1u << 30, "TURNS");
    size_t size = threads * sizeof(inbox_t);
    work_t work = {bench_need(aligned_alloc(_Alignof(inbox_t), size), size),
                   tasks > chains ? tasks / chains : 1, chains, turns, threads * chains};
    for (unsigned i = 0; i < threads; i++) {
        atomic_init(&work.inboxes[i].first, NULL);
    }
    uint64_t sum = bench_run_threads(threads, body, &work);
    free(work.inboxes);
    return bench_finish(sum);
}
