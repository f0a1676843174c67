/* SPDX-License-Identifier: MIT
 * What every workload shares: arguments, random numbers, clocks, threads, the result line.
 *
 * A workload is one C file: it reads its arguments (bench_init, bench_arg), sets up, calls
 * bench_start, works, calls bench_stop with the number of operations, frees everything, and returns
 * bench_finish(). The result is one line of JSON, the last line of standard output (bench/README.md
 * lists the fields).
 *
 * Blocks come from BENCH_MALLOC(size) and go back with BENCH_FREE(block, size); one that grows (or
 * NULL, of size 0) goes through BENCH_REALLOC(block, old size, size). A workload built with
 * BENCH_IDEAL=1 gets inlined lists without checks, owners or returned memory instead: the lower
 * bound of the time that any allocator can reach in this loop. */
#ifndef HAK_BENCH_H
#define HAK_BENCH_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef BENCH_IDEAL
#define BENCH_IDEAL 0
#endif

#define BENCH_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- the frame of a workload -------------------------------------------------------------------
 */

/* First call of main. USAGE names the arguments ("ITERS SLOTS SEED [MIN MAX]"); --help prints it.
 */
void bench_init(int argc, char **argv, const char *usage);

/* Argument number INDEX (the first is 1), or FALLBACK if it was not given; sizes may end in k, m or
 * g (powers of 1024). Exits with status 2 and one line unless it is a number from MIN to MAX. */
uint64_t bench_arg(int index, uint64_t fallback, uint64_t min, uint64_t max, const char *name);

/* Argument number INDEX as one of the NULL-terminated CHOICES; returns its index there. */
int bench_choice(int index, const char *const *choices, const char *name);

/* The measured section. What lies before is warm-up and set-up, what lies after is tear-down. Nests
 * not. */
void bench_start(void);
void bench_stop(uint64_t operations);

/* States the largest sum of bytes that were live at once, as the workload itself counts them (0:
 * not known). */
void bench_live_peak(uint64_t bytes);

/* States the sum of bytes that are live now, after bench_stop and before the tear-down, and looks
 * at RSS: what the process has for what it still uses. */
void bench_live_end(uint64_t bytes);

/* More fields for the result line: JSON like "\"retries\":3", without braces or a comma around it.
 * Kept as the pointer given. */
void bench_extra(const char *json);

/* Last call, after all blocks are freed: prints the result line. CHECK is a number that depends on
 * what the workload did (sizes, counts, contents), never on addresses: it must be the same on every
 * allocator. With HAK_BENCH_SETTLE=1 in the environment it first sleeps one second and reports the
 * RSS that is left. With HAK_BENCH_RESTING=PATH as well it makes the empty file PATH when that
 * second begins: from then on other programs may run without disturbing this one. Returns the exit
 * status of main. */
int bench_finish(uint64_t check);

/* Ends the program: status 1 and one line. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t bench_now(void);

/* KiB of the process: now, and the highest so far. */
uint64_t bench_rss_kib(void);
uint64_t bench_hwm_kib(void);

/* --- threads -----------------------------------------------------------------------------------
 */

typedef struct bench_thread {
    unsigned index; /* 0 … count - 1 */
    unsigned count;
    void *context;
    uint64_t check; /* out: summed up into bench_run_threads's result */
    void *meeting;  /* bench.c's own */
} bench_thread_t;

/* Runs BODY in COUNT threads that begin together, waits for all, returns the sum of their checks.
 */
uint64_t bench_run_threads(unsigned count, void (*body)(bench_thread_t *), void *context);

/* Called by every thread of the run: all wait for each other. */
void bench_meet(bench_thread_t *thread);

/* The measured section inside such threads, after their warm-up: called by every one of them.
 * OPERATIONS is the sum over all threads. */
void bench_start_together(bench_thread_t *thread);
void bench_stop_together(bench_thread_t *thread, uint64_t operations);

/* Waiting for another thread: a few turns on the processor, then it is yielded, as there may be
 * fewer processors than threads. *TURNS starts at 0 and is set to 0 again after success. */
static inline void bench_relax(unsigned *turns) {
    enum { SPINS = 64 };
    if ((*turns)++ >= SPINS) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* --- random numbers (xorshift64*): the same on every machine -----------------------------------
 */

typedef struct bench_rng {
    uint64_t state;
} bench_rng_t;

static inline bench_rng_t bench_rng(uint64_t seed) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (bench_rng_t){z != 0 ? z : 1};
}

