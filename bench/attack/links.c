/* SPDX-License-Identifier: MIT
 *
 * Writes to what an allocator may keep in or beside blocks: links of free lists, sizes. */
#include "attack.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Alignas(4096) char target[8192]; /* where the attacker wants a block */

/* A link to the target, as plain, as glibc or as this project's default library spells it. */
static uintptr_t link_as_plain(const char *block) {
    (void)block;
    return (uintptr_t)hide(target + 4096);
}

static uintptr_t link_as_glibc(const char *block) {
    return link_as_plain(block) ^ (uintptr_t)block >> 12;
}

static uintptr_t link_as_hakmem(const char *block) {
    return link_as_plain(block) << 16 | 0xa7f9;
}

/* A constant, so that the list ends or leads nowhere. */
static uintptr_t link_as_text(const char *block) {
    (void)block;
    return 0x4141414141414141u;
}

static uintptr_t (*const spellings[])(const char *) = {link_as_plain, link_as_glibc, link_as_hakmem,
                                                       link_as_text};

static outcome_t is_got(size_t bytes, const char *wanted, size_t wanted_bytes) {
    return spray_hits(bytes, wanted, wanted_bytes) ? SUCCEEDED : HARMLESS;
}

/* The first word of freed blocks is overwritten. The target looks like a free block, too. */
static outcome_t poison(const attack_t *attack) {
    char *row[ROW];
    uintptr_t forged = spellings[attack->by](target + 4096);
    memcpy(target + 4096, &forged, sizeof forged);
    size_t count = make_row(row, attack->bytes);
    free_row(row, count);
    for (size_t i = 0; i < count; i++) {
        uintptr_t word = spellings[attack->by](row[i]);
        memcpy(hide(row[i]), &word, sizeof word);
    }
    return is_got(attack->bytes, target, sizeof target);
}

/* Only the lowest bytes of the link of the newest free block: it leads to another. */
static outcome_t poison_low_bytes(const attack_t *attack) {
    char *row[ROW], *spray[SPRAY];
    size_t count = make_row(row, attack->bytes);
    free_row(row, count);
    memset(hide(row[count - 1]) + (attack->by == 0 ? 0 : 2), 0x40, 2);
    for (unsigned i = 0; i < SPRAY; i++) {
        spray[i] = make(attack->bytes);
    }
    return overlap(spray, SPRAY, attack->bytes) ? SUCCEEDED : HARMLESS;
}

/* Freed blocks get the link of another freed block: lists meet, or form a circle. */
static outcome_t copy_links(const attack_t *attack) {
    char *row[ROW], *spray[SPRAY];
    size_t count = make_row(row, attack->bytes);
    free_row(row, count);
    memcpy(hide(row[count - 6]), hide(row[count - 2]), 16);
    for (unsigned i = 0; i < SPRAY; i++) {
        spray[i] = make(attack->bytes);
    }
    return overlap(spray, SPRAY, attack->bytes) ? SUCCEEDED : HARMLESS;
}

/* The words before a block say that it is larger: the next block of that size covers others. */
static outcome_t larger_by_header(const attack_t *attack) {
    char *row[ROW];
    size_t count = make_row(row, attack->bytes);
    size_t size = ((size_t)attack->by + 23) & ~(size_t)15;
    ((volatile size_t *)(void *)hide(row[4]))[-1] = size | 1;
    free(row[4]);
    char *large = make((size_t)attack->by);
    for (size_t i = 0; i < count; i++) {
        if (i != 4 && large < row[i] + attack->bytes && row[i] < large + attack->by) {
            return SUCCEEDED;
        }
    }
    return HARMLESS;
}

/* The same of a block with a mapping of its own: its free takes the neighbour's memory away. */
static outcome_t unmap_by_header(const attack_t *attack) {
    char *row[ROW];
    unsigned char residency[1];
    size_t count = make_row(row, attack->bytes);
    for (size_t i = 2; i < count; i++) {
        volatile size_t *size = (size_t *)(void *)hide(row[i]) - 1;
        *size = (attack->bytes * 2 + 8192) / 4096 * 4096 | 2;
        free(row[i]);
        for (size_t k = 0; k < i; k++) {
            char *page = row[k] + attack->bytes / 2;
            page -= (uintptr_t)page % 4096;
            if (k < 2 && mincore(page, 4096, residency) != 0 && errno == ENOMEM) {
                return SUCCEEDED;
            }
        }
        row[i] = make(attack->bytes);
    }
    return HARMLESS;
}

/* --- sizes that overflow ---------------------------------------------------------------------- */

static outcome_t judge(const void *block) {
    return block == NULL ? STOPPED : SUCCEEDED;
}

static outcome_t calloc_that_overflows(const attack_t *attack) {
    return judge(hide(calloc((size_t)1 << 62, attack->bytes)));
}

static outcome_t reallocarray_that_overflows(const attack_t *attack) {
    return judge(hide(reallocarray(make(attack->bytes), (size_t)1 << 60, attack->bytes)));
}

static outcome_t malloc_of_nearly_all(const attack_t *attack) {
    volatile size_t bytes = SIZE_MAX - attack->bytes;
    return judge(hide(malloc(bytes)));
}

static outcome_t memalign_of_nearly_all(const attack_t *attack) {
    volatile size_t bytes = SIZE_MAX - attack->bytes;
    return judge(hide(memalign(4096, bytes)));
}

static outcome_t realloc_to_nearly_all(const attack_t *attack) {
    volatile size_t bytes = SIZE_MAX - attack->bytes;
    return judge(hide(realloc(make(100), bytes)));
}

const attack_t link_attacks[] = {
    {"links and sizes", "poison_64", poison, 64, 0},
    {"links and sizes", "poison_1000", poison, 1000, 0},
    {"links and sizes", "poison_as_glibc", poison, 64, 1},
    {"links and sizes", "poison_as_hakmem", poison, 64, 2},
    {"links and sizes", "poison_with_text", poison, 64, 3},
    {"links and sizes", "poison_lowest_bytes", poison_low_bytes, 64, 0},
    {"links and sizes", "poison_next_bytes", poison_low_bytes, 64, 2},
    {"links and sizes", "copy_links", copy_links, 64, 0},
    {"links and sizes", "larger_by_header", larger_by_header, 64, 400},
    {"links and sizes", "larger_by_header_1000", larger_by_header, 1000, 3000},
    {"links and sizes", "unmap_by_header", unmap_by_header, 3 << 20, 0},
    {"sizes that overflow", "calloc_that_overflows", calloc_that_overflows, 8, 0},
    {"sizes that overflow", "reallocarray_that_overflows", reallocarray_that_overflows, 32, 0},
    {"sizes that overflow", "malloc_of_nearly_all", malloc_of_nearly_all, 4, 0},
    {"sizes that overflow", "memalign_of_nearly_all", memalign_of_nearly_all, 4000, 0},
    {"sizes that overflow", "realloc_to_nearly_all", realloc_to_nearly_all, 16, 0},
    {0},
};
