/* SPDX-License-Identifier: MIT
 * The processor's own clock, and a histogram of what it measures: exact below 128 ticks, then 64
 * buckets for every power of two, so a bucket is at most 1.6 % wide. */
#ifndef HAK_BENCH_HISTOGRAM_H
#define HAK_BENCH_HISTOGRAM_H

#include "bench.h"

enum {
    PART_LOG2 = 6,
    MAGNITUDES = 34, /* of ticks: up to 2^40, minutes */
    BUCKETS = (MAGNITUDES + 1) << PART_LOG2,
};

typedef struct histogram {
    uint64_t counts[BUCKETS];
    uint64_t max;
} histogram_t;

/* The fences keep the work that is measured between the two readings. */
static inline uint64_t clock_ticks(void) {
#if defined(__x86_64__)
    __builtin_ia32_lfence();
    uint64_t now = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return now;
#elif defined(__aarch64__)
    uint64_t now;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(now)::"memory");
    return now;
#else
    return bench_now();
#endif
}

static inline unsigned histogram_bucket(uint64_t ticks) {
    if (ticks < 2u << PART_LOG2) {
        return (unsigned)ticks;
    }
    unsigned shift = 63 - (unsigned)__builtin_clzll(ticks) - PART_LOG2;
    uint64_t bucket = ((uint64_t)shift << PART_LOG2) + (ticks >> shift);
    return bucket < BUCKETS ? (unsigned)bucket : BUCKETS - 1;
}

/* The highest number of ticks that falls into BUCKET. */
static inline uint64_t histogram_upper(unsigned bucket) {
    if (bucket < 2u << PART_LOG2) {
        return bucket;
    }
    unsigned shift = (bucket >> PART_LOG2) - 1;
    uint64_t part = bucket - ((uint64_t)shift << PART_LOG2);
    return ((part + 1) << shift) - 1;
}

static inline void histogram_add(histogram_t *histogram, uint64_t ticks) {
    histogram->counts[histogram_bucket(ticks)]++;
    histogram->max = ticks > histogram->max ? ticks : histogram->max;
}

static inline void histogram_merge(histogram_t *into, const histogram_t *from) {
    for (unsigned i = 0; i < BUCKETS; i++) {
        into->counts[i] += from->counts[i];
    }
    into->max = from->max > into->max ? from->max : into->max;
}

/* Ticks that PART (0 to 1) of all values do not exceed. */
static inline uint64_t histogram_quantile(const histogram_t *histogram, double part) {
    uint64_t total = 0, below = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        total += histogram->counts[i];
    }
    for (unsigned i = 0; i < BUCKETS; i++) {
        below += histogram->counts[i];
        if (below > 0 && (double)below >= part * (double)total) {
            uint64_t upper = histogram_upper(i);
            return upper < histogram->max ? upper : histogram->max;
        }
    }
    return histogram->max;
}

#endif
