/* SPDX-License-Identifier: MIT
 * epoch THREADS OPS [SLOTS BATCH]
 *
 * Measures: frees that are put off and then come all at once, mostly of other threads' blocks. The
 * threads share a table of SLOTS (4096) nodes for each of them. A thread puts a new node of 32 to
 * 512 bytes (each doubling about equally likely) into a random place and retires the node that was
 * there. Retired nodes wait until no reader could still see them: when a thread has retired BATCH
 * (10 000), it frees the batch that it retired two batches earlier, in one go. With more than one
 * thread most of these were made by others, and the blocks of all threads lie mixed in each batch.
 * Known from: RCU and epoch-based reclamation (Fraser 2004), as in concurrent maps and in
 * databases. Does not measure: readers, nor how they say that they are done. One operation is one
 * node: a malloc and, later, a free. OPS is for each thread. */
#include "bench.h"

#include <stdatomic.h>

enum { SMALLEST = 32, LARGEST = 512, GENERATIONS = 3 };

typedef struct node {
    struct node *next;
    uint32_t size, number;
} node_t;

typedef struct work {
    _Atomic(node_t *) *table;
    uint64_t operations;
    uint32_t slots, batch; /* of each thread */
} work_t;

/* Of one thread: what it has retired, by generation. */
typedef struct limbo {
    node_t *retired[GENERATIONS];
    uint32_t newest, count; /* of the newest generation */
    uint64_t sum;
} limbo_t;

static node_t *make(bench_rng_t *rng) {
    uint32_t size = bench_log_between(rng, SMALLEST, LARGEST), number = (uint32_t)bench_random(rng);
    node_t *node = bench_need(malloc(size), size);
    bench_mark(node, size, (unsigned char)number);
    *node = (node_t){NULL, size, number};
    return node;
}

static uint64_t end(node_t *node) {
    uint64_t sum = (uint64_t)node->size + node->number + ((unsigned char *)node)[node->size - 1];
    free(node);
    return sum;
}

static void free_generation(limbo_t *limbo, unsigned generation) {
    node_t *node = limbo->retired[generation];
    limbo->retired[generation] = NULL;
    while (node != NULL) {
        node_t *next = node->next;
        limbo->sum += end(node);
        node = next;
    }
}

static void retire(limbo_t *limbo, node_t *node, uint32_t batch) {
    node->next = limbo->retired[limbo->newest];
    limbo->retired[limbo->newest] = node;
    if (++limbo->count == batch) {
        limbo->newest = (limbo->newest + 1) % GENERATIONS;
        limbo->count = 0;
        free_generation(limbo, limbo->newest); /* the oldest makes place for a new one */
    }
}

static void replace(const work_t *work, limbo_t *limbo, bench_rng_t *rng, uint32_t places,
                    uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        node_t *node = make(rng);
        node = atomic_exchange(&work->table[bench_below(rng, places)], node);
        retire(limbo, node, work->batch);
    }
}

static void body(bench_thread_t *thread) {
    const work_t *work = thread->context;
    bench_rng_t rng = bench_rng(thread->index);
    limbo_t limbo = {.sum = 0};
    uint32_t first = thread->index * work->slots, places = thread->count * work->slots;
    for (uint32_t i = 0; i < work->slots; i++) {
        work->table[first + i] = make(&rng);
    }
    bench_meet(thread);
    replace(work, &limbo, &rng, places, (uint64_t)GENERATIONS * work->batch);
    bench_start_together(thread);
    replace(work, &limbo, &rng, places, work->operations);
    bench_stop_together(thread, thread->count * work->operations);
    for (unsigned i = 0; i < GENERATIONS; i++) {
        free_generation(&limbo, i);
    }
    for (uint32_t i = 0; i < work->slots; i++) {
        limbo.sum += end(work->table[first + i]);
    }
    thread->check = limbo.sum;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS OPS [SLOTS BATCH]");
    unsigned threads = (unsigned)bench_arg(1, 4, 1, 1024, "THREADS");
    uint64_t operations = bench_arg(2, 3000000, 1, UINT64_MAX >> 16, "OPS");
    uint32_t slots = (uint32_t)bench_arg(3, 4096, 8, 1u << 20, "SLOTS");
    uint32_t batch = (uint32_t)bench_arg(4, 10000, 1, 1u << 24, "BATCH");
    size_t size = sizeof(_Atomic(node_t *)) * threads * slots;
    work_t work = {bench_need(aligned_alloc(64, (size + 63) & ~(size_t)63), size), operations,
                   slots, batch};
    uint64_t sum = bench_run_threads(threads, body, &work);
    free(work.table);
    return bench_finish(sum);
}
