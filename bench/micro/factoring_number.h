/* SPDX-License-Identifier: MIT
 * Part of factoring.c: blocks that are counted, and natural numbers of any length. */
#ifndef HAK_BENCH_FACTORING_NUMBER_H
#define HAK_BENCH_FACTORING_NUMBER_H

#include "bench.h"

#include <stdbool.h>
#include <string.h>

/* --- blocks ----------------------------------------------------------------------------------- */

static uint64_t live, live_peak;

static void *take(size_t size) {
    live += size;
    live_peak = live > live_peak ? live : live_peak;
    return BENCH_MALLOC(size);
}

static void give(void *block, size_t size) {
    live -= size;
    BENCH_FREE(block, size);
}

/* --- natural numbers: never changed once they are returned ------------------------------------ */

typedef struct number {
    uint32_t references;
    uint16_t room;   /* limbs in the block */
    uint16_t length; /* limbs in use: the highest is not 0, none of them for the number 0 */
    uint32_t limbs[];
} number_t;

static number_t *number_new(unsigned room) {
    number_t *number = take(sizeof *number + room * sizeof number->limbs[0]);
    number->references = 1;
    number->room = (uint16_t)room;
    number->length = (uint16_t)room;
    return number;
}

static number_t *trimmed(number_t *number) {
    while (number->length > 0 && number->limbs[number->length - 1] == 0) {
        number->length--;
    }
    return number;
}

static number_t *keep(number_t *number) {
    number->references++;
    return number;
}

static void drop(number_t *number) {
    if (--number->references == 0) {
        give(number, sizeof *number + number->room * sizeof number->limbs[0]);
    }
}

/* Puts VALUE, which the caller owned, in place of what SLOT held. */
static void replace(number_t **slot, number_t *value) {
    drop(*slot);
    *slot = value;
}

static number_t *small(uint32_t value) {
    number_t *number = number_new(1);
    number->limbs[0] = value;
    return trimmed(number);
}

static bool is_one(const number_t *a) {
    return a->length == 1 && a->limbs[0] == 1;
}

static unsigned bit_length(const number_t *a) {
    return a->length == 0 ? 0 : a->length * 32u - (unsigned)__builtin_clz(a->limbs[a->length - 1]);
}

static int compare(const number_t *a, const number_t *b) {
    if (a->length != b->length) {
        return a->length < b->length ? -1 : 1;
    }
    for (unsigned i = a->length; i-- > 0;) {
        if (a->limbs[i] != b->limbs[i]) {
            return a->limbs[i] < b->limbs[i] ? -1 : 1;
        }
    }
    return 0;
}

