/* SPDX-License-Identifier: MIT
 *
 * Second deeds far from the first free: other frees in between, by this thread and by another one,
 * or the places closed since: their slabs and superslabs are gone. */
#include "crimes.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern void hak_collect_thread(void) __attribute__((weak));

enum {
    SMALL = 64,
    FAR = 5000,
    MEDIUM = 20000,
    CLOSED = 3000,
    CLOSED_BYTES = 2000,
    HUGE_BYTES = 3 << 20,
};

static void free_it(void *block) {
    free(block);
}

/* --- a, others, a ----------------------------------------------------------------------------- */

/* Some of the others stay in use, so that the slabs do. */
CRIME(double_free_interleaved_far) {
    static void *block[FAR];
    for (unsigned i = 0; i < FAR; i++) {
        block[i] = hide(malloc(SMALL));
    }
    for (unsigned i = 0; i < FAR; i++) {
        if (i % 3 != 1) {
            free(block[i]);
        }
    }
    free(block[0]);
    exit(0);
}

CRIME(double_free_interleaved_of_medium) {
    void *a = hide(malloc(MEDIUM)), *b = hide(malloc(MEDIUM)), *c = hide(malloc(MEDIUM));
    free(a);
    free(b);
    free(a);
    free(c);
    exit(0);
}

typedef struct trio {
    void *a, *b, *keep[40];
} trio_t;

static trio_t make_trio(void) {
    trio_t trio;
    start_other();
    trio.a = hide(malloc(SMALL));
    trio.b = hide(malloc(SMALL));
    for (unsigned i = 0; i < sizeof trio.keep / sizeof *trio.keep; i++) {
        trio.keep[i] = hide(malloc(SMALL));
    }
    return trio;
}

/* By this thread, by another one, by this thread. */
CRIME(double_free_around_another_thread) {
    trio_t trio = make_trio();
    free(trio.a);
    by_other(free_it, trio.b);
    free(trio.a);
    exit(0);
}

/* Both free both, in the other order. */
CRIME(double_free_crossed) {
    trio_t trio = make_trio();
    free(trio.a);
    by_other(free_it, trio.b);
    by_other(free_it, trio.a);
    free(trio.b);
    exit(0);
}

/* The other thread's blocks come and go between its two frees. It lives on when the process ends.
 */
static void free_around_others(void *block) {
    static void *other[FAR];
    for (unsigned i = 0; i < FAR; i++) {
        other[i] = hide(malloc(SMALL));
    }
    free(block);
    for (unsigned i = 0; i < FAR; i++) {
        free(other[i]);
    }
    free(block);
}

CRIME(double_free_interleaved_far_by_another_thread) {
    trio_t trio = make_trio();
    by_other(free_around_others, trio.a);
    exit(0);
}

/* --- closed places -----------------------------------------------------------------------------
 */

/* A block of a slab that is gone; a later one stays in use, and so does their superslab. */
static void *make_closed(void) {
    static char *block[CLOSED];
    for (unsigned i = 0; i < CLOSED; i++) {
        block[i] = hide(malloc(CLOSED_BYTES));
        memset(block[i], 1, CLOSED_BYTES);
    }
    for (unsigned i = 0; i < CLOSED - 1; i++) {
        free(block[i]);
    }
    hak_collect_thread();
    return block[CLOSED - 200];
}

/* So is its memory. */
static void *make_closed_and_trim(void) {
    void *block = make_closed();
    malloc_trim(0);
    return block;
}

CRIME(double_free_of_closed) {
    free(make_closed());
}

CRIME(double_free_of_closed_by_another_thread) {
    free_in_thread(make_closed());
}

CRIME(double_free_of_trimmed) {
    free(make_closed_and_trim());
}

CRIME(realloc_of_closed) {
    (void)!hide(realloc(make_closed(), 2 * CLOSED_BYTES));
}

CRIME(realloc_of_closed_that_fits) {
    (void)!hide(realloc(make_closed(), CLOSED_BYTES));
}

CRIME(realloc_of_trimmed) {
    (void)!hide(realloc(make_closed_and_trim(), CLOSED_BYTES));
}

CRIME(usable_size_of_closed) {
    (void)malloc_usable_size(make_closed());
}

CRIME(usable_size_of_trimmed) {
    (void)malloc_usable_size(make_closed_and_trim());
}

/* What glibc's chunks look like from below: a size, and the next chunk's size. Data may look so. */
static void fill_like_chunks(uint64_t *words, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        words[i] = 0x31;
    }
}

CRIME(free_inside_huge_of_chunk_like_data) {
    char *block = hide(malloc(HUGE_BYTES));
    fill_like_chunks((uint64_t *)(void *)block, HUGE_BYTES);
    free(block + (1 << 20) + 512);
}

/* The slabs of the blocks are gone, their data is not. */
CRIME(double_free_of_chunk_like_retired) {
    enum { COUNT = 512, BYTES = 1024 };
    static uint64_t *block[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hide(malloc(BYTES));
        fill_like_chunks(block[i], BYTES);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        free(block[i]);
    }
    hak_collect_thread();
    free(block[COUNT - 100]);
}
