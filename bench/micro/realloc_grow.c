/* SPDX-License-Identifier: MIT
 * realloc_grow PATTERN ROUNDS [MAX]
 *
 * Measures: realloc as growing containers use it.
 *   vector  ROUNDS vectors, 32 of them growing at the same time, each by doubling from 16 B to its
 *           own final size: mostly small, at most MAX (1m). Every element is written.
 *   append  ROUNDS strings, 16 of them growing at the same time, each by pieces of 1 to 32 bytes up
 *           to its own length of at most about MAX (64k); every append is one realloc to the exact
 *           length.
 *   huge    ROUNDS times one block from 1 KiB to MAX (256m), by half and by double in turn; one
 *           byte of each new 4 KiB and the last byte are written.
 * Known from: std::vector and its like, string builders without spare capacity, column buffers that
 * grow while a file is read.
 * Does not measure: threads, shrinking, other blocks between the growing ones.
 * One operation is one realloc. */
#include "bench.h"

#include <string.h>

enum { OS_PAGE = 4096, SMALLEST = 16, VECTORS = 32, STRINGS = 16, PIECE = 32 };

static uint64_t live_peak;

/* --- vector ----------------------------------------------------------------------------------- */

typedef struct vector {
    uint64_t *elements;
    size_t bytes, goal;
} vector_t;

/* 16, 32, … or MAX: the lowest of three draws, so that each size causes about as much writing. */
static size_t vector_goal(bench_rng_t *rng, size_t max) {
    uint32_t octaves = 1;
    while ((size_t)SMALLEST << octaves <= max) {
        octaves++;
    }
    uint32_t lowest = bench_below(rng, octaves);
    for (int draw = 0; draw < 2; draw++) {
        uint32_t octave = bench_below(rng, octaves);
        lowest = octave < lowest ? octave : lowest;
    }
    return (size_t)SMALLEST << lowest;
}

static void vector_grow(vector_t *vector) {
    size_t bytes = vector->bytes != 0 ? 2 * vector->bytes : SMALLEST;
    vector->elements = bench_need(realloc(vector->elements, bytes), bytes);
    for (size_t i = vector->bytes / sizeof(uint64_t); i < bytes / sizeof(uint64_t); i++) {
        vector->elements[i] = i + vector->goal;
    }
    vector->bytes = bytes;
}

/* Reads some elements of each octave, the first and the last, and frees. */
static uint64_t vector_end(vector_t *vector) {
    size_t count = vector->bytes / sizeof(uint64_t);
    uint64_t sum = count != 0 ? vector->elements[count - 1] : 0;
    for (size_t i = 0; i < count; i += 1 + i / 4) {
        sum = sum * 3 + vector->elements[i];
    }
    free(vector->elements);
    *vector = (vector_t){0};
    return sum;
}

static uint64_t grow_vectors(uint64_t rounds, size_t max, uint64_t *operations) {
    vector_t vectors[VECTORS] = {0};
    bench_rng_t rng = bench_rng(rounds);
    uint64_t sum = 0, live = 0;
    for (uint64_t finished = 0; finished < rounds;) {
        vector_t *vector = &vectors[bench_below(&rng, VECTORS)];
        if (vector->goal == 0) {
            vector->goal = vector_goal(&rng, max);
        }
        live -= vector->bytes;
        if (vector->bytes == vector->goal) {
            sum += vector_end(vector);
            finished++;
        } else {
            vector_grow(vector);
            *operations += 1;
        }
        live += vector->bytes;
        live_peak = live > live_peak ? live : live_peak;
    }
    for (int i = 0; i < VECTORS; i++) {
        sum += vector_end(&vectors[i]);
    }
    return sum;
}

/* --- append ----------------------------------------------------------------------------------- */

typedef struct string {
    char *text;
    size_t length, goal;
} string_t;

static void string_append(string_t *string, const char *piece, size_t length) {
    size_t bytes = string->length + length + 1;
    string->text = bench_need(realloc(string->text, bytes), bytes);
    memcpy(string->text + string->length, piece, length);
    string->length += length;
    string->text[string->length] = '\0';
}

