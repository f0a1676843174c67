/* SPDX-License-Identifier: MIT
 *
 * What the attack programs share. An attack does to the heap what a faulty program can be made to
 * do, and tells what came of it. A signal that ends the process counts as STOPPED. */
#ifndef HAK_BENCH_ATTACK_H
#define HAK_BENCH_ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum outcome {
    HARMLESS,  /* unnoticed, but nothing was gained */
    STOPPED,   /* refused by the allocator */
    SUCCEEDED, /* unnoticed, and the attacker got what they wanted */
} outcome_t;

typedef struct attack {
    const char *kind, *name;
    outcome_t (*run)(const struct attack *attack);
    size_t bytes; /* requested */
    ptrdiff_t by; /* distance, offset or other size, as the function says */
} attack_t;

/* Each ends with an attack without a name. */
extern const attack_t bounds_attacks[], reuse_attacks[], free_attacks[], link_attacks[];

enum {
    SECRET = 0x5e, /* every byte of data that an attacker shall not see */
    MARK = 0x4d,   /* every byte that an attacker writes */
    ROW = 48,      /* blocks of a row */
    SPRAY = 256,   /* blocks that an attacker allocates to get a certain place */
};

/* The compiler must not see what is done to an address. */
static inline char *hide(const void *address) {
    const void *volatile hidden = address;
    return (char *)(uintptr_t)hidden;
}

/* attacks.c */
char *make(size_t bytes);             /* a block; ends the process if there is none */
void fill(char *block, size_t bytes); /* with SECRET: both ends of large ones, all of others */
bool is_filled(const char *block, size_t bytes); /* whether it is as fill left it */
void churn(size_t bytes); /* frees and allocates until what waits comes again */
/* A number of blocks of a size, all filled. Those of a row lie near each other. */
size_t make_row(char **row, size_t bytes);
void free_row(char *const *row, size_t count);
/* Whether two of these blocks overlap. */
bool overlap(char *const *row, size_t count, size_t bytes);
/* Whether a spray of blocks gets a place that overlaps these bytes. */
bool spray_hits(size_t bytes, const char *target, size_t target_bytes);
/* Calls it in a thread of its own, which is gone on return. */
void in_thread(void (*run)(void *), void *argument);

#endif
