/* SPDX-License-Identifier: MIT
 * sh8 THREADS ROUNDS [BLOCKS]
 *
 * Measures: long runs of frees of very small blocks, half of them another thread's. In a round a
 * thread makes BLOCKS (3000) blocks, in runs of 1 to 64 of one size; of ten runs three have 8
 * bytes, three 16, three 48, and one 1 to 1000. It frees the newer half, newest first, and sends
 * the rest to the next thread, which frees them in the order they were made. A thread with two such
 * batches waiting is sent no third one before it has freed one.
 * Known from: benchmarks of SMP heaps that mix small sizes and let threads free each other's.
 * Does not measure: large blocks, blocks that live long, memory that is given back.
 * One operation is one block: a malloc and a free. ROUNDS is for each thread. */
#include "bench.h"

#include <stdatomic.h>

enum { RUN = 64, LARGEST = 1000, WAITING = 2 };

typedef struct block {
    unsigned char *bytes;
    uint32_t size;
} block_t;

typedef struct batch {
    struct batch *next; /* in an inbox */
    uint32_t count;
    block_t blocks[];
} batch_t;

/* On a cache line of its own. */
typedef struct inbox {
    _Alignas(64) _Atomic(batch_t *) first;
    atomic_uint waiting;
} inbox_t;

typedef struct work {
    inbox_t *inboxes;
    uint64_t rounds;
    uint32_t blocks;
    _Alignas(64) atomic_uint running; /* threads that still send */
} work_t;

static uint32_t draw_size(bench_rng_t *rng) {
    static const uint32_t sizes[] = {8, 8, 8, 16, 16, 16, 48, 48, 48};
    uint32_t i = bench_below(rng, BENCH_COUNT(sizes) + 1);
    return i < BENCH_COUNT(sizes) ? sizes[i] : bench_log_between(rng, 1, LARGEST);
}

static batch_t *make_batch(bench_rng_t *rng, uint32_t count) {
    size_t bytes = sizeof(batch_t) + count * sizeof(block_t);
    batch_t *batch = bench_need(malloc(bytes), bytes);
    batch->count = count;
    for (uint32_t i = 0; i < count;) {
        uint32_t size = draw_size(rng), end = i + bench_between(rng, 1, RUN);
        for (; i < end && i < count; i++) {
            batch->blocks[i] = (block_t){bench_need(malloc(size), size), size};
            bench_mark(batch->blocks[i].bytes, size, (unsigned char)i);
        }
    }
    return batch;
}

static uint64_t end_block(const block_t *block) {
    uint64_t sum = bench_marks(block->bytes, block->size) + block->size;
    free(block->bytes);
    return sum;
}

static uint64_t free_newer_half(batch_t *batch) {
    uint64_t sum = 0;
    for (uint32_t end = batch->count / 2; batch->count > end; batch->count--) {
        sum += end_block(&batch->blocks[batch->count - 1]);
    }
    return sum;
}

static void send(inbox_t *inbox, batch_t *batch) {
    atomic_fetch_add(&inbox->waiting, 1);
    batch_t *first = atomic_load_explicit(&inbox->first, memory_order_relaxed);
    do {
        batch->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&inbox->first, &first, batch,
                                                    memory_order_release, memory_order_relaxed));
}

/* Frees what was sent here. */
static uint64_t receive(inbox_t *inbox) {
    uint64_t sum = 0;
    if (atomic_load_explicit(&inbox->first, memory_order_relaxed) == NULL) {
        return 0;
    }
    batch_t *batch = atomic_exchange_explicit(&inbox->first, NULL, memory_order_acquire);
    while (batch != NULL) {
        batch_t *next = batch->next;
        for (uint32_t i = 0; i < batch->count; i++) {
            sum += end_block(&batch->blocks[i]);
        }
        free(batch);
        atomic_fetch_sub(&inbox->waiting, 1);
        batch = next;
    }
    return sum;
}

static void body(bench_thread_t *thread) {
    work_t *work = thread->context;
    bench_rng_t rng = bench_rng(thread->index);
    inbox_t *own = &work->inboxes[thread->index];
    inbox_t *other = &work->inboxes[(thread->index + 1) % thread->count];
    unsigned turns = 0;
    bench_start_together(thread);
    for (uint64_t i = 0; i < work->rounds; i++) {
        batch_t *batch = make_batch(&rng, work->blocks);
        thread->check += free_newer_half(batch);
        while (atomic_load(&other->waiting) >= WAITING) {
            thread->check += receive(own);
            bench_relax(&turns);
        }
        turns = 0;
        send(other, batch);
        thread->check += receive(own);
    }
    atomic_fetch_sub(&work->running, 1);
    while (atomic_load(&work->running) > 0) {
        thread->check += receive(own);
        bench_relax(&turns);
    }
    thread->check += receive(own);
    bench_stop_together(thread, work->rounds * thread->count * work->blocks);
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS ROUNDS [BLOCKS]");
    unsigned threads = (unsigned)bench_arg(1, 4, 1, 1024, "THREADS");
    uint64_t rounds = bench_arg(2, 1000, 1, UINT32_MAX, "ROUNDS");
    uint32_t blocks = (uint32_t)bench_arg(3, 3000, 2, 1u << 24, "BLOCKS");
    size_t size = threads * sizeof(inbox_t);
    work_t work = {bench_need(aligned_alloc(_Alignof(inbox_t), size), size), rounds, blocks,
                   threads};
    for (unsigned i = 0; i < threads; i++) {
        atomic_init(&work.inboxes[i].first, NULL);
        atomic_init(&work.inboxes[i].waiting, 0);
    }
    uint64_t sum = bench_run_threads(threads, body, &work);
    free(work.inboxes);
    return bench_finish(sum);
}
