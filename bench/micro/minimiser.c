/* SPDX-License-Identifier: MIT
 * minimiser FUNCTIONS SEED
 *
 * Measures: a program that computes with lists of small sets. It minimises generated boolean
 * functions of several outputs in two levels: complement, then expand, irredundant and reduce until
 * the cost no longer falls. Every cube is a block of 16 to 32 bytes, every cover an array of
 * pointers that doubles by realloc (32 bytes to some KiB), and the recursion behind complement and
 * tautology copies whole covers at each level and drops them on the way back. The results stay to
 * the end.
 * Known from: espresso, the logic minimiser in the classic collections of such programs.
 * Does not measure: threads, large blocks, memory (the peak is below a MiB).
 * One operation is one cube made. SEED chooses the functions. */
#include "minimiser_cover.h"

enum { SAMPLES = 400, MAX_LOOPS = 6 };

/* --- tautology and complement --------------------------------------------------------------------
 */

/* Do the cubes, whatever their outputs, cover all inputs? */
static bool is_tautology(const cover_t *cover) {
    if (has_universe(cover)) {
        return true;
    }
    bool both_signs;
    unsigned variable = choose_variable(cover, &both_signs);
    bool full = both_signs; /* one sign each: only the full cube covers the point of the others */
    for (unsigned value = 0; value < 2 && full; value++) {
        cover_t *half = half_of(cover, variable, value);
        full = is_tautology(half);
        cover_free(half);
    }
    return full;
}

/* A cube's complement: one cube for each literal. */
static void add_complement_of_cube(cover_t *result, const cube_t *cube) {
    for (unsigned v = 0; v < shape.inputs; v++) {
        unsigned literal = literal_of(cube, v);
        if (literal != 3) {
            cube_t *opposite = universe(shape.all_outputs);
            set_literal(opposite, v, 3 ^ literal);
            cover_add(result, opposite);
        }
    }
}

/* Joins the two halves' results; a cube that both have needs no literal. Takes both. */
static cover_t *merge(cover_t *low, cover_t *high, unsigned variable) {
    unsigned kept = low->count;
    for (unsigned h = 0; h < high->count; h++) {
        cube_t *cube = high->cubes[h];
        unsigned l = 0;
        while (l < kept && !same_inputs(low->cubes[l], cube)) {
            l++;
        }
        if (l == kept) {
            set_literal(cube, variable, 2);
            cover_add(low, cube);
            continue;
        }
        /* The pair's cube moves behind the ones that still wait for a twin. */
        cube_t *both = low->cubes[l];
        low->cubes[l] = low->cubes[--kept];
        low->cubes[kept] = both;
        cube_free(cube);
    }
    for (unsigned l = 0; l < kept; l++) {
        set_literal(low->cubes[l], variable, 1);
    }
    cover_disband(high);
    return low;
}

/* The inputs that no cube covers, whatever the cubes' outputs. */
static cover_t *complement(const cover_t *cover) {
    if (cover->count <= 1 || has_universe(cover)) {
        cover_t *result = cover_new();
        if (cover->count == 0) {
            cover_add(result, universe(shape.all_outputs));
        } else if (cover->count == 1) {
            add_complement_of_cube(result, cover->cubes[0]);
        }
        return result;
    }
    bool both_signs;
    unsigned variable = choose_variable(cover, &both_signs);
    cover_t *halves[2];
    for (unsigned value = 0; value < 2; value++) {
        cover_t *half = half_of(cover, variable, value);
        halves[value] = complement(half);
        cover_free(half);
    }
    return merge(halves[0], halves[1], variable);
}

static cover_t *for_output(const cover_t *cover, uint64_t output) {
    cube_t *part = universe(output);
    cover_t *result = cofactor(cover, part, -1);
    cube_free(part);
    return result;
}

/* The off-set: for each output the inputs where it is 0. */
static cover_t *off_set(const cover_t *cover) {
    cover_t *result = cover_new();
    for (unsigned i = 0; i < shape.outputs; i++) {
        cover_t *one = for_output(cover, UINT64_C(1) << i), *off = complement(one);
        for (unsigned c = 0; c < off->count; c++) {
            off->cubes[c]->outputs = UINT64_C(1) << i;
            cover_add(result, off->cubes[c]);
        }
        cover_disband(off);
        cover_free(one);
    }
    return result;
}

/* --- the three steps -------------------------------------------------------------------------- */

/* Puts TRIAL in CUBE's place unless it reaches into the off-set. */
static cube_t *unless_off(cube_t *cube, cube_t *trial, const cover_t *off) {
    bool bad = meets_cover(off, trial);
    cube_free(bad ? trial : cube);
    return bad ? cube : trial;
}

