/* SPDX-License-Identifier: MIT
 *
 * The shadow of one block: what was asked for, and the pattern its bytes must still have. Every
 * failure names the seed and the operation, so that a run can be repeated. */
#ifndef HAK_TEST_MODEL_BLOCK_H
#define HAK_TEST_MODEL_BLOCK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "double/audit.h"
#include "double/rng.h"
#include "hakmem/hakmem.h"
#include "slab/link.h"

typedef struct model_block {
    unsigned char *at; /* NULL: the slot is free */
    size_t bytes;      /* as requested; the pattern covers them */
    size_t usable;
    size_t align;
    uint64_t id;
} model_block_t;

typedef struct model_run {
    uint64_t seed;   /* as given */
    uint64_t op;     /* number of the operation in progress */
    uint64_t random; /* state */
} model_run_t;

static inline uint64_t model_random(model_run_t *run) {
    return hak_rng_next(&run->random);
}

#define MODEL_EXPECT(run, condition)                                                               \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n  operation %llu; repeat with --seed %llu\n",      \
                    __FILE__, __LINE__, #condition, (unsigned long long)(run)->op,                 \
                    (unsigned long long)(run)->seed);                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Some blocks begin with what the allocator writes into free ones (slab/link.h): it must neither
 * believe it nor suffer from it. The links lead nowhere or to the decoy, a block in use. */
static uintptr_t model_decoy;

static inline bool model_is_imitation(uint64_t id) {
    return id % 16 == 0;
}

static inline uint64_t model_imitation(uint64_t id, size_t i) {
    uint64_t next = id % 32 == 0 ? 0 : model_decoy;
    return i == 0 ? next << HAK_LINK_MARKER_BITS | HAK_LINK_MARKER : HAK_LINK_MARK;
}

/* Byte i of a block with this id. Words repeat every 2 KiB, which no class offset hides. */
static inline uint64_t model_word(uint64_t id, size_t i) {
    return i < 16 && model_is_imitation(id) ? model_imitation(id, i)
                                            : hak_mix64(id * 0x9e3779b97f4a7c15ull + (i / 8) % 251);
}

static inline unsigned char model_byte(uint64_t id, size_t i) {
    return (unsigned char)(model_word(id, i) >> i % 8 * 8);
}

/* Large blocks are written and checked at a part of their words only, the same at every size. */
static inline size_t model_step(size_t at) {
    return at < 32768 ? 8 : 4096 - 40;
}

static inline void model_fill(const model_block_t *block, size_t from) {
    for (size_t i = 0; i + 8 <= block->bytes; i += model_step(i)) {
        if (i + 8 > from) {
            uint64_t word = model_word(block->id, i);
            memcpy(block->at + i, &word, 8);
        }
    }
    for (size_t i = block->bytes & ~(size_t)7; i < block->bytes; i++) {
        block->at[i] = model_byte(block->id, i);
    }
}

/* The first `bytes` have the pattern. */
static inline bool model_is_intact(const unsigned char *at, uint64_t id, size_t bytes) {
    for (size_t i = 0; i + 8 <= bytes; i += model_step(i)) {
        uint64_t word;
        memcpy(&word, at + i, 8);
        if (word != model_word(id, i)) {
            return false;
        }
    }
    for (size_t i = bytes & ~(size_t)7; bytes <= 32768 && i < bytes; i++) {
        if (at[i] != model_byte(id, i)) {
            return false;
        }
    }
    return true;
}

static inline bool model_is_zero(const unsigned char *at, size_t bytes) {
    return bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}

/* Mostly small, often near a power of two or a class border, sometimes up to `most`. */
static inline size_t model_size(model_run_t *run, size_t most) {
    uint64_t random = model_random(run);
    size_t size;
    switch (random % 16) {
    case 0:
        size = (random >> 8) % 17;
        break;
    case 1:
        size = ((size_t)1 << (random >> 8) % 24) + (random >> 16) % 5 - 2;
        break;
    case 2:
        size = (random >> 8) % 70000;
        break;
    case 3:
        size = (random >> 8) % (random >> 40 & 7 ? 400000 : most);
        break;
    case 4:
    case 5:
        size = (random >> 8) % 10000;
        break;
    default:
        size = (random >> 8) % 1040;
        break;
    }
    return size > most ? (random >> 8) % most : size;
}

/* "--seed N", "--ops N": the value after the word, or the default. */
static inline uint64_t model_argument(int argc, char **argv, const char *word, uint64_t initial) {
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], word) == 0) {
            return strtoull(argv[i + 1], NULL, 0);
        }
    }
    return initial;
}

/* A fixed one, so that each run does the same; with HAKMEM_FULL=1 another each time. */
static inline model_run_t model_begin(int argc, char **argv) {
    uint32_t seed = 20261127;
    if (getenv("HAKMEM_FULL") != NULL) {
        (void)!getrandom(&seed, sizeof seed, 0);
    }
    model_run_t run = {.seed = model_argument(argc, argv, "--seed", seed)};
    run.random = run.seed;
    printf("seed %llu\n", (unsigned long long)run.seed);
    fflush(stdout);
    return run;
}

static inline void model_audit(const model_run_t *run) {
    hak_audit_t result;
    if (!hak_audit_walk(&result)) {
        fprintf(stderr, "audit: %s broken at %p\n", result.broken, result.where);
        MODEL_EXPECT(run, result.broken == NULL);
    }
}

#endif
