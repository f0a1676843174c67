/* SPDX-License-Identifier: MIT
 * Part of minimiser.c: cubes and covers, each cube a block, each cover an array that grows. */
#ifndef HAK_BENCH_MINIMISER_COVER_H
#define HAK_BENCH_MINIMISER_COVER_H

#include "bench.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_WORDS = 3, VARIABLES_PER_WORD = 32, MAX_INPUTS = MAX_WORDS * VARIABLES_PER_WORD };
enum { FIRST_ROOM = 4 };

/* What is true of all cubes of one function. */
typedef struct shape {
    unsigned inputs, outputs;
    unsigned words; /* of the inputs */
    uint64_t all_outputs;
} shape_t;

static shape_t shape;
static uint64_t live, live_peak, cubes_made;

static void *take(void *block, size_t size) {
    live += size;
    live_peak = live > live_peak ? live : live_peak;
    return block;
}

/* --- cubes: a product term, and the outputs that it belongs to -------------------------------- */

/* Two bits for each input: may it be 0, may it be 1. Both: it does not matter; none: the cube is
 * empty. Bits beyond the last input are set. */
typedef struct cube {
    uint64_t outputs;
    uint64_t inputs[];
} cube_t;

static size_t cube_size(void) {
    return sizeof(cube_t) + shape.words * sizeof(uint64_t);
}

static cube_t *cube_new(void) {
    cubes_made++;
    return take(BENCH_MALLOC(cube_size()), cube_size());
}

static void cube_free(cube_t *cube) {
    live -= cube_size();
    BENCH_FREE(cube, cube_size());
}

static cube_t *cube_copy(const cube_t *original) {
    cube_t *cube = cube_new();
    memcpy(cube, original, cube_size());
    return cube;
}

static cube_t *universe(uint64_t outputs) {
    cube_t *cube = cube_new();
    cube->outputs = outputs;
    memset(cube->inputs, 0xff, shape.words * sizeof(uint64_t));
    return cube;
}

static unsigned literal_of(const cube_t *cube, unsigned variable) {
    return cube->inputs[variable / VARIABLES_PER_WORD] >> 2 * (variable % VARIABLES_PER_WORD) & 3;
}

static void set_literal(cube_t *cube, unsigned variable, unsigned literal) {
    unsigned shift = 2 * (variable % VARIABLES_PER_WORD);
    uint64_t *word = &cube->inputs[variable / VARIABLES_PER_WORD];
    *word = (*word & ~(UINT64_C(3) << shift)) | (uint64_t)literal << shift;
}

static bool meets(const cube_t *a, const cube_t *b) {
    const uint64_t even = UINT64_C(0x5555555555555555);
    bool meet = (a->outputs & b->outputs) != 0;
    for (unsigned i = 0; i < shape.words && meet; i++) {
        uint64_t both = a->inputs[i] & b->inputs[i];
        meet = ((both | both >> 1) & even) == even;
    }
    return meet;
}

static bool contains(const cube_t *outer, const cube_t *inner) {
    uint64_t beyond = inner->outputs & ~outer->outputs;
    for (unsigned i = 0; i < shape.words; i++) {
        beyond |= inner->inputs[i] & ~outer->inputs[i];
    }
    return beyond == 0;
}

static bool same_inputs(const cube_t *a, const cube_t *b) {
    uint64_t differ = 0;
    for (unsigned i = 0; i < shape.words; i++) {
        differ |= a->inputs[i] ^ b->inputs[i];
    }
    return differ == 0;
}

static bool full_inputs(const cube_t *cube) {
    uint64_t all = UINT64_MAX;
    for (unsigned i = 0; i < shape.words; i++) {
        all &= cube->inputs[i];
    }
    return all == UINT64_MAX;
}

static unsigned literals_in(const cube_t *cube) {
    unsigned count = 0;
    for (unsigned i = 0; i < shape.words; i++) {
        count += (unsigned)__builtin_popcountll(~cube->inputs[i]);
    }
    return count;
}

/* --- covers: the union of cubes, which they own ----------------------------------------------- */

typedef struct cover {
    cube_t **cubes;
    uint32_t count, room;
} cover_t;

