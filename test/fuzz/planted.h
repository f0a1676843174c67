/* SPDX-License-Identifier: MIT
 *
 * Random programs with one error planted: what the judge (planted.c), the programs
 * (planted_program.c) and the errors (planted_errors.c) share. */
#ifndef HAK_TEST_FUZZ_PLANTED_H
#define HAK_TEST_FUZZ_PLANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the program ------------------------------------------------------------------------------ */

enum { PLANTED_SLOTS = 96, PLANTED_LANES = 3 };

typedef struct planted_block {
    char *at; /* NULL: none */
    size_t bytes;
    uint32_t tag; /* says what its bytes are */
} planted_block_t;

typedef struct planted_program {
    uint64_t random;
    unsigned steps; /* before the error, and at most as many after it */
    unsigned lanes; /* threads, 1 to PLANTED_LANES */
    unsigned most_log2;
    bool is_damaged; /* the error may have written to any memory that it could reach */
    planted_block_t block[PLANTED_SLOTS];
} planted_program_t;

/* What the judge sees of a program, also of one that crashed. */
typedef struct planted_trace {
    const char *volatile error; /* planted; NULL: none yet */
    volatile unsigned step;
    volatile bool is_past; /* the error's calls and accesses have returned */
    char problem[160];
    bool is_spoken; /* calls are printed */
} planted_trace_t;

/* Below `bound`, which is not 0. */
uint64_t planted_below(planted_program_t *program, uint64_t bound);
void planted_step(planted_program_t *program);
/* A block of the program, of bytes within the bounds; NULL: it has none, and none was to be had. */
planted_block_t *planted_pick(planted_program_t *program, size_t least, size_t most);
/* Runs it in a thread of the program; it is done on return. */
void planted_in_lane(unsigned lane, void (*run)(void *), void *argument);
void planted_free_in_lane(unsigned lane, void *block);
/* All at the start: a thread that starts allocates, and might get a block that the error freed. */
void planted_start_lanes(unsigned count);
void planted_end_lanes(void);
__attribute__((format(printf, 1, 2))) void planted_say(const char *format, ...);
/* Ends the process unless the condition holds: the heap is not sound. */
void planted_expect(bool condition, const char *text);
/* Forgets what blocks and unused memory should hold: the error may have changed it. */
void planted_forget_contents(planted_program_t *program);
/* A whole program; ends the process. */
_Noreturn void planted_run(uint64_t seed, unsigned steps, planted_trace_t *trace);

/* --- the errors ------------------------------------------------------------------------------- */

typedef enum planted_promise {
    PLANTED_SOUND,   /* a report, or the program goes on and no block is handed out twice */
    PLANTED_AT_END,  /* a report before the process has ended */
    PLANTED_AT_ONCE, /* a report by the call that is wrong */
} planted_promise_t;

typedef struct planted_error {
    const char *name;
    planted_promise_t promise, promise_hardened;
    const char *texts; /* that a report may have, apart from "hakmem: " and the address; '|' */
    bool may_fault;    /* the access itself may end in SIGSEGV */
    bool may_stray;    /* the marker was kept: the default library may hand out what is no block */
    unsigned usual;    /* percent of the programs that are reported at least, where no report is
                          promised: what breaks a check is noticed */
    /* false: the program has no block for it */
    bool (*plant)(planted_program_t *program);
} planted_error_t;

extern const planted_error_t planted_errors[];
extern const size_t planted_error_count;

#endif
