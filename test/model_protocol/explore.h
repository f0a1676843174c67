/* SPDX-License-Identifier: MIT
 *
 * Explores every execution of a few small threads under the C11 memory model; explore.c says how.
 * The code under test reaches it through double/base/atomics.h, its plain accesses through what
 * the compiler inserts for -fsanitize=thread. */
#ifndef MODEL_EXPLORE_H
#define MODEL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_THREADS = 3 }; /* at most, besides what runs before and after them */

typedef enum model_order { MODEL_RELAXED, MODEL_ACQUIRE, MODEL_RELEASE, MODEL_BOTH } model_order_t;
typedef enum model_rmw { MODEL_SWAP, MODEL_ADD, MODEL_SUB, MODEL_OR, MODEL_AND } model_rmw_t;

/* Where an operation stands, for the trace of a failure. */
typedef struct model_site {
    const char *function;
    const char *text;
} model_site_t;

typedef struct model_word {
    void *address;
    unsigned bytes;
} model_word_t;

#define MODEL_WORD(p) ((model_word_t){(void *)(uintptr_t)(p), sizeof *(p)})

uint64_t model_load(model_word_t word, model_order_t order, model_site_t site);
/* A read that is only a hint or a statistic: never a race, no step of its own. */
uint64_t model_peek(model_word_t word);
void model_store(model_word_t word, uint64_t value, model_order_t order, model_site_t site);
uint64_t model_rmw(model_word_t word, model_rmw_t kind, uint64_t value, model_order_t order,
                   model_site_t site);
bool model_cas(model_word_t word, void *expected, uint64_t desired, model_order_t order,
               model_site_t site);
void model_fence(model_order_t order);
/* Sleeps if the word has that value, until it is woken. */
void model_wait(model_word_t word, uint64_t value);
/* Wakes one that sleeps there, if any: which one is a choice. */
void model_wake_one(model_word_t word);

/* Sleeps until a word on which a compare-and-swap failed since the last nap holds something that
 * this thread has not seen, and sees what is there then.
 * true: nothing else can happen any more, so that time passes. */
bool model_nap(void);

/* A word that threads share: operations on it are steps. All others are done on the spot; the code
 * under test has some whose values decide nothing. */
void model_share(model_word_t word);
/* State of a thread, which is 0 at its start. */
void model_thread_state(model_word_t word);
/* This thread has just got the memory and fills it with zeros. */
void model_zero(void *address, size_t bytes);
/* From here on the calling thread is alone; the others stop for ever where they are. */
void model_stop_others(void);

/* Ends the process with the message and the steps that led there. */
void model_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
#define MODEL_CHECK(condition, message)                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            model_fail("%s", message);                                                             \
        }                                                                                          \
    } while (0)
/* Marks something that must happen in one of the executions; `mark` is below 32. */
void model_reach(unsigned mark);

typedef struct model_scenario {
    const char *name;
    void (*before)(void);
    void (*thread[MODEL_THREADS])(void);
    void (*after)(void);
    uint32_t marks;       /* that must be reached */
    unsigned preemptions; /* at most, of threads that could go on; 0: any number */
} model_scenario_t;

/* What one of the threads does. */
#define STEP(name, ...)                                                                            \
    static inline void name(void) {                                                                \
        __VA_ARGS__;                                                                               \
    }

/* Of litmus.c, scenario.c, fork.c, locks.c and units.c; each ends with one without a name. */
extern const model_scenario_t litmus_scenarios[], world_scenarios[], fork_scenarios[],
    lock_scenarios[], unit_scenarios[];

/* Runs all executions; returns their number. */
uint64_t model_explore(const model_scenario_t *scenario);

#endif
