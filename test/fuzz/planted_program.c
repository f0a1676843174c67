/* SPDX-License-Identifier: MIT
 *
 * Random programs: they make, change, use and free blocks in up to three threads, one at a time.
 * Everything follows from a seed and the number of steps. */
#include "fuzz/planted.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATTERN_BYTES = 64, UNSOUND_STATUS = 4 };

static planted_trace_t *trace_of_run;

uint64_t planted_below(planted_program_t *program, uint64_t bound) {
    uint64_t x = program->random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % bound;
}

void planted_say(const char *format, ...) {
    va_list words;
    va_start(words, format);
    if (trace_of_run->is_spoken) {
        vdprintf(STDOUT_FILENO, format, words); /* allocates nothing */
    }
    va_end(words);
}

void planted_expect(bool condition, const char *text) {
    if (!condition) {
        snprintf(trace_of_run->problem, sizeof trace_of_run->problem, "%s", text);
        _exit(UNSOUND_STATUS);
    }
}

/* --- blocks ----------------------------------------------------------------------------------- */

static size_t pattern_bytes(const planted_block_t *block) {
    return block->bytes < PATTERN_BYTES ? block->bytes : PATTERN_BYTES;
}

static char pattern_byte(const planted_block_t *block, size_t i) {
    return (char)(block->tag * 31 + i * 7 + 1);
}

/* Both ends of the block: they may overlap, as the byte depends on the place in the part. */
static void block_fill(const planted_block_t *block) {
    size_t part = pattern_bytes(block);
    for (size_t i = 0; i < part; i++) {
        block->at[block->bytes - part + i] = pattern_byte(block, i);
    }
    for (size_t i = 0; i < part && block->bytes >= 2 * (size_t)PATTERN_BYTES; i++) {
        block->at[i] = pattern_byte(block, i);
    }
}

static void block_check(const planted_block_t *block, size_t kept) {
    size_t part = pattern_bytes(block);
    if (block->tag == 0) { /* forgotten */
        return;
    }
    for (size_t i = 0; i < part && block->bytes >= 2 * (size_t)PATTERN_BYTES && i < kept; i++) {
        planted_expect(block->at[i] == pattern_byte(block, i), "the start of a block changed");
    }
    for (size_t i = 0; i < part && block->bytes <= kept; i++) {
        planted_expect(block->at[block->bytes - part + i] == pattern_byte(block, i),
                       "the end of a block changed");
    }
}

static void block_check_place(const planted_program_t *program, const planted_block_t *block) {
    planted_expect(malloc_usable_size(block->at) >= block->bytes, "a block is too small");
    for (unsigned i = 0; i < PLANTED_SLOTS; i++) {
        const planted_block_t *other = &program->block[i];
        bool is_apart = other == block || other->at == NULL ||
                        block->at + block->bytes <= other->at ||
                        other->at + other->bytes <= block->at;
        planted_expect(is_apart && (other == block || other->at != block->at),
                       "two blocks share memory");
    }
}

static size_t program_size(planted_program_t *program) {
    uint64_t kind = planted_below(program, 64);
    unsigned log2 = 1 + (unsigned)planted_below(program, program->most_log2);
    if (kind == 0) {
        return 0;
    }
    if (kind == 1) { /* large, seldom huge */
        return 65536 + planted_below(program, 1 << (17 + planted_below(program, 5)));
    }
    return 1 + planted_below(program, 1ull << log2);
}

typedef struct make {
    unsigned how;
    size_t bytes, align;
    void *old, *at;
} make_t;

static const char *const make_names[] = {"calloc", "memalign", "realloc", "malloc", "malloc",
                                         "malloc", "malloc",   "malloc",  "malloc", "malloc"};

static void lane_make(void *argument) {
    make_t *make = argument;
    switch (make->how) {
    case 0:
        make->at = calloc(1, make->bytes);
        break;
    case 1:
        make->at = memalign(make->align, make->bytes);
        break;
    case 2:
        make->at = realloc(make->old, make->bytes);
        break;
    default:
        make->at = malloc(make->bytes);
    }
}

static unsigned program_lane(planted_program_t *program) {
    return (unsigned)planted_below(program, program->lanes);
}

static void program_make(planted_program_t *program, make_t *make) {
    unsigned lane = program_lane(program);
    planted_in_lane(lane, lane_make, make);
    planted_expect(make->at != NULL, "no memory");
    planted_say("%u: %s %p -> %p, %zu bytes\n", lane, make_names[make->how], make->old, make->at,
                make->bytes);
}

