/* SPDX-License-Identifier: MIT
 * factoring ROUNDS DIGITS
 *
 * Measures: a program that computes with numbers of any length, each an immutable, counted block of
 * its own. It splits a product of two primes by continued fractions: the expansion of the square
 * root of n yields small squares modulo n; those that fall apart into small primes are kept (also
 * those with one larger prime, until a second of the same prime comes along), and linear algebra
 * over GF(2) finds a square among their products. Millions of blocks of 12 to 44 bytes, nearly all
 * freed within a few calls in almost the reverse order; some hundreds of up to 180 bytes stay.
 * Known from: cfrac, the factoring program in the classic collections of allocation-heavy programs.
 * Does not measure: threads, larger blocks, memory (the peak is some 100 KiB).
 * One operation is one step of the continued fraction: about 35 pairs of malloc and free. Each of
 * ROUNDS factors the same number of DIGITS digits anew. */
#include "factoring_number.h"

enum { MAX_PRIMES = 160, SPARE = 16, MAX_RELATIONS = MAX_PRIMES + SPARE, BUCKETS = 1024 };

/* --- relations: left² ≡ ± product of the primes' powers * large² (modulo n) ------------------- */

typedef struct relation {
    struct relation *next; /* in its bucket */
    number_t *left;
    uint32_t large;      /* 1, or a prime beyond the base: not yet squared while in a bucket */
    uint8_t exponents[]; /* of -1, then of each prime of the base */
} relation_t;

typedef struct search {
    number_t *n, *root;
    unsigned primes, wanted, found;
    unsigned early, early_bits; /* after so many primes, more bits than these are hopeless */
    uint32_t prime[MAX_PRIMES], large_limit;
    relation_t *relations[MAX_RELATIONS];
    relation_t *buckets[BUCKETS]; /* relations with a large prime, by that prime */
    uint64_t steps;
} search_t;

static size_t relation_size(const search_t *search) {
    return sizeof(relation_t) + search->primes + 1;
}

static void relation_free(const search_t *search, relation_t *relation) {
    drop(relation->left);
    give(relation, relation_size(search));
}

/* Two relations with the same large prime make one without; takes OTHER. */
static void combine(const search_t *search, relation_t *relation, relation_t *other) {
    number_t *product = multiply(relation->left, other->left);
    replace(&relation->left, reduced(product, search->n));
    for (unsigned i = 0; i <= search->primes; i++) {
        relation->exponents[i] = (uint8_t)(relation->exponents[i] + other->exponents[i]);
    }
    relation_free(search, other);
}

static void relation_add(search_t *search, relation_t *relation) {
    if (relation->large != 1) {
        relation_t **link = &search->buckets[relation->large / 2 % BUCKETS];
        while (*link != NULL && (*link)->large != relation->large) {
            link = &(*link)->next;
        }
        relation_t *twin = *link;
        if (twin == NULL) {
            *link = relation;
            return;
        }
        *link = twin->next;
        combine(search, relation, twin);
    }
    search->relations[search->found++] = relation;
}

/* Divides VALUE by the primes of the base as often as it goes. Returns what is left if that is 1 or
 * a prime below the limit, otherwise 0. */
static uint32_t divide_out(const search_t *search, number_t *value, uint8_t *exponents) {
    number_t *rest = keep(value);
    for (unsigned i = 0; i < search->primes && !is_one(rest); i++) {
        if (i == search->early && bit_length(rest) > search->early_bits) {
            break;
        }
        for (;;) {
            uint32_t remainder;
            number_t *quotient = divide_small(rest, search->prime[i], &remainder);
            if (remainder != 0) {
                drop(quotient);
                break;
            }
            replace(&rest, quotient);
            exponents[i + 1]++;
        }
    }
    uint32_t large = rest->length == 1 && rest->limbs[0] < search->large_limit ? rest->limbs[0] : 0;
    drop(rest);
    return large;
}

/* --- the continued fraction of the square root of n ------------------------------------------- */

typedef struct expansion {
    number_t *p, *q, *digit;
    number_t *left, *left_before; /* left² ≡ (-1)^step * q (modulo n), once p and q have advanced */
} expansion_t;

/* p = digit * q - p, q = (n - p²) / q. */
static void advance_fraction(const search_t *search, expansion_t *at) {
    number_t *product = multiply(at->digit, at->q);
    replace(&at->p, subtract(product, at->p));
    drop(product);
    number_t *square = multiply(at->p, at->p), *difference = subtract(search->n, square);
    replace(&at->q, quotient_of(difference, at->q));
    drop(difference);
    drop(square);
}

