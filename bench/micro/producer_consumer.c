/* SPDX-License-Identifier: MIT
 * producer_consumer PAIRS ITEMS [SIZE]
 *
 * Measures: blocks that are allocated by one thread and all freed by another. Each of PAIRS
 * producers allocates ITEMS blocks of SIZE bytes, fills in a number and sends them through a queue
 * of 1024 pointers to its consumer, which reads and frees them. An allocator has to bring every
 * block back to the thread that needs it, or its memory grows with every item. Who finds the queue
 * full or empty waits until an eighth of it has changed: else the two fall into step and pass the
 * queue's cache lines to and fro with each item, for 0.2 or 1 of the time, as chance has it.
 * Known from: the pattern of the same name in the papers on Hoard (Berger and others, 2000), and of
 * every pipeline of threads.
 * Does not measure: local frees, varied sizes.
 * One operation is one item: a malloc and a free. ITEMS is for each pair. */
#include "channel.h"

enum { CAPACITY = 1024, BATCH = CAPACITY / 8 };

typedef struct work {
    channel_t **channels;
    uint64_t items;
    size_t size;
} work_t;

static void produce(channel_t *channel, uint64_t first, const work_t *work) {
    unsigned turns = 0;
    for (uint64_t i = 0; i < work->items; i++) {
        uint64_t *block = bench_need(malloc(work->size), work->size);
        bench_mark(block, work->size, (unsigned char)i);
        *block = first + i;
        while (!channel_send(channel, block)) {
            while (channel_filled(channel) > CAPACITY - BATCH) {
                bench_relax(&turns);
            }
            turns = 0;
        }
    }
}

static uint64_t consume(channel_t *channel, const work_t *work) {
    uint64_t sum = 0;
    unsigned turns = 0;
    for (uint64_t i = 0; i < work->items; i++) {
        uint64_t *block, left = work->items - i;
        while ((block = channel_receive(channel)) == NULL) {
            while (channel_filled(channel) < (left < BATCH ? left : BATCH)) {
                bench_relax(&turns);
            }
            turns = 0;
        }
        sum += *block + ((unsigned char *)block)[work->size - 1];
        free(block);
    }
    return sum;
}

static void body(bench_thread_t *thread) {
    const work_t *work = thread->context;
    unsigned pair = thread->index / 2;
    channel_t *channel = work->channels[pair];
    bench_start_together(thread);
    if (thread->index % 2 == 0) {
        produce(channel, pair * work->items, work);
    } else {
        thread->check = consume(channel, work);
    }
    bench_stop_together(thread, thread->count / 2 * work->items);
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "PAIRS ITEMS [SIZE]");
    unsigned pairs = (unsigned)bench_arg(1, 1, 1, 512, "PAIRS");
    uint64_t items = bench_arg(2, 8000000, 1, UINT64_MAX >> 16, "ITEMS");
    size_t size = bench_arg(3, 64, sizeof(uint64_t), 1u << 24, "SIZE");
    channel_t **channels = bench_need(calloc(pairs, sizeof *channels), pairs * sizeof *channels);
    for (unsigned i = 0; i < pairs; i++) {
        channels[i] = channel_make(CAPACITY);
    }

    uint64_t sum = bench_run_threads(2 * pairs, body, &(work_t){channels, items, size});

    for (unsigned i = 0; i < pairs; i++) {
        free(channels[i]);
    }
    free(channels);
    /* At most: the queue is full and each side holds one more. */
    bench_live_peak(pairs * (CAPACITY + 2) * (uint64_t)size);
    return bench_finish(sum);
}
