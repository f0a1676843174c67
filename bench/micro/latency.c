/* SPDX-License-Identifier: MIT
 * latency PATTERN OPS [THREADS]
 *
 * Measures: not the mean but every single call: each malloc and each free is timed, and the result
 * line tells the percentiles and the whole histogram. PATTERN is
 *   mixed    10 000 slots, random ones freed and filled with 16 to 1024 bytes;
 *   burst    2000 blocks of 16 to 1024 bytes allocated, then all freed in the same order;
 *   large    64 slots, random ones freed and filled with 32 KiB to 1 MiB, every OS page written;
 *   threads  as mixed, but half of the blocks go to whichever thread finds them (2 threads).
 * Known from: latency harnesses of servers; the buckets are those of HDR histograms.
 * Does not measure: page faults on first use of a block, which happen outside malloc. The highest
 * values hold whatever the kernel and the machine did during a call: compare them between
 * allocators on one machine, never by themselves. The median cost of the clock is subtracted.
 * One operation is one call. OPS is for each thread. */
#include "histogram.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum pattern { MIXED, BURST, LARGE, THREADS };

enum { SLOTS = 10000, LARGE_SLOTS = 64, BURST_BLOCKS = 2000, SHARED = 1024, STRIDE = 4096 };

typedef struct block {
    uint32_t size, mark;
} block_t;

typedef struct times {
    _Alignas(64) histogram_t of_malloc; /* no cache line holds parts of two threads' */
    histogram_t of_free;
} times_t;

static struct {
    enum pattern pattern;
    uint64_t operations;
    uint64_t cost;  /* of reading the clock twice */
    uint64_t step;  /* the smallest time that the clock can tell */
    times_t *times; /* for each thread */

    /* Apart from what every call reads. */
    _Alignas(64) _Atomic(block_t *) shared[SHARED];
} latency;

typedef struct actor {
    times_t *times;
    bench_rng_t rng;
    uint64_t sum;
    uint32_t slots;
    block_t **table;
} actor_t;

/* --- one call -------------------------------------------------------------------------------- */

static inline uint64_t without_cost(uint64_t ticks) {
    return ticks > latency.cost ? ticks - latency.cost : 0;
}

static block_t *make(actor_t *actor, uint32_t size) {
    uint64_t begin = clock_ticks();
    block_t *block = malloc(size);
    uint64_t end = clock_ticks();
    histogram_add(&actor->times->of_malloc, without_cost(end - begin));
    bench_need(block, size);
    uint32_t mark = (uint32_t)actor->rng.state;
    for (uint32_t at = STRIDE; at < size; at += STRIDE) {
        ((unsigned char *)block)[at] = (unsigned char)mark;
    }
    ((unsigned char *)block)[size - 1] = (unsigned char)mark;
    *block = (block_t){size, mark};
    return block;
}

static uint64_t read_back(const block_t *block) {
    uint64_t sum = (uint64_t)block->size + block->mark;
    for (uint32_t at = STRIDE; at < block->size; at += STRIDE) {
        sum += ((const unsigned char *)block)[at];
    }
    return sum + ((const unsigned char *)block)[block->size - 1];
}

static void end(actor_t *actor, block_t *block) {
    actor->sum += read_back(block);
    uint64_t begin = clock_ticks();
    free(block);
    uint64_t end = clock_ticks();
    histogram_add(&actor->times->of_free, without_cost(end - begin));
}

/* --- the patterns ---------------------------------------------------------------------------- */

static uint32_t large_size(bench_rng_t *rng) {
    uint32_t magnitude = 32768u << bench_below(rng, 5);
    return bench_between(rng, magnitude, 2 * magnitude);
}

static void run_slots(actor_t *actor, uint64_t operations) {
    for (uint64_t i = 0; i < operations; i++) {
        block_t **slot = &actor->table[bench_below(&actor->rng, actor->slots)];
        if (*slot == NULL) {
            *slot = make(actor, latency.pattern == LARGE ? large_size(&actor->rng)
                                                         : bench_between(&actor->rng, 16, 1024));
            continue;
        }
        block_t *block = *slot;
        *slot = NULL;
        uint32_t place = bench_below(&actor->rng, 2 * SHARED);
        if (latency.pattern == THREADS && place < SHARED) {
            block = atomic_exchange(&latency.shared[place], block);
        }
        if (block != NULL) {
            end(actor, block);
        }
    }
}

static void run_bursts(actor_t *actor, uint64_t operations) {
    for (uint64_t i = 0; i < operations; i += 2 * (uint64_t)actor->slots) {
        for (uint32_t k = 0; k < actor->slots; k++) {
            actor->table[k] = make(actor, bench_between(&actor->rng, 16, 1024));
        }
        for (uint32_t k = 0; k < actor->slots; k++) {
            end(actor, actor->table[k]);
            actor->table[k] = NULL;
        }
    }
}

static void run(actor_t *actor, uint64_t operations) {
    if (latency.pattern == BURST) {
        run_bursts(actor, operations);
    } else {
        run_slots(actor, operations);
    }
}