/* digit = (root + p) / q; left = digit * left + left before. */
static void advance_left(const search_t *search, expansion_t *at) {
    number_t *sum = add(search->root, at->p);
    replace(&at->digit, quotient_of(sum, at->q));
    drop(sum);
    number_t *product = multiply(at->digit, at->left);
    number_t *next = reduced(add(product, at->left_before), search->n);
    drop(product);
    drop(at->left_before);
    at->left_before = at->left;
    at->left = next;
}

static void collect(search_t *search) {
    uint8_t exponents[MAX_PRIMES + 1];
    expansion_t at = {small(0), small(1), keep(search->root), keep(search->root), small(1)};
    while (search->found < search->wanted) {
        advance_fraction(search, &at);
        search->steps++;
        memset(exponents, 0, search->primes + 1);
        exponents[0] = search->steps & 1;
        uint32_t large = divide_out(search, at.q, exponents);
        if (large != 0) {
            relation_t *relation = take(relation_size(search));
            relation->next = NULL;
            relation->left = keep(at.left);
            relation->large = large;
            memcpy(relation->exponents, exponents, search->primes + 1);
            relation_add(search, relation);
        }
        if (is_one(at.q)) {
            bench_fail("the continued fraction repeats after %llu steps",
                       (unsigned long long)search->steps);
        }
        advance_left(search, &at);
    }
    drop(at.p);
    drop(at.q);
    drop(at.digit);
    drop(at.left);
    drop(at.left_before);
}

/* --- a square among the products of relations ------------------------------------------------- */

enum { PARITY_WORDS = MAX_PRIMES / 64 + 1, SET_WORDS = MAX_RELATIONS / 64 + 1 };

/* A product of relations: which exponents are odd in it, and which relations it is made of. */
typedef struct row {
    uint64_t odd[PARITY_WORDS];
    uint64_t set[SET_WORDS];
} row_t;

static row_t *row_of(const search_t *search, unsigned relation) {
    row_t *row = take(sizeof *row);
    memset(row, 0, sizeof *row);
    row->set[relation / 64] = UINT64_C(1) << relation % 64;
    for (unsigned i = 0; i <= search->primes; i++) {
        uint64_t odd = search->relations[relation]->exponents[i] & 1;
        row->odd[i / 64] |= odd << i % 64;
    }
    return row;
}

static int lowest_odd(const row_t *row) {
    for (int i = 0; i < PARITY_WORDS; i++) {
        if (row->odd[i] != 0) {
            return i * 64 + __builtin_ctzll(row->odd[i]);
        }
    }
    return -1;
}

static void row_add(row_t *row, const row_t *other) {
    for (unsigned i = 0; i < PARITY_WORDS; i++) {
        row->odd[i] ^= other->odd[i];
    }
    for (unsigned i = 0; i < SET_WORDS; i++) {
        row->set[i] ^= other->set[i];
    }
}

static void multiply_into(number_t **slot, uint32_t factor, const number_t *n) {
    number_t *number = small(factor);
    replace(slot, reduced(multiply(*slot, number), n));
    drop(number);
}

/* The divisor of n that the square in ROW yields; it may be 1 or n. */
static number_t *divisor_from(const search_t *search, const row_t *row) {
    uint32_t exponents[MAX_PRIMES + 1] = {0};
    number_t *x = small(1), *y = small(1);
    for (unsigned r = 0; r < search->found; r++) {
        if ((row->set[r / 64] >> r % 64 & 1) != 0) {
            const relation_t *relation = search->relations[r];
            replace(&x, reduced(multiply(x, relation->left), search->n));
            multiply_into(&y, relation->large, search->n);
            for (unsigned i = 0; i <= search->primes; i++) {
                exponents[i] += relation->exponents[i];
            }
        }
    }
    for (unsigned i = 0; i < search->primes; i++) {
        for (uint32_t power = 0; power < exponents[i + 1] / 2; power++) {
            multiply_into(&y, search->prime[i], search->n);
        }
    }
    number_t *sum = add(x, y), *divisor = greatest_common_divisor(search->n, sum);
    drop(sum);
    drop(x);
    drop(y);
    return divisor;
}

