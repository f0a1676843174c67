/* SPDX-License-Identifier: MIT
 *
 * Random numbers for tests (splitmix64 step). */
#ifndef HAK_TEST_DOUBLE_RNG_H
#define HAK_TEST_DOUBLE_RNG_H

#include "base/compiler.h"
#include "base/words.h"

HAK_INLINE uint64_t hak_mix64(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    x ^= x >> 31;
    return x;
}

HAK_INLINE uint64_t hak_rng_next(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15ull;
    return hak_mix64(*state);
}

#endif