static void body(bench_thread_t *thread) {
    static const uint32_t slots[] = {SLOTS, BURST_BLOCKS, LARGE_SLOTS, SLOTS};
    actor_t actor = {.times = &latency.times[thread->index],
                     .rng = bench_rng(thread->index),
                     .slots = slots[latency.pattern]};
    actor.table =
        bench_need(calloc(actor.slots, sizeof *actor.table), actor.slots * sizeof *actor.table);
    run(&actor, latency.operations / 10);
    memset(actor.times, 0, sizeof *actor.times);
    bench_start_together(thread);
    run(&actor, latency.operations);
    bench_stop_together(thread, thread->count * latency.operations);
    for (uint32_t i = 0; i < actor.slots; i++) {
        if (actor.table[i] != NULL) {
            actor.sum += read_back(actor.table[i]);
            free(actor.table[i]);
        }
    }
    free(actor.table);
    thread->check = actor.sum;
}

static uint64_t empty_shared(void) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < SHARED; i++) {
        block_t *block = atomic_exchange(&latency.shared[i], NULL);
        if (block != NULL) {
            sum += read_back(block);
            free(block);
        }
    }
    return sum;
}

/* --- the clock ------------------------------------------------------------------------------- */

static struct { uint64_t ticks, ns; } started;

/* Nanoseconds of one tick, from the whole run so far: the longer, the more exact. */
static double tick_ns(void) {
    uint64_t ticks, ns;
    do {
        ticks = clock_ticks() - started.ticks;
        ns = bench_now() - started.ns;
    } while (ns < 20000000);
    return (double)ns / (double)ticks;
}

static void measure_clock(void) {
    latency.step = UINT64_MAX;
    static histogram_t costs;
    for (unsigned i = 0; i < 10001; i++) {
        uint64_t begin = clock_ticks();
        uint64_t cost = clock_ticks() - begin;
        histogram_add(&costs, cost);
        latency.step = cost != 0 && cost < latency.step ? cost : latency.step;
    }
    latency.cost = histogram_quantile(&costs, 0.5);
}

/* --- the result ------------------------------------------------------------------------------ */

static char text[1 << 18];
static size_t length;

__attribute__((format(printf, 1, 2))) static void add_text(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    length += (size_t)vsnprintf(text + length, sizeof text - length, format, arguments);
    va_end(arguments);
}

static void add_percentiles(const char *name, const histogram_t *histogram, double ns) {
    static const char *const percents[] = {"50", "90", "99", "99.9", "99.99"};
    add_text("\"%s\":{", name);
    for (unsigned i = 0; i < BENCH_COUNT(percents); i++) {
        double part = strtod(percents[i], NULL) / 100;
        add_text("\"%s\":%.1f,", percents[i], (double)histogram_quantile(histogram, part) * ns);
    }
    add_text("\"max\":%.1f}", (double)histogram->max * ns);
}

static void add_result(unsigned threads) {
    static histogram_t of_malloc, of_free, both;
    double ns = tick_ns();
    for (unsigned i = 0; i < threads; i++) {
        histogram_merge(&of_malloc, &latency.times[i].of_malloc);
        histogram_merge(&of_free, &latency.times[i].of_free);
    }
    histogram_merge(&both, &of_malloc);
    histogram_merge(&both, &of_free);
    add_text("\"latency\":{");
    add_percentiles("malloc", &of_malloc, ns);
    add_text(",");
    add_percentiles("free", &of_free, ns);
    add_text(",");
    add_percentiles("both", &both, ns);
    add_text("},\"timer_ns\":%.1f,\"timer_step_ns\":%.1f,\"histogram\":[",
             (double)latency.cost * ns, (double)latency.step * ns);
    const char *comma = "";
    for (unsigned i = 0; i < BUCKETS; i++) {
        if (both.counts[i] != 0) {
            uint64_t upper = histogram_upper(i) < both.max ? histogram_upper(i) : both.max;
            add_text("%s[%.1f,%llu]", comma, (double)upper * ns,
                     (unsigned long long)both.counts[i]);
            comma = ",";
        }
    }
    add_text("]");
    bench_extra(text);
}

int main(int argc, char **argv) {
    static const char *const patterns[] = {"mixed", "burst", "large", "threads", NULL};
    static const uint64_t operations[] = {4000000, 4000000, 50000, 1500000};
    bench_init(argc, argv, "PATTERN OPS [THREADS]");
    latency.pattern = (enum pattern)bench_choice(1, patterns, "PATTERN");
    latency.operations = bench_arg(2, operations[latency.pattern], 1, UINT64_MAX >> 16, "OPS");
    if (latency.pattern == BURST) { /* whole bursts */
        uint64_t calls = 2 * BURST_BLOCKS;
        latency.operations = (latency.operations + calls - 1) / calls * calls;
    }
    unsigned threads =
        (unsigned)bench_arg(3, latency.pattern == THREADS ? 2 : 1, 1, 1024, "THREADS");
    started.ticks = clock_ticks();
    started.ns = bench_now();
    /* Not from the allocator that is measured. */
    latency.times = mmap(NULL, threads * sizeof *latency.times, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (latency.times == MAP_FAILED) {
        bench_out_of_memory(threads * sizeof *latency.times);
    }
    measure_clock();

    uint64_t sum = bench_run_threads(threads, body, NULL);
    sum += empty_shared();
    add_result(threads);
    return bench_finish(sum);
}
