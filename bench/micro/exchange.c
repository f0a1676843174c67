/* SPDX-License-Identifier: MIT
 * exchange THREADS ROUNDS [SLOTS SEED]
 *
 * Measures: the memory of threads that exchange blocks. In each round a thread makes 32 blocks of
 * 16 B to 16 KiB (each doubling about equally likely) for every other thread, sends them, and gets
 * 32 from each. It keeps those in random places of its table of SLOTS (512), and frees what was
 * there. So every block is freed by another thread than made it, each thread frees blocks of all
 * others, and what lives changes all the time but grows no more after the first rounds. See the
 * peak against the live bytes, and what is resident at the end, when the tables are full, against
 * what lives then. Each block is written at both ends and once in 4 KiB.
 * Known from: servers whose requests move between threads; the literature on blowup (Berger and
 * others, 2000).
 * Does not measure: local frees. Threads wait for each other each round, so that the work is the
 * same on each machine; where there are fewer processors than threads they yield a lot.
 * One operation is one pair of malloc and free. ROUNDS is for each thread. */
#include "channel.h"
#include "live.h"

enum { BATCH = 32, CAPACITY = 8, SMALLEST = LIVE_SMALLEST, LARGEST = 16 << 10, MOST_THREADS = 64 };

/* On cache lines of its own. */
typedef struct worker {
    _Alignas(64) live_t live; /* of what it made and freed */
    live_t held;              /* of what it has in its table, or has just made */
    bench_rng_t rng;
    live_block_t **slots;
} worker_t;

static struct {
    worker_t workers[MOST_THREADS];
    channel_t *channels[MOST_THREADS][MOST_THREADS]; /* from, to */
    uint64_t rounds;
    uint32_t slots;
} market;

static void send_batch(worker_t *worker, channel_t *channel) {
    live_block_t *batch = NULL;
    for (unsigned i = 0; i < BATCH; i++) {
        uint32_t size = bench_log_between(&worker->rng, SMALLEST, LARGEST);
        live_block_t *block = live_make(&worker->live, size);
        live_add(&worker->held, size);
        block->next = batch;
        batch = block;
    }
    if (!channel_send(channel, batch)) {
        bench_fail("a channel is full"); /* no thread is two rounds ahead of another */
    }
}

static void receive_batch(worker_t *worker, channel_t *channel) {
    unsigned turns = 0;
    live_block_t *block;
    while ((block = channel_receive(channel)) == NULL) {
        bench_relax(&turns);
    }
    while (block != NULL) {
        live_block_t *next = block->next;
        live_block_t **slot = &worker->slots[bench_below(&worker->rng, market.slots)];
        live_add(&worker->held, block->size);
        if (*slot != NULL) {
            worker->held.bytes -= (*slot)->size;
            live_end(&worker->live, *slot);
        }
        *slot = block;
        block = next;
    }
}

static void run_round(const bench_thread_t *thread, worker_t *worker) {
    int64_t before = worker->held.bytes;
    for (unsigned i = 1; i < thread->count; i++) {
        unsigned other = (thread->index + i) % thread->count;
        send_batch(worker, market.channels[thread->index][other]);
    }
    worker->held.bytes = before; /* what was sent is the receivers' */
    for (unsigned i = 1; i < thread->count; i++) {
        unsigned other = (thread->index + i) % thread->count;
        receive_batch(worker, market.channels[other][thread->index]);
    }
}

static uint64_t live_now(unsigned threads) {
    int64_t bytes = 0;
    for (unsigned i = 0; i < threads; i++) {
        bytes += market.workers[i].live.bytes;
    }
    return (uint64_t)bytes;
}

static void work(bench_thread_t *thread) {
    worker_t *worker = &market.workers[thread->index];
    worker->slots = live_table(&worker->live, market.slots);
    live_add(&worker->held, (int64_t)(market.slots * sizeof(live_block_t *)));
    bench_start_together(thread);
    for (uint64_t round = 0; round < market.rounds; round++) {
        run_round(thread, worker);
    }
    bench_stop_together(thread, market.rounds * thread->count * (thread->count - 1) * BATCH);
    if (thread->index == 0) { /* while all threads are there, with whatever they keep */
        bench_live_end(live_now(thread->count));
    }
    bench_meet(thread);
    for (uint32_t i = 0; i < market.slots; i++) {
        if (worker->slots[i] != NULL) {
            live_end(&worker->live, worker->slots[i]);
        }
    }
    free(worker->slots);
    thread->check = worker->live.sum;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "THREADS ROUNDS [SLOTS SEED]");
    unsigned threads = (unsigned)bench_arg(1, 4, 2, MOST_THREADS, "THREADS");
    market.rounds = bench_arg(2, 10000, 1, UINT32_MAX, "ROUNDS");
    market.slots = (uint32_t)bench_arg(3, 512, 1, 1u << 24, "SLOTS");
    uint64_t seed = bench_arg(4, 42, 0, UINT32_MAX, "SEED");
    for (unsigned i = 0; i < threads; i++) {
        market.workers[i].rng = bench_rng(seed + i);
        for (unsigned other = 0; other < threads; other++) {
            market.channels[i][other] = channel_make(CAPACITY);
        }
    }

    uint64_t sum = bench_run_threads(threads, work, NULL), peak = 0;

    for (unsigned i = 0; i < threads; i++) {
        peak += (uint64_t)market.workers[i].held.peak; /* not all at once: a close upper bound */
        for (unsigned other = 0; other < threads; other++) {
            free(market.channels[i][other]);
        }
    }
    bench_live_peak(peak);
    return bench_finish(sum);
}
