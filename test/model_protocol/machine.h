/* SPDX-License-Identifier: MIT
 *
 * What explore.c (choices, coroutines, states) and memory.c (words, views, races) share. */
#ifndef MODEL_MACHINE_H
#define MODEL_MACHINE_H

#include "explore.h"

#include <setjmp.h>
#include <ucontext.h>

enum {
    WORDS = 64,
    STORES = 24, /* of a word in one execution */
    CHOICES = 1000,
    TRACE = 1000,
    WRITES = 1 << 16,
    RACE_SLOTS = 1 << 14,
    STACK_BYTES = 1 << 16,
    STATE_WORDS = 9,
    BEFORE_AND_AFTER = MODEL_THREADS, /* coroutine that runs alone */
    COROUTINES,
};

/* What a thread knows: of each thread the time, of each word the oldest store it may read. */
typedef struct view {
    uint16_t time[COROUTINES];
    uint8_t oldest[WORDS];
} view_t;

typedef struct store {
    uint64_t value, id;
    view_t handed; /* to who acquires it */
} store_t;

typedef struct word {
    model_word_t at;
    unsigned count;
    uint64_t order_id;
    store_t store[STORES];
} word_t;

typedef struct thread {
    ucontext_t context;
    jmp_buf state;
    void (*body)(void);
    view_t view;
    view_t fenced; /* at its last release fence: what its relaxed stores hand on */
    view_t loaded; /* what its relaxed loads got, for its next acquire fence */
    uint64_t id;   /* of all it read */
    unsigned is_started : 1, is_done : 1, naps : 1;
    const word_t *sleeps_at;
    uint64_t tried; /* bit per word on which a compare-and-swap failed since the last nap */
    unsigned char own[STATE_WORDS][16];
} thread_t;

typedef struct choice {
    uint32_t left; /* bit per option that is still to be tried */
    uint8_t now;
} choice_t;

typedef struct race_slot {
    uint64_t execution;
    uintptr_t address;
    uint8_t writer;
    uint16_t written, read[COROUTINES];
} race_slot_t;

typedef struct machine {
    word_t word[WORDS];
    unsigned word_count;
    thread_t thread[COROUTINES];
    unsigned now; /* the coroutine that runs */
    bool is_alone, is_stopped;
    jmp_buf scheduler;
    ucontext_t main;
    model_word_t own[STATE_WORDS];
    unsigned own_count;
    choice_t choice[CHOICES];
    unsigned choice_count, position;
    struct {
        void *address;
        unsigned bytes;
        unsigned char was[16];
    } write[WRITES]; /* to undo */
    unsigned write_count;
    struct {
        uint8_t thread;
        model_site_t site;
        uint64_t value;
    } trace[TRACE];
    unsigned trace_count;
    uint64_t executions;
    uint32_t reached;
    uint64_t *met; /* states, open addressing */
    size_t met_count, met_size;
    race_slot_t race[RACE_SLOTS];
} machine_t;

extern machine_t m;
extern unsigned char model_stacks[COROUTINES][STACK_BYTES];

uint64_t model_mix(uint64_t a, uint64_t b);
/* One of the options, a bit each. */
unsigned model_choose(uint32_t options);
/* The running thread stops before a step; it goes on when it is chosen. */
void model_step(void);
/* Notes what is there, to be undone after the execution. */
void model_write_log(void *address, unsigned bytes);
/* A plain access of the running thread; fails if another one is not ordered against it. */
void model_race_check(uintptr_t address, bool is_write);
/* Whether a word that the thread tried holds what it does not know of. */
bool model_has_news(const thread_t *thread);
/* The words start with the values they have, and all threads know them. */
void model_words_start(void);

#endif