static number_t *add(const number_t *a, const number_t *b) {
    unsigned longer = a->length > b->length ? a->length : b->length;
    number_t *sum = number_new(longer + 1);
    uint64_t carry = 0;
    for (unsigned i = 0; i <= longer; i++) {
        carry += i < a->length ? a->limbs[i] : 0;
        carry += i < b->length ? b->limbs[i] : 0;
        sum->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return trimmed(sum);
}

/* A minus B, which is not larger. */
static number_t *subtract(const number_t *a, const number_t *b) {
    number_t *difference = number_new(a->length);
    uint64_t borrow = 0;
    for (unsigned i = 0; i < a->length; i++) {
        uint64_t limb = (uint64_t)a->limbs[i] - (i < b->length ? b->limbs[i] : 0) - borrow;
        difference->limbs[i] = (uint32_t)limb;
        borrow = limb >> 63;
    }
    return trimmed(difference);
}

static number_t *multiply(const number_t *a, const number_t *b) {
    number_t *product = number_new(a->length + b->length);
    memset(product->limbs, 0, product->length * sizeof product->limbs[0]);
    for (unsigned i = 0; i < a->length; i++) {
        uint64_t carry = 0;
        for (unsigned j = 0; j < b->length; j++) {
            carry += (uint64_t)a->limbs[i] * b->limbs[j] + product->limbs[i + j];
            product->limbs[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product->limbs[i + b->length] = (uint32_t)carry;
    }
    return trimmed(product);
}

static number_t *divide_small(const number_t *a, uint32_t divisor, uint32_t *remainder) {
    number_t *quotient = number_new(a->length);
    uint64_t rest = 0;
    for (unsigned i = a->length; i-- > 0;) {
        rest = rest << 32 | a->limbs[i];
        quotient->limbs[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    *remainder = (uint32_t)rest;
    return trimmed(quotient);
}

/* A copy of A, BITS (below 32) higher, with zeros up to ROOM limbs. */
static number_t *shifted_up(const number_t *a, unsigned bits, unsigned room) {
    number_t *copy = number_new(room);
    uint64_t carry = 0;
    for (unsigned i = 0; i < room; i++) {
        carry |= (i < a->length ? (uint64_t)a->limbs[i] : 0) << bits;
        copy->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return copy;
}

/* The lowest LENGTH limbs of A, BITS (below 32) lower. */
static number_t *shifted_down(const number_t *a, unsigned bits, unsigned length) {
    number_t *copy = number_new(length);
    for (unsigned i = 0; i < length; i++) {
        uint64_t pair = a->limbs[i] | (i + 1 < length ? (uint64_t)a->limbs[i + 1] << 32 : 0);
        copy->limbs[i] = (uint32_t)(pair >> bits);
    }
    return trimmed(copy);
}

/* REST -= DIGIT * DIVISOR, over one limb more than the divisor has; true if that went below 0. */
static bool subtract_multiple(uint32_t *rest, const number_t *divisor, uint64_t digit) {
    uint64_t carry = 0, borrow = 0, limb;
    for (unsigned i = 0; i < divisor->length; i++) {
        carry += digit * divisor->limbs[i];
        limb = (uint64_t)rest[i] - (uint32_t)carry - borrow;
        rest[i] = (uint32_t)limb;
        borrow = limb >> 63;
        carry >>= 32;
    }
    limb = (uint64_t)rest[divisor->length] - carry - borrow;
    rest[divisor->length] = (uint32_t)limb;
    return limb >> 63 != 0;
}

/* One step of long division (Knuth's algorithm D): a guess from the highest limbs, corrected. */
static uint32_t divide_digit(uint32_t *rest, const number_t *divisor) {
    unsigned n = divisor->length;
    uint64_t top = (uint64_t)rest[n] << 32 | rest[n - 1];
    uint64_t digit = top / divisor->limbs[n - 1], left = top % divisor->limbs[n - 1];
    while (digit >> 32 != 0 || digit * divisor->limbs[n - 2] > (left << 32 | rest[n - 2])) {
        digit--;
        left += divisor->limbs[n - 1];
        if (left >> 32 != 0) {
            break;
        }
    }
    if (subtract_multiple(rest, divisor, digit)) {
        digit--;
        uint64_t carry = 0;
        for (unsigned i = 0; i <= n; i++) {
            carry += (uint64_t)rest[i] + (i < n ? divisor->limbs[i] : 0);
            rest[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    return (uint32_t)digit;
}

/* A / B; the remainder, too, belongs to the caller. */
static number_t *divide(number_t *a, const number_t *b, number_t **remainder) {
    if (compare(a, b) < 0) {
        *remainder = keep(a);
        return small(0);
    }
    if (b->length == 1) {
        uint32_t rest;
        number_t *quotient = divide_small(a, b->limbs[0], &rest);
        *remainder = small(rest);
        return quotient;
    }
    unsigned shift = (unsigned)__builtin_clz(b->limbs[b->length - 1]);
    number_t *rest = shifted_up(a, shift, a->length + 1u);
    number_t *divisor = shifted_up(b, shift, b->length);
    number_t *quotient = number_new(a->length - b->length + 1u);
    for (unsigned i = quotient->length; i-- > 0;) {
        quotient->limbs[i] = divide_digit(&rest->limbs[i], divisor);
    }
    *remainder = shifted_down(rest, shift, b->length);
    drop(divisor);
    drop(rest);
    return trimmed(quotient);
}

static number_t *quotient_of(number_t *a, const number_t *b) {
    number_t *remainder, *quotient = divide(a, b, &remainder);
    drop(remainder);
    return quotient;
}

/* A mod B; takes A. */
static number_t *reduced(number_t *a, const number_t *b) {
    number_t *remainder;
    drop(divide(a, b, &remainder));
    drop(a);
    return remainder;
}

/* The whole part of the square root: Newton's iteration from above. */
static number_t *square_root(number_t *n) {
    unsigned half = bit_length(n) / 2 + 1;
    number_t *root = number_new(half / 32 + 1);
    memset(root->limbs, 0, root->length * sizeof root->limbs[0]);
    root->limbs[half / 32] = 1u << half % 32;
    for (;;) {
        number_t *quotient = quotient_of(n, root), *sum = add(root, quotient);
        uint32_t odd;
        number_t *next = divide_small(sum, 2, &odd);
        drop(quotient);
        drop(sum);
        if (compare(next, root) >= 0) {
            drop(next);
            return root;
        }
        replace(&root, next);
    }
}

static number_t *greatest_common_divisor(number_t *a, number_t *b) {
    a = keep(a);
    b = keep(b);
    while (b->length != 0) {
        number_t *rest = reduced(a, b);
        a = b;
        b = rest;
    }
    drop(b);
    return a;
}

static number_t *parse(const char *digits) {
    number_t *ten = small(10), *value = small(0);
    for (; *digits != '\0'; digits++) {
        number_t *digit = small((uint32_t)(*digits - '0')), *product = multiply(value, ten);
        replace(&value, add(product, digit));
        drop(product);
        drop(digit);
    }
    drop(ten);
    return value;
}

#endif