static inline uint64_t bench_random(bench_rng_t *rng) {
    uint64_t x = rng->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->state = x;
    return x * 0x2545f4914f6cdd1du;
}

/* 0 … limit - 1, by multiplication: no division in the loop. LIMIT below 2^32. */
static inline uint32_t bench_below(bench_rng_t *rng, uint32_t limit) {
    return (uint32_t)(((bench_random(rng) >> 32) * limit) >> 32);
}

static inline uint32_t bench_between(bench_rng_t *rng, uint32_t min, uint32_t max) {
    return min + bench_below(rng, max - min + 1);
}

/* MIN … MAX, each doubling about equally likely: as many blocks of 16 to 31 bytes as of 4 to 8 KiB.
 * MIN at least 1. */
static inline uint32_t bench_log_between(bench_rng_t *rng, uint32_t min, uint32_t max) {
    uint32_t octaves = 32 - (uint32_t)__builtin_clz((max - 1) / min | 1);
    uint64_t low = (uint64_t)min << bench_below(rng, octaves);
    return bench_between(rng, (uint32_t)low, 2 * low < max ? (uint32_t)(2 * low) : max);
}

/* --- blocks ------------------------------------------------------------------------------------
 */

_Noreturn void bench_out_of_memory(size_t size);

/* Uses a block at both ends; bench_marks reads back what bench_mark wrote: 2 * MARK. */
static inline void bench_mark(void *block, size_t size, unsigned char mark) {
    ((unsigned char *)block)[0] = mark;
    ((unsigned char *)block)[size - 1] = mark;
}

static inline unsigned bench_marks(const void *block, size_t size) {
    return (unsigned)((const unsigned char *)block)[0] + ((const unsigned char *)block)[size - 1];
}

/* malloc that ends the program on NULL. */
static inline void *bench_need(void *block, size_t size) {
    if (__builtin_expect(block == NULL, 0)) {
        bench_out_of_memory(size);
    }
    return block;
}

#if BENCH_IDEAL

enum {
    BENCH_IDEAL_STEP = 16,
    BENCH_IDEAL_MAX = 4096,
    BENCH_IDEAL_BINS = BENCH_IDEAL_MAX / BENCH_IDEAL_STEP + 1
};

typedef struct bench_link {
    struct bench_link *next;
} bench_link_t;

extern _Thread_local bench_link_t *bench_ideal_bins[BENCH_IDEAL_BINS];

/* A fresh block from memory that is never given back. */
void *bench_ideal_carve(size_t size);

static inline void *bench_ideal_malloc(size_t size) {
    if (__builtin_expect(size > BENCH_IDEAL_MAX, 0)) {
        return malloc(size);
    }
    bench_link_t **bin = &bench_ideal_bins[(size + BENCH_IDEAL_STEP - 1) / BENCH_IDEAL_STEP];
    bench_link_t *block = *bin;
    if (__builtin_expect(block == NULL, 0)) {
        return bench_ideal_carve(size);
    }
    *bin = block->next;
    return block;
}

static inline void bench_ideal_free(void *address, size_t size) {
    if (__builtin_expect(size > BENCH_IDEAL_MAX, 0)) {
        free(address);
        return;
    }
    bench_link_t **bin = &bench_ideal_bins[(size + BENCH_IDEAL_STEP - 1) / BENCH_IDEAL_STEP];
    bench_link_t *block = address;
    block->next = *bin;
    *bin = block;
}

/* Lists never let a block grow in place: only large ones keep realloc's advantage of moving OS
 * pages. */
static inline void *bench_ideal_realloc(void *address, size_t old_size, size_t size) {
    if (old_size > BENCH_IDEAL_MAX && size > BENCH_IDEAL_MAX) {
        return bench_need(realloc(address, size), size);
    }
    void *block = bench_ideal_malloc(size);
    if (address != NULL) {
        __builtin_memcpy(block, address, old_size < size ? old_size : size);
        bench_ideal_free(address, old_size);
    }
    return block;
}

#define BENCH_MALLOC(size) bench_ideal_malloc(size)
#define BENCH_FREE(block, size) bench_ideal_free((block), (size))
#define BENCH_REALLOC(block, old_size, size) bench_ideal_realloc((block), (old_size), (size))

#else

#define BENCH_MALLOC(size) bench_need(malloc(size), (size))
#define BENCH_FREE(block, size) ((void)(size), free(block))
#define BENCH_REALLOC(block, old_size, size)                                                       \
    ((void)(old_size), bench_need(realloc((block), (size)), (size)))

#endif
#endif