/* Drops literals, from FIRST on, and adds outputs, while the cube stays clear of the off-set. */
static cube_t *expand_cube(cube_t *cube, const cover_t *off, unsigned first) {
    for (unsigned i = 0; i < shape.inputs; i++) {
        unsigned variable = (first + i) % shape.inputs;
        if (literal_of(cube, variable) != 3) {
            cube_t *trial = cube_copy(cube);
            set_literal(trial, variable, 3);
            cube = unless_off(cube, trial, off);
        }
    }
    for (uint64_t rest = shape.all_outputs & ~cube->outputs; rest != 0; rest &= rest - 1) {
        cube_t *trial = cube_copy(cube);
        trial->outputs |= rest & -rest;
        cube = unless_off(cube, trial, off);
    }
    return cube;
}

static void expand(cover_t *cover, const cover_t *off, unsigned turn) {
    for (unsigned i = 0; i < cover->count; i++) {
        cover->cubes[i] = expand_cube(cover->cubes[i], off, turn * 5 + i);
        for (unsigned other = cover->count; other-- > 0;) {
            if (other != i && contains(cover->cubes[i], cover->cubes[other])) {
                cover_remove(cover, other);
                i -= other < i;
            }
        }
    }
}

/* Drops cubes, and outputs of cubes, that the other cubes cover. */
static void irredundant(cover_t *cover) {
    for (unsigned i = cover->count; i-- > 0;) {
        cube_t *cube = cover->cubes[i];
        cover_t *others = cofactor(cover, cube, (int)i);
        for (uint64_t rest = cube->outputs; rest != 0; rest &= rest - 1) {
            cover_t *one = for_output(others, rest & -rest);
            if (is_tautology(one)) {
                cube->outputs &= ~(rest & -rest);
            }
            cover_free(one);
        }
        cover_free(others);
        if (cube->outputs == 0) {
            cover_remove(cover, i);
        }
    }
}

/* Shrinks each cube to the smallest that holds what only it covers, so that the next expand may
 * find another way. */
static void reduce(cover_t *cover) {
    for (unsigned i = cover->count; i-- > 0;) {
        cube_t *cube = cover->cubes[i];
        uint64_t needed[MAX_WORDS] = {0};
        cover_t *others = cofactor(cover, cube, (int)i);
        for (uint64_t rest = cube->outputs; rest != 0; rest &= rest - 1) {
            cover_t *one = for_output(others, rest & -rest), *only = complement(one);
            for (unsigned c = 0; c < only->count; c++) {
                for (unsigned w = 0; w < shape.words; w++) {
                    needed[w] |= only->cubes[c]->inputs[w];
                }
            }
            if (only->count == 0) {
                cube->outputs &= ~(rest & -rest);
            }
            cover_free(only);
            cover_free(one);
        }
        cover_free(others);
        for (unsigned w = 0; w < shape.words; w++) {
            cube->inputs[w] &= needed[w];
        }
        if (cube->outputs == 0) {
            cover_remove(cover, i);
        }
    }
}

static unsigned cost_of(const cover_t *cover) {
    unsigned cost = 0;
    for (unsigned i = 0; i < cover->count; i++) {
        cost += 100 + literals_in(cover->cubes[i]);
        cost += (unsigned)__builtin_popcountll(cover->cubes[i]->outputs);
    }
    return cost;
}

static cover_t *minimised(const cover_t *on) {
    cover_t *off = off_set(on), *best = cover_copy(on);
    expand(best, off, 0);
    irredundant(best);
    for (unsigned turn = 1; turn < MAX_LOOPS; turn++) {
        cover_t *next = cover_copy(best);
        reduce(next);
        expand(next, off, turn);
        irredundant(next);
        bool better = cost_of(next) < cost_of(best);
        cover_free(better ? best : next);
        if (!better) {
            break;
        }
        best = next;
    }
    cover_free(off);
    return best;
}

/* --- the program ------------------------------------------------------------------------------ */

typedef struct result {
    shape_t shape;
    cover_t *cover;
} result_t;

/* Three functions in four are dense over few inputs, the fourth has many inputs, few literals. */
static bool choose_shape(bench_rng_t *rng) {
    bool wide = bench_below(rng, 4) == 0;
    shape.inputs = wide ? bench_between(rng, 33, 70) : bench_between(rng, 10, 14);
    shape.outputs = bench_between(rng, 1, wide ? 2 : 6);
    shape.words = (shape.inputs + VARIABLES_PER_WORD - 1) / VARIABLES_PER_WORD;
    shape.all_outputs = (UINT64_C(1) << shape.outputs) - 1;
    return wide;
}

