/* SPDX-License-Identifier: MIT
 *
 * Alignment, logarithms, bit runs, checked arithmetic. Pure functions. */
#ifndef HAK_BASE_BITS_H
#define HAK_BASE_BITS_H

#include "base/compiler.h"
#include "base/words.h"

HAK_INLINE bool hak_is_pow2(size_t x) {
    return x != 0 && (x & (x - 1)) == 0;
}

/* Rounds x up to a multiple of the power of two `align`; the caller excludes overflow. */
HAK_INLINE size_t hak_align_up(size_t x, size_t align) {
    return (x + align - 1) & ~(align - 1);
}

HAK_INLINE size_t hak_align_down(size_t x, size_t align) {
    return x & ~(align - 1);
}

/* Floor of the base-2 logarithm; x > 0. */
HAK_INLINE unsigned hak_log2(uint64_t x) {
    return 63u ^ (unsigned)__builtin_clzll(x); /* one instruction on x86-64 */
}

HAK_INLINE unsigned hak_ctz(uint64_t x) {
    return (unsigned)__builtin_ctzll(x);
}

HAK_INLINE unsigned hak_popcount(uint64_t x) {
    return (unsigned)__builtin_popcountll(x);
}

/* false on overflow */
HAK_INLINE bool hak_mul(size_t a, size_t b, size_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}

/* The next number of xorshift64*, a cheap generator; its state never is 0. Not for secrets. */
HAK_INLINE uint64_t hak_random_next(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1dull;
}

/* The lowest `count` bits set, 0 <= count <= 64. */
HAK_INLINE uint64_t hak_mask(unsigned count) {
    return count >= 64 ? ~0ull : (1ull << count) - 1;
}

/* The first index from `from` on whose bit is set, or with flip ~0 clear; `end`: none. */
HAK_INLINE uint32_t hak_bit_next(const uint64_t *set, uint32_t from, uint32_t end, uint64_t flip) {
    while (from < end) {
        uint64_t bits = (set[from / 64] ^ flip) >> from % 64;
        if (bits != 0) {
            from += hak_ctz(bits);
            return from < end ? from : end;
        }
        from = (from / 64 + 1) * 64;
    }
    return end;
}

/* Bits i such that bits i .. i+count-1 of `bits` are all set. Doubling makes it O(log count). */
HAK_INLINE uint64_t hak_run_starts(uint64_t bits, unsigned count) {
    unsigned have = 1;
    while (have < count && bits != 0) {
        unsigned step = count - have < have ? count - have : have;
        bits &= bits >> step;
        have += step;
    }
    return bits;
}

/* Length of the run of set bits around bit `i`, which is set. */
HAK_INLINE unsigned hak_run_around(uint64_t bits, unsigned i) {
    uint64_t below = ~bits & hak_mask(i);
    uint64_t above = ~bits >> i;
    unsigned start = below != 0 ? hak_log2(below) + 1 : 0;
    unsigned end = above != 0 ? i + hak_ctz(above) : 64;
    return end - start;
}

/* Length of the longest run of set bits that begins at one of `places`; O(log). */
HAK_INLINE unsigned hak_longest_run(uint64_t bits, uint64_t places) {
    if ((bits & places) == 0) {
        return 0;
    }
    unsigned length = 1; /* of the runs that begin at `bits` */
    for (uint64_t twice; length < 64 && ((twice = bits & bits >> length) & places) != 0;) {
        bits = twice;
        length *= 2;
    }
    for (unsigned step = length / 2; step != 0; step /= 2) {
        uint64_t longer = bits & bits >> step;
        bool is_there = (longer & places) != 0;
        bits = is_there ? longer : bits;
        length += is_there ? step : 0;
    }
    return length;
}

HAK_INLINE size_t hak_least(size_t a, size_t b) {
    return a < b ? a : b;
}
/* What a exceeds b by. */
HAK_INLINE size_t hak_excess(size_t a, size_t b) {
    return a > b ? a - b : 0;
}

HAK_INLINE size_t hak_most(size_t a, size_t b) {
    return a > b ? a : b;
}

#endif