/* Eliminates the odd exponents; every row that becomes even is a chance of a divisor. */
static number_t *solve(const search_t *search) {
    row_t *pivots[PARITY_WORDS * 64] = {0};
    number_t *divisor = small(1);
    for (unsigned r = 0; r < search->found; r++) {
        row_t *row = row_of(search, r);
        int column;
        while ((column = lowest_odd(row)) >= 0 && pivots[column] != NULL) {
            row_add(row, pivots[column]);
        }
        if (column >= 0) {
            pivots[column] = row;
            continue;
        }
        if (is_one(divisor) || compare(divisor, search->n) == 0) {
            replace(&divisor, divisor_from(search, row));
        }
        give(row, sizeof *row);
    }
    for (unsigned i = 0; i < BENCH_COUNT(pivots); i++) {
        if (pivots[i] != NULL) {
            give(pivots[i], sizeof *pivots[i]);
        }
    }
    return divisor;
}

/* --- the program ------------------------------------------------------------------------------ */

typedef struct problem {
    const char *number;
    unsigned primes;
} problem_t;

static const char *const digit_choices[] = {"28", "20", "24", "32", "36", NULL};
/* At least one prime of each is 1 modulo 4: else all the roots that are found can be trivial. */
static const problem_t problems[] = {
    {"2152443818537031329881618913", 70},
    {"19326223710861634601", 30},
    {"437103841289336076368329", 48},
    {"22125713339717035851513899864773", 100},
    {"649635564796957282169703025836204481", 150},
};

static uint32_t power_modulo(uint64_t base, uint32_t exponent, uint32_t modulus) {
    uint64_t result = 1;
    for (base %= modulus; exponent != 0; exponent >>= 1) {
        result = (exponent & 1) != 0 ? result * base % modulus : result;
        base = base * base % modulus;
    }
    return (uint32_t)result;
}

/* The primes that can divide a q at all: n is a square modulo each of them. */
static void choose_primes(search_t *search, unsigned count) {
    for (uint32_t candidate = 2; search->primes < count; candidate++) {
        bool prime = true;
        for (uint32_t d = 2; d * d <= candidate && prime; d++) {
            prime = candidate % d != 0;
        }
        uint32_t residue;
        drop(divide_small(search->n, candidate, &residue));
        if (prime && (candidate == 2 || power_modulo(residue, candidate / 2, candidate) == 1)) {
            search->prime[search->primes++] = candidate;
        }
    }
}

static void search_end(search_t *search) {
    for (unsigned i = 0; i < search->found; i++) {
        relation_free(search, search->relations[i]);
    }
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (search->buckets[i] != NULL) {
            relation_t *relation = search->buckets[i];
            search->buckets[i] = relation->next;
            relation_free(search, relation);
        }
    }
    drop(search->n);
    drop(search->root);
}

/* Splits the number, proves the result, adds it to CHECK; returns the steps. */
static uint64_t factor(const problem_t *problem, uint64_t *check) {
    static search_t search;
    memset(&search, 0, sizeof search);
    search.n = parse(problem->number);
    search.root = square_root(search.n);
    choose_primes(&search, problem->primes);
    search.wanted = search.primes + SPARE;
    search.early = search.primes / 8;
    search.early_bits = bit_length(search.root) - 10;
    search.large_limit = search.prime[search.primes - 1] * 100;
    collect(&search);
    number_t *p = solve(&search), *q = quotient_of(search.n, p), *product = multiply(p, q);
    if (is_one(p) || is_one(q) || compare(product, search.n) != 0) {
        bench_fail("no divisor of %s found", problem->number);
    }
    for (unsigned i = 0; i < p->length; i++) {
        *check = *check * 31 + p->limbs[i];
    }
    *check = *check * 31 + search.steps;
    drop(product);
    drop(q);
    drop(p);
    search_end(&search);
    return search.steps;
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "ROUNDS DIGITS");
    uint64_t rounds = bench_arg(1, 5, 1, 1u << 20, "ROUNDS");
    const problem_t *problem = &problems[bench_choice(2, digit_choices, "DIGITS")];
    uint64_t check = 0, steps = 0;
    factor(&problems[1], &check);
    bench_start();
    for (uint64_t i = 0; i < rounds; i++) {
        steps += factor(problem, &check);
    }
    bench_stop(steps);
    if (live != 0) {
        bench_fail("%llu bytes are still live", (unsigned long long)live);
    }
    bench_live_peak(live_peak);
    return bench_finish(check);
}
