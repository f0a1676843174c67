/* SPDX-License-Identifier: MIT
 * day SECONDS [SEED THREADS TICK_MS]
 *
 * Measures: a server's day, in SECONDS seconds (4) from six in the morning to six. Load rises in
 * the morning, dips at lunch, peaks in the afternoon; in the night there is next to none. THREADS
 * threads (3) serve requests; each has sessions (some 30 small blocks and a buffer that live for
 * minutes to hours), large buffers, and a cache whose entries are replaced at random, so that some
 * of each hour stay. A request makes a burst of temporaries and a reply, which the next thread
 * gets: it frees it or keeps it in its cache. See the peak against the live bytes, and what is
 * resident at the end of the night against what lives on: the caches, and a few sessions. The work
 * is the same for the same arguments, whatever the machine: the day is made of ticks with a fixed
 * amount of work each, after which the threads meet, and sleep until TICK_MS (10) have passed. A
 * tick that takes longer makes the day longer; with TICK_MS 0 no thread sleeps, and the day takes
 * as long as its work. A longer day has more requests and as many sessions. What a request holds
 * while it is served, some 100 KiB, is not in the live peak. No warm-up: the morning is part of it.
 * Each block is written at both ends and once in 4 KiB. Known from: servers that are as large in
 * the night as they were at noon. Does not measure: throughput; the threads sleep most of the time,
 * unless TICK_MS is 0. One operation is one pair of malloc and free. */
#include "live.h"

enum { MOST_WORKERS = 1024, HOURS = 24, CACHE = 2048, FULL = 100, TICKS_A_SECOND = 100 };
enum { SESSIONS_AN_HOUR = 1500, LARGE_AN_HOUR = 6, REQUESTS_A_TICK = 40 }; /* of a thread */

/* Percent of the full load; the first hour is that from 6 to 7. */
static const uint8_t loads[HOURS] = {10, 30, 60, 85, 90, 80, 45, 55, 85, 100, 95, 80,
                                     60, 45, 30, 15, 4,  2,  2,  1,  1,  1,   1,  2};

/* On cache lines of its own. What it holds is its thread's, but for OUT. */
typedef struct worker {
    _Alignas(64) live_t live;
    bench_rng_t rng;
    live_block_t **cache;
    live_block_t **ending; /* by tick: what ends then; after the last: what outlives the day */
    live_block_t *out[2];  /* replies made in even and odd ticks; the next thread takes them a
                              tick later */
    uint64_t sessions, large, requests; /* parts of one that are due */
} worker_t;

static struct {
    worker_t workers[MOST_WORKERS];
    unsigned count;       /* of them */
    uint32_t ticks, hour; /* in a day, in an hour */
    uint32_t tick_ms;
    struct timespec until;
    int64_t live, peak;
    uint64_t operations;
} day;

static void push(live_block_t **list, live_block_t *block) {
    block->next = *list;
    *list = block;
}

/* How many of AMOUNT × LOAD / PARTS are due, and what is left over for the next tick. */
static uint64_t due(uint64_t *credit, uint64_t amount, uint32_t load, uint64_t parts) {
    *credit += amount * load;
    uint64_t count = *credit / (parts * FULL);
    *credit %= parts * FULL;
    return count;
}

/* The list of what ends some time between an eighth of an hour and so many hours from TICK on. */
static live_block_t **ending_in(worker_t *worker, uint32_t tick, uint32_t hours) {
    uint32_t eighths = bench_log_between(&worker->rng, 16, hours * 128);
    uint32_t end = tick + 1 + (uint32_t)((uint64_t)eighths * day.hour / 128);
    return &worker->ending[end < day.ticks ? end : day.ticks];
}

static void begin_session(worker_t *worker, uint32_t tick) {
    live_block_t **ending = ending_in(worker, tick, 4);
    uint32_t objects = bench_between(&worker->rng, 16, 48);
    for (uint32_t i = 0; i < objects; i++) {
        push(ending, live_make(&worker->live, bench_log_between(&worker->rng, 16, 512)));
    }
    push(ending, live_make(&worker->live, bench_log_between(&worker->rng, 1 << 10, 16 << 10)));
}

/* The smaller of two random places: entries at the end of the cache stay long. */
static live_block_t **cache_place(worker_t *worker) {
    uint32_t one = bench_below(&worker->rng, CACHE), other = bench_below(&worker->rng, CACHE);
    return &worker->cache[one < other ? one : other];
}

static void keep(worker_t *worker, live_block_t *block) {
    live_block_t **place = cache_place(worker);
    if (*place != NULL) {
        live_end(&worker->live, *place);
    }
    *place = block;
}

