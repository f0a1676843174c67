/* SPDX-License-Identifier: MIT */
#include "profile/chance.h"

#include "base/atomics.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "os/os.h"

enum { CHANCE_BITS = 53 /* of a random number that a double holds */ };

static const double CHANCE_LN2 = 0.69314718055994530942, CHANCE_SURE = 64;

/* Halves x until six terms of the series suffice (relative error below 1e-12), and doubles it back:
 * 1 - e^-2x = y (2 - y). */
double hak_chance_of(double x) {
    unsigned halvings = 0;
    if (x >= CHANCE_SURE) {
        return 1;
    }
    for (; x > 1.0 / 128; halvings++) {
        x /= 2;
    }
    double y = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))));
    for (; halvings != 0; halvings--) {
        y *= 2 - y;
    }
    return y;
}

/* -ln of the number in (0, 1] that the upper 53 bits stand for. ln m = 2 atanh((m - 1) / (m + 1)),
 * where the square of the argument is at most 1/9. */
static double chance_minus_log(uint64_t random) {
    uint64_t n = (random >> (64 - CHANCE_BITS)) + 1;
    unsigned log2 = hak_log2(n);
    double m = (double)n / (double)(1ull << log2);
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int i = 27; i > 0; i -= 2) {
        sum = sum * square + 1.0 / i;
    }
    return (double)(CHANCE_BITS - (int)log2) * CHANCE_LN2 - 2 * s * sum;
}

int64_t hak_chance_gap(size_t rate, uint64_t random) {
    double gap = chance_minus_log(random) * (double)rate;
    return 1 + (int64_t)gap;
}

uint64_t hak_chance_whole(double x) {
    return x >= 18446744073709549568.0 ? UINT64_MAX : x > 0 ? (uint64_t)(x + 0.5) : 0;
}

HAK_LOCKED_STATE uint64_t hak_chance_counter; /* [atomic] */

/* SplitMix64: numbers of a counter, mixed. Any thread advances it in one step. */
uint64_t hak_chance_random(void) {
    uint64_t x = hak_add_relaxed(&hak_chance_counter, 0x9e3779b97f4a7c15ull);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

void hak_chance_seed(uint64_t seed) {
    hak_store_relaxed(&hak_chance_counter, seed);
}

void hak_chance_begin(void) {
    uint64_t seed;
    if (hak_load_relaxed(&hak_chance_counter) == 0) {
        hak_os_random(&seed, sizeof seed);
        hak_chance_seed(seed);
    }
}
