/* SPDX-License-Identifier: MIT
 * ring THREADS ITEMS
 *
 * Measures: frees that all go to another thread, in batches and of many sizes. The threads form a
 * ring: each allocates batches of 64 blocks of 16 to 1024 bytes (small ones more often), passes
 * them to its right neighbour and frees what comes from the left. Every thread allocates all the
 * time and frees all the time, but never a block of its own.
 * Known from: message passing between actors, the case snmalloc was designed for.
 * Does not measure: local frees, blocks that stay.
 * One operation is one block: a malloc and a free. ITEMS is for each thread. */
#include "channel.h"

enum { BATCH = 64, CAPACITY = 16, SMALLEST = 16, LARGEST = 1024 };

typedef struct item {
    uint32_t size, number;
} item_t;

typedef struct batch {
    uint32_t count;
    item_t *items[BATCH];
} batch_t;

typedef struct work {
    channel_t **channels; /* number I leads to thread I */
    uint64_t items;
} work_t;

static batch_t *fill_batch(bench_rng_t *rng, uint64_t left) {
    batch_t *batch = bench_need(malloc(sizeof *batch), sizeof *batch);
    batch->count = left < BATCH ? (uint32_t)left : BATCH;
    for (uint32_t i = 0; i < batch->count; i++) {
        /* The smaller of two: small sizes are more frequent. */
        uint32_t one = bench_between(rng, SMALLEST, LARGEST);
        uint32_t other = bench_between(rng, SMALLEST, LARGEST);
        uint32_t size = one < other ? one : other;
        item_t *item = bench_need(malloc(size), size);
        bench_mark(item, size, (unsigned char)i);
        *item = (item_t){size, (uint32_t)left - i};
        batch->items[i] = item;
    }
    return batch;
}

static uint64_t empty_batch(batch_t *batch) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        item_t *item = batch->items[i];
        sum += item->size + item->number + ((unsigned char *)item)[item->size - 1];
        free(item);
    }
    free(batch);
    return sum;
}

static void body(bench_thread_t *thread) {
    const work_t *work = thread->context;
    channel_t *from = work->channels[thread->index];
    channel_t *to = work->channels[(thread->index + 1) % thread->count];
    bench_rng_t rng = bench_rng(thread->index);
    uint64_t to_make = work->items, to_free = work->items, sum = 0;
    batch_t *next = NULL; /* filled, but there was no room */
    unsigned turns = 0;
    bench_start_together(thread);
    while (to_make > 0 || next != NULL || to_free > 0) {
        bool moved = false;
        if (next == NULL && to_make > 0) {
            next = fill_batch(&rng, to_make);
            to_make -= next->count;
        }
        if (next != NULL && channel_send(to, next)) {
            next = NULL;
            moved = true;
        }
        batch_t *batch = to_free > 0 ? channel_receive(from) : NULL;
        if (batch != NULL) {
            to_free -= batch->count;
            sum += empty_batch(batch);
            moved = true;
        }
        if (moved) {
            turns = 0;
        } else {
            bench_relax(&turns);
        }
    }
    bench_stop_together(thread, thread->count * work->items);
    thread->check = sum;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS ITEMS");
    unsigned threads = (unsigned)bench_arg(1, 4, 1, 1024, "THREADS");
    uint64_t items = bench_arg(2, 2000000, 1, UINT32_MAX, "ITEMS");
    channel_t **channels = bench_need(calloc(threads, sizeof *channels), sizeof *channels);
    for (unsigned i = 0; i < threads; i++) {
        channels[i] = channel_make(CAPACITY);
    }

    uint64_t sum = bench_run_threads(threads, body, &(work_t){channels, items});

    for (unsigned i = 0; i < threads; i++) {
        free(channels[i]);
    }
    free(channels);
    return bench_finish(sum);
}