/* Adds CUBE in pieces: cut in two along a random input, each half again, SPLITS times. Takes it. */
static void add_pieces(cover_t *cover, cube_t *cube, unsigned splits, bench_rng_t *rng) {
    unsigned variable = bench_below(rng, shape.inputs);
    if (splits > 0 && literal_of(cube, variable) == 3) {
        cube_t *other = cube_copy(cube);
        set_literal(cube, variable, 1);
        set_literal(other, variable, 2);
        add_pieces(cover, other, splits - 1, rng);
        add_pieces(cover, cube, splits - 1, rng);
    } else {
        cover_add(cover, cube);
    }
}

static cover_t *generate(bench_rng_t *rng) {
    bool wide = choose_shape(rng);
    unsigned count = wide ? bench_between(rng, 3, 4) : bench_between(rng, 16, 32);
    unsigned literals = wide ? 4 : shape.inputs * 2 / 3; /* fewer where one input is drawn twice */
    cover_t *cover = cover_new();
    for (unsigned i = 0; i < count; i++) {
        cube_t *cube = universe(1 + bench_below(rng, (uint32_t)shape.all_outputs));
        for (unsigned l = 0; l < literals; l++) {
            unsigned variable = bench_below(rng, shape.inputs);
            set_literal(cube, variable, 1 + bench_below(rng, 2));
        }
        add_pieces(cover, cube, wide ? 2 : 3, rng);
    }
    return cover;
}

/* The outputs that are 1 at POINT, a cube with one value for each input. */
static uint64_t outputs_at(const cover_t *cover, const cube_t *point) {
    uint64_t outputs = 0;
    for (unsigned i = 0; i < cover->count; i++) {
        outputs |= meets(cover->cubes[i], point) ? cover->cubes[i]->outputs : 0;
    }
    return outputs;
}

/* Half of the points lie in a cube of BEFORE: random ones would hardly meet a wide function. */
static void verify(const cover_t *before, const cover_t *after, bench_rng_t *rng) {
    for (unsigned i = 0; i < SAMPLES; i++) {
        cube_t *point = universe(shape.all_outputs);
        const cube_t *inside = before->cubes[bench_below(rng, before->count)];
        for (unsigned v = 0; v < shape.inputs; v++) {
            unsigned literal = i % 2 == 0 ? literal_of(inside, v) : 3;
            set_literal(point, v, literal != 3 ? literal : 1 + bench_below(rng, 2));
        }
        if (outputs_at(before, point) != outputs_at(after, point)) {
            bench_fail("the minimised function differs from the given one");
        }
        cube_free(point);
    }
}

static uint64_t fold(const result_t *result, uint64_t check) {
    shape = result->shape;
    for (unsigned i = 0; i < result->cover->count; i++) {
        const cube_t *cube = result->cover->cubes[i];
        check = (check ^ cube->outputs) * UINT64_C(0x9e3779b97f4a7c15);
        for (unsigned w = 0; w < shape.words; w++) {
            check = (check ^ cube->inputs[w]) * UINT64_C(0x9e3779b97f4a7c15);
        }
    }
    return check ^ result->cover->count;
}

static result_t minimise_one(bench_rng_t *rng) {
    cover_t *on = generate(rng), *after = minimised(on);
    verify(on, after, rng);
    cover_free(on);
    return (result_t){shape, after};
}

int main(int argc, char **argv) {
    bench_init(argc, argv, "FUNCTIONS SEED");
    uint64_t functions = bench_arg(1, 600, 1, 1u << 20, "FUNCTIONS");
    bench_rng_t rng = bench_rng(bench_arg(2, 42, 0, UINT64_MAX, "SEED"));
    uint64_t warm_up = functions / 10 + 1, check = 0;
    size_t size = (warm_up + functions) * sizeof(result_t);
    result_t *results = bench_need(malloc(size), size);
    for (uint64_t i = 0; i < warm_up + functions; i++) {
        if (i == warm_up) {
            cubes_made = 0;
            bench_start();
        }
        results[i] = minimise_one(&rng);
    }
    bench_stop(cubes_made);
    for (uint64_t i = 0; i < warm_up + functions; i++) {
        check = fold(&results[i], check);
        cover_free(results[i].cover);
    }
    free(results);
    if (live != 0) {
        bench_fail("%llu bytes are still live", (unsigned long long)live);
    }
    bench_live_peak(live_peak);
    return bench_finish(check);
}