static uint64_t string_end(string_t *string) {
    uint64_t sum = 0;
    for (size_t i = 0; i < string->length; i += 1 + i / 16) {
        sum = sum * 3 + (unsigned char)string->text[i];
    }
    sum += string->text != NULL ? (unsigned char)string->text[string->length] : 0;
    sum += string->length;
    free(string->text);
    *string = (string_t){0};
    return sum;
}

static uint64_t append_strings(uint64_t rounds, size_t max, uint64_t *operations) {
    static const char pool[] =
        "the quick brown fox jumps over the lazy dog, 0123456789 times a day";
    string_t strings[STRINGS] = {0};
    bench_rng_t rng = bench_rng(rounds);
    uint64_t sum = 0, live = 0;
    for (uint64_t finished = 0; finished < rounds;) {
        string_t *string = &strings[bench_below(&rng, STRINGS)];
        if (string->goal == 0) {
            string->goal = bench_log_between(&rng, SMALLEST, (uint32_t)max);
        }
        live -= string->length;
        if (string->length >= string->goal) {
            sum += string_end(string);
            finished++;
        } else {
            const char *piece = pool + bench_below(&rng, sizeof pool - PIECE);
            string_append(string, piece, bench_between(&rng, 1, PIECE));
            *operations += 1;
        }
        live += string->length;
        live_peak = live > live_peak ? live : live_peak;
    }
    for (int i = 0; i < STRINGS; i++) {
        sum += string_end(&strings[i]);
    }
    return sum;
}

/* --- huge ------------------------------------------------------------------------------------- */

static uint64_t grow_huge(uint64_t rounds, size_t max, uint64_t *operations) {
    uint64_t sum = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        unsigned char *block = NULL;
        size_t written = 0;           /* up to here one byte in each OS_PAGE */
        size_t size = 1024, last = 0; /* where the last byte was before this step */
        for (unsigned step = 0;; step++) {
            size = size < max ? size : max;
            block = bench_need(realloc(block, size), size);
            sum += step != 0 ? block[last] : 0;
            last = size - 1;
            block[last] = (unsigned char)(step + 1);
            for (; written < size; written += OS_PAGE) {
                block[written] = (unsigned char)(written / OS_PAGE + round);
            }
            *operations += 1;
            if (size == max) {
                break;
            }
            size = step % 2 == 0 ? size + size / 2 : 2 * size;
        }
        for (size_t at = 0; at < written; at += OS_PAGE) {
            sum = sum * 3 + block[at];
        }
        free(block);
    }
    live_peak = max > live_peak ? max : live_peak;
    return sum;
}

/* --- which pattern ---------------------------------------------------------------------------- */

typedef struct pattern {
    uint64_t (*run)(uint64_t rounds, size_t max, uint64_t *operations);
    uint64_t rounds; /* by default, in 0.3 s on glibc */
    size_t max;
} pattern_t;

int main(int argc, char **argv) {
    static const char *const names[] = {"vector", "append", "huge", NULL};
    static const pattern_t patterns[] = {
        {grow_vectors, 500000, 1 << 20}, {append_strings, 10000, 1 << 16}, {grow_huge, 2, 1 << 28}};
    bench_init(argc, argv, "vector|append|huge ROUNDS [MAX]");
    const pattern_t *pattern = &patterns[bench_choice(1, names, "PATTERN")];
    uint64_t rounds = bench_arg(2, pattern->rounds, 1, UINT32_MAX, "ROUNDS");
    size_t max = bench_arg(3, pattern->max, 1024, 1u << 31, "MAX");

    uint64_t operations = 0;
    uint64_t sum =
        pattern->run(1 + rounds / 10, pattern->run == grow_huge ? 1024 : max, &operations);
    operations = 0;
    bench_start();
    sum += pattern->run(rounds, max, &operations);
    bench_stop(operations);
    bench_live_peak(live_peak);
    return bench_finish(sum);
}