static void serve(worker_t *worker, live_block_t **replies) {
    enum { LOOKS = 8 };
    live_block_t *temporaries = NULL;
    uint32_t count = bench_between(&worker->rng, 16, 96);
    push(&temporaries,
         live_make(&worker->live, bench_log_between(&worker->rng, 4 << 10, 64 << 10)));
    for (uint32_t i = 0; i < count; i++) {
        push(&temporaries, live_make(&worker->live, bench_log_between(&worker->rng, 16, 2048)));
    }
    for (unsigned look = 0; look < LOOKS; look++) {
        const live_block_t *entry = *cache_place(worker);
        worker->live.sum += entry != NULL ? entry->size : 0;
    }
    keep(worker, live_make(&worker->live, bench_log_between(&worker->rng, 64, 8 << 10)));
    push(replies, live_make(&worker->live, bench_log_between(&worker->rng, 64, 8 << 10)));
    live_end_list(&worker->live, &temporaries);
}

/* Every fourth reply stays in the cache of who gets it. */
static void take_replies(worker_t *worker, live_block_t *reply) {
    enum { KEEP_EVERY = 4 };
    for (unsigned number = 0; reply != NULL; number++) {
        live_block_t *next = reply->next;
        if (number % KEEP_EVERY == 0) {
            keep(worker, reply);
        } else {
            live_end(&worker->live, reply);
        }
        reply = next;
    }
}

static void run_tick(worker_t *worker, worker_t *before, uint32_t tick) {
    uint32_t load = loads[(uint64_t)tick * HOURS / day.ticks];
    live_end_list(&worker->live, &worker->ending[tick]);
    live_block_t *replies = before->out[(tick + 1) % 2];
    before->out[(tick + 1) % 2] = NULL;
    take_replies(worker, replies);
    for (uint64_t n = due(&worker->sessions, SESSIONS_AN_HOUR, load, day.hour); n > 0; n--) {
        begin_session(worker, tick);
    }
    for (uint64_t n = due(&worker->large, LARGE_AN_HOUR, load, day.hour); n > 0; n--) {
        uint32_t size = bench_log_between(&worker->rng, 256 << 10, 4 << 20);
        push(ending_in(worker, tick, 1), live_make(&worker->live, size));
    }
    for (uint64_t n = due(&worker->requests, REQUESTS_A_TICK, load, 1); n > 0; n--) {
        serve(worker, &worker->out[tick % 2]);
    }
}

/* By one thread, while the others wait: what lives, and when the next tick begins. */
static void end_tick(void) {
    day.live = 0;
    day.operations = 0;
    for (unsigned i = 0; i < day.count; i++) {
        day.live += day.workers[i].live.bytes;
        day.operations += day.workers[i].live.operations;
    }
    day.peak = day.live > day.peak ? day.live : day.peak;
    live_next_tick(&day.until, day.tick_ms);
}

static void end_worker(worker_t *worker) {
    for (unsigned i = 0; i < CACHE; i++) {
        if (worker->cache[i] != NULL) {
            live_end(&worker->live, worker->cache[i]);
        }
    }
    live_end_list(&worker->live, &worker->ending[day.ticks]);
    live_end_list(&worker->live, &worker->out[0]);
    live_end_list(&worker->live, &worker->out[1]);
    free(worker->cache);
    free(worker->ending);
}

static void work(bench_thread_t *thread) {
    worker_t *worker = &day.workers[thread->index];
    worker_t *before = &day.workers[(thread->index + day.count - 1) % day.count];
    worker->cache = live_table(&worker->live, CACHE);
    worker->ending = live_table(&worker->live, day.ticks + 1);
    bench_start_together(thread);
    for (uint32_t tick = 0; tick < day.ticks; tick++) {
        run_tick(worker, before, tick);
        bench_meet(thread);
        if (thread->index == 0) {
            end_tick();
        }
        bench_meet(thread);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &day.until, NULL);
    }
    bench_stop_together(thread, day.operations);
    if (thread->index == 0) { /* while all threads are there, with whatever they keep */
        bench_live_end((uint64_t)day.live);
    }
    bench_meet(thread);
    end_worker(worker);
    thread->check = worker->live.sum;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "SECONDS [SEED THREADS TICK_MS]");
    uint64_t seconds = bench_arg(1, 4, 1, 86400, "SECONDS");
    uint64_t seed = bench_arg(2, 42, 0, UINT32_MAX, "SEED");
    day.count = (unsigned)bench_arg(3, 3, 1, MOST_WORKERS, "THREADS");
    day.tick_ms = (uint32_t)bench_arg(4, 10, 0, 999, "TICK_MS");
    day.ticks = (uint32_t)seconds * TICKS_A_SECOND;
    day.hour = day.ticks / HOURS;
    for (unsigned i = 0; i < day.count; i++) {
        day.workers[i].rng = bench_rng(seed + i);
    }
    clock_gettime(CLOCK_MONOTONIC, &day.until);
    uint64_t sum = bench_run_threads(day.count, work, NULL);
    bench_live_peak((uint64_t)day.peak);
    return bench_finish(sum);
}