static void slot_make(planted_program_t *program, planted_block_t *block) {
    make_t make = {.how = (unsigned)planted_below(program, 8) + (block->at != NULL ? 2 : 0),
                   .bytes = program_size(program)};
    make.how = block->at != NULL ? 2 : make.how == 2 ? 3 : make.how;
    make.align = (size_t)16 << planted_below(program, 9);
    make.bytes += make.how == 2 && make.bytes == 0; /* else it would free */
    make.old = block->at;
    size_t kept = block->bytes < make.bytes ? block->bytes : make.bytes;
    if (block->at != NULL) {
        block_check(block, block->bytes);
    }
    program_make(program, &make);
    *block = (planted_block_t){make.at, block->bytes, block->tag};
    if (make.how == 2) {
        block_check(block, kept);
    }
    block->bytes = make.bytes;
    block->tag = 1 + (uint32_t)planted_below(program, 250);
    block_check_place(program, block);
    for (size_t i = 0; make.how == 0 && !program->is_damaged && i < make.bytes; i += 1 + i / 64) {
        planted_expect(block->at[i] == 0, "calloc gave memory that is not zero");
    }
    if (block->bytes != 0 && planted_below(program, 4) == 0) { /* all that is usable, it may use */
        block->bytes = malloc_usable_size(block->at);
    }
    block_fill(block);
}

static void slot_free(planted_program_t *program, planted_block_t *block) {
    block_check(block, block->bytes);
    planted_free_in_lane(program_lane(program), block->at);
    block->at = NULL;
}

void planted_step(planted_program_t *program) {
    planted_block_t *block = &program->block[planted_below(program, PLANTED_SLOTS)];
    if (block->at == NULL) {
        slot_make(program, block);
    } else if (block->bytes != 0 && planted_below(program, 4) == 0) {
        slot_make(program, block); /* realloc */
    } else {
        slot_free(program, block);
    }
}

planted_block_t *planted_pick(planted_program_t *program, size_t least, size_t most) {
    unsigned first = (unsigned)planted_below(program, PLANTED_SLOTS);
    for (unsigned i = 0; i < PLANTED_SLOTS; i++) {
        planted_block_t *block = &program->block[(first + i) % PLANTED_SLOTS];
        if (block->at != NULL && block->bytes >= least && block->bytes <= most) {
            return block;
        }
    }
    for (unsigned i = 0; i < PLANTED_SLOTS; i++) {
        planted_block_t *block = &program->block[(first + i) % PLANTED_SLOTS];
        size_t room = most - least < 4096 ? most - least : 4096;
        if (block->at == NULL) {
            make_t make = {.how = 3, .bytes = least + planted_below(program, room + 1)};
            program_make(program, &make);
            *block = (planted_block_t){make.at, make.bytes, 1};
            block_check_place(program, block);
            block_fill(block);
            return block;
        }
    }
    return NULL;
}

void planted_forget_contents(planted_program_t *program) {
    program->is_damaged = true;
    for (unsigned i = 0; i < PLANTED_SLOTS; i++) {
        program->block[i].tag = 0;
    }
}

/* --- a whole program -------------------------------------------------------------------------- */

/* One program in eight has no error. */
static void program_plant(planted_program_t *program, planted_trace_t *trace) {
    const planted_error_t *error = &planted_errors[planted_below(program, planted_error_count)];
    if (planted_below(program, 8) == 0) {
        return;
    }
    trace->error = error->name;
    planted_say("here: %s\n", error->name);
    if (!error->plant(program)) {
        trace->error = NULL;
    }
    trace->is_past = true;
}

static void program_end(planted_program_t *program) {
    bool frees_all = planted_below(program, 2) == 0;
    for (unsigned i = 0; i < PLANTED_SLOTS; i++) {
        if (program->block[i].at != NULL) {
            block_check(&program->block[i], program->block[i].bytes);
        }
        if (program->block[i].at != NULL && frees_all) {
            slot_free(program, &program->block[i]);
        }
    }
    planted_end_lanes();
    exit(0);
}

_Noreturn void planted_run(uint64_t seed, unsigned steps, planted_trace_t *trace) {
    static planted_program_t program;
    trace_of_run = trace;
    program.random = seed * 0x2545f4914f6cdd1du;
    program.lanes = 1 + (unsigned)planted_below(&program, PLANTED_LANES);
    program.most_log2 = 4 + (unsigned)planted_below(&program, 13);
    unsigned before = (unsigned)planted_below(&program, 4) == 0 ? 8 : 600;
    before = (unsigned)planted_below(&program, before);
    program.steps = before < steps ? before : steps;
    planted_start_lanes(program.lanes);
    for (unsigned i = 0; i < program.steps; i++) {
        trace->step = i;
        planted_step(&program);
    }
    program_plant(&program, trace);
    unsigned after = (unsigned)planted_below(&program, 2) * program.steps;
    for (unsigned i = 0; i < after; i++) {
        trace->step = program.steps + i;
        planted_step(&program);
    }
    program_end(&program);
    abort();
}
