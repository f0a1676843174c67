/* SPDX-License-Identifier: MIT
 *
 * The mathematics of sampling, without the C library's. */
#ifndef HAK_PROFILE_CHANCE_H
#define HAK_PROFILE_CHANCE_H

#include "base/words.h"

/* 1 - e^-x for x >= 0. */
double hak_chance_of(double x);
/* The bytes to the next sample, exponentially distributed with this mean and rounded up, so at
 * least 1. `random` is uniform in 64 bits. */
int64_t hak_chance_gap(size_t rate, uint64_t random);
/* x >= 0 to the nearest whole number; UINT64_MAX if it is larger. */
uint64_t hak_chance_whole(double x);
/* A number uniform in 64 bits, in any thread, also in the middle of another's call. */
uint64_t hak_chance_random(void);
/* Begins another sequence. */
void hak_chance_seed(uint64_t seed);
/* The same by chance, unless one has begun. */
void hak_chance_begin(void);

#endif