static cover_t *cover_new(void) {
    cover_t *cover = take(BENCH_MALLOC(sizeof *cover), sizeof *cover);
    *cover = (cover_t){0};
    return cover;
}

static void cover_add(cover_t *cover, cube_t *cube) {
    if (cover->count == cover->room) {
        size_t old_size = cover->room * sizeof(cube_t *);
        cover->room = cover->room != 0 ? cover->room * 2 : FIRST_ROOM;
        size_t size = cover->room * sizeof(cube_t *);
        live -= old_size;
        cover->cubes = take(BENCH_REALLOC(cover->cubes, old_size, size), size);
    }
    cover->cubes[cover->count++] = cube;
}

/* Frees cube number INDEX; the order of the others stays. */
static void cover_remove(cover_t *cover, unsigned index) {
    cube_free(cover->cubes[index]);
    cover->count--;
    memmove(&cover->cubes[index], &cover->cubes[index + 1],
            (cover->count - index) * sizeof(cube_t *));
}

/* Frees the cover, but not the cubes. */
static void cover_disband(cover_t *cover) {
    size_t size = cover->room * sizeof(cube_t *);
    live -= size + sizeof *cover;
    if (size != 0) {
        BENCH_FREE(cover->cubes, size);
    }
    BENCH_FREE(cover, sizeof *cover);
}

static void cover_free(cover_t *cover) {
    for (unsigned i = 0; i < cover->count; i++) {
        cube_free(cover->cubes[i]);
    }
    cover_disband(cover);
}

static cover_t *cover_copy(const cover_t *original) {
    cover_t *cover = cover_new();
    for (unsigned i = 0; i < original->count; i++) {
        cover_add(cover, cube_copy(original->cubes[i]));
    }
    return cover;
}

static bool meets_cover(const cover_t *cover, const cube_t *cube) {
    bool meet = false;
    for (unsigned i = 0; i < cover->count && !meet; i++) {
        meet = meets(cover->cubes[i], cube);
    }
    return meet;
}

/* What COVER without its cube number LEFT_OUT (-1: none) looks like from inside PART. */
static cover_t *cofactor(const cover_t *cover, const cube_t *part, int left_out) {
    cover_t *result = cover_new();
    for (unsigned i = 0; i < cover->count; i++) {
        if ((int)i == left_out || !meets(cover->cubes[i], part)) {
            continue;
        }
        cube_t *cube = cube_copy(cover->cubes[i]);
        cube->outputs |= shape.all_outputs & ~part->outputs;
        for (unsigned w = 0; w < shape.words; w++) {
            cube->inputs[w] |= ~part->inputs[w];
        }
        cover_add(result, cube);
    }
    return result;
}

static cover_t *half_of(const cover_t *cover, unsigned variable, unsigned value) {
    cube_t *part = universe(shape.all_outputs);
    set_literal(part, variable, 1u << value);
    cover_t *half = cofactor(cover, part, -1);
    cube_free(part);
    return half;
}

static bool has_universe(const cover_t *cover) {
    bool full = false;
    for (unsigned i = 0; i < cover->count && !full; i++) {
        full = full_inputs(cover->cubes[i]);
    }
    return full;
}

/* The variable with the most literals among those that occur with both signs, or, if there is none
 * (then BOTH_SIGNS is false), among all. */
static unsigned choose_variable(const cover_t *cover, bool *both_signs) {
    uint16_t uses[2 * MAX_INPUTS] = {0};
    for (unsigned i = 0; i < cover->count; i++) {
        for (unsigned w = 0; w < shape.words; w++) {
            for (uint64_t rest = ~cover->cubes[i]->inputs[w]; rest != 0; rest &= rest - 1) {
                uses[w * 64 + (unsigned)__builtin_ctzll(rest)]++;
            }
        }
    }
    unsigned best = 0, most = 0;
    *both_signs = false;
    for (unsigned v = 0; v < shape.inputs; v++) {
        unsigned sum = uses[2 * v] + uses[2 * v + 1];
        bool both = uses[2 * v] != 0 && uses[2 * v + 1] != 0;
        if (both > *both_signs || (both == *both_signs && sum > most)) {
            best = v;
            most = sum;
            *both_signs = both;
        }
    }
    return best;
}

#endif
