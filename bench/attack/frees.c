/* SPDX-License-Identifier: MIT
 *
 * Frees of what is free already, or no block at all. */
#include "attack.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks of the size are handed out until a place is handed out twice. */
static outcome_t after_double_free(size_t bytes) {
    char *spray[SPRAY];
    size_t count = bytes > 1 << 16 ? ROW / 4 : SPRAY;
    for (size_t i = 0; i < count; i++) {
        spray[i] = make(bytes);
    }
    return overlap(spray, count, bytes) ? SUCCEEDED : HARMLESS;
}

static outcome_t double_free(const attack_t *attack) {
    char *block = make(attack->bytes);
    free(block);
    free(hide(block));
    return after_double_free(attack->bytes);
}

/* `by` other blocks are freed in between. */
static outcome_t double_free_interleaved(const attack_t *attack) {
    char *block[SPRAY + 1];
    for (ptrdiff_t i = 0; i <= attack->by; i++) {
        block[i] = make(attack->bytes);
    }
    for (ptrdiff_t i = 0; i <= attack->by; i++) {
        free(block[i]);
    }
    free(hide(block[0]));
    return after_double_free(attack->bytes);
}

/* a, b, a, b */
static outcome_t double_free_of_two(const attack_t *attack) {
    char *a = make(attack->bytes), *b = make(attack->bytes);
    free(a);
    free(b);
    free(hide(a));
    free(hide(b));
    return after_double_free(attack->bytes);
}

static outcome_t double_free_by_thread(const attack_t *attack) {
    char *block = make(attack->bytes);
    free(block);
    in_thread(free, hide(block));
    return after_double_free(attack->bytes);
}

static outcome_t double_free_after_thread(const attack_t *attack) {
    char *block = make(attack->bytes);
    in_thread(free, block);
    free(hide(block));
    return after_double_free(attack->bytes);
}

/* The second free comes after blocks of the size were handed out: it may end another's block. */
static outcome_t free_of_successor(const attack_t *attack) {
    char *block = make(attack->bytes);
    free(block);
    char *next = make(attack->bytes);
    fill(next, attack->bytes);
    free(hide(block));
    return spray_hits(attack->bytes, next, attack->bytes) ? SUCCEEDED : HARMLESS;
}

static outcome_t realloc_of_freed(const attack_t *attack) {
    char *block = make(attack->bytes);
    free(block);
    char *again = hide(realloc(hide(block), (size_t)attack->by));
    return again == NULL ? STOPPED : SUCCEEDED;
}

static outcome_t usable_size_of_freed(const attack_t *attack) {
    char *block = make(attack->bytes);
    fill(block, attack->bytes);
    free(block);
    return malloc_usable_size(hide(block)) != 0 ? SUCCEEDED : HARMLESS;
}

/* --- no blocks -------------------------------------------------------------------------------- */

/* What glibc's free looks for around a block: sizes of it and of the next. */
static void forge(char *at, size_t bytes) {
    size_t size = (bytes + 23) & ~(size_t)15;
    *(size_t *)(void *)(at - 8) = size | 1;
    *(size_t *)(void *)(at - 8 + size) = size | 1;
}

static outcome_t free_no_block(char *at, size_t bytes) {
    free(hide(at));
    return spray_hits(bytes, at, 1) ? SUCCEEDED : HARMLESS;
}

/* An address `by` bytes into a block. */
static outcome_t free_inside(const attack_t *attack) {
    char *block = make(attack->bytes);
    fill(block, attack->bytes);
    return free_no_block(block + attack->by, attack->bytes < 1000 ? 64 : attack->bytes);
}

/* The same where data looks like a block of 64 bytes. */
static outcome_t free_inside_forged(const attack_t *attack) {
    char *block = make(attack->bytes);
    memset(block, 0, attack->bytes);
    forge(block + attack->by, 64);
    return free_no_block(block + attack->by, 64);
}

static outcome_t free_of_stack(const attack_t *attack) {
    _Alignas(16) char area[512] = {0};
    if (attack->by != 0) {
        forge(area + 64, attack->bytes);
    }
    return free_no_block(area + 64, attack->bytes);
}

static outcome_t free_of_static(const attack_t *attack) {
    static _Alignas(16) char area[512];
    if (attack->by != 0) {
        forge(area + 64, attack->bytes);
    }
    return free_no_block(area + 64, attack->bytes);
}

static outcome_t free_of_mapping(const attack_t *attack) {
    char *base = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (attack->by > 0) {
        forge(base + attack->by, attack->bytes);
    }
    free(hide(base + attack->by));
    base[attack->by] = 1; /* still there */
    return spray_hits(attack->bytes, base + attack->by, 1) ? SUCCEEDED : HARMLESS;
}

/* An address beside a block of 3 MiB. */
static outcome_t free_beside(const attack_t *attack) {
    char *row[ROW];
    size_t count = make_row(row, attack->bytes);
    char *block = row[count / 2];
    free(hide(attack->by > 0 ? block + malloc_usable_size(block) : block + attack->by));
    for (size_t i = 0; i < count; i++) {
        if (!is_filled(row[i], attack->bytes)) {
            return SUCCEEDED;
        }
    }
    return overlap(row, count, attack->bytes) ? SUCCEEDED : HARMLESS;
}

/* A never handed-out place behind the newest blocks. */
static outcome_t free_of_the_next_place(const attack_t *attack) {
    char *last = make(attack->bytes);
    for (unsigned i = 0; i < SPRAY; i++) {
        char *block = make(attack->bytes);
        last = (uintptr_t)block > (uintptr_t)last ? block : last;
    }
    char *place = last + (attack->bytes + 15) / 16 * 16 * 4;
    free(hide(place));
    return after_double_free(attack->bytes);
}

enum { MIB = 1 << 20 };

const attack_t free_attacks[] = {
    {"double free", "double_free_64", double_free, 64, 0},
    {"double free", "double_free_1000", double_free, 1000, 0},
    {"double free", "double_free_20000", double_free, 20000, 0},
    {"double free", "double_free_300k", double_free, 300000, 0},
    {"double free", "double_free_3m", double_free, 3 * MIB, 0},
    {"double free", "double_free_around_one", double_free_interleaved, 64, 1},
    {"double free", "double_free_around_8", double_free_interleaved, 64, 8},
    {"double free", "double_free_around_200", double_free_interleaved, 64, 200},
    {"double free", "double_free_around_20_of_1000", double_free_interleaved, 1000, 20},
    {"double free", "double_free_of_two", double_free_of_two, 64, 0},
    {"double free", "double_free_by_thread", double_free_by_thread, 64, 0},
    {"double free", "double_free_after_thread", double_free_after_thread, 64, 0},
    {"double free", "free_of_successor_64", free_of_successor, 64, 0},
    {"double free", "free_of_successor_1000", free_of_successor, 1000, 0},
    {"double free", "free_of_successor_300k", free_of_successor, 300000, 0},
    {"double free", "free_of_successor_3m", free_of_successor, 3 * MIB, 0},
    {"use of freed blocks", "realloc_of_freed_64", realloc_of_freed, 64, 1000},
    {"use of freed blocks", "realloc_of_freed_64_in_place", realloc_of_freed, 64, 60},
    {"use of freed blocks", "realloc_of_freed_300k", realloc_of_freed, 300000, 500000},
    {"use of freed blocks", "usable_size_of_freed_64", usable_size_of_freed, 64, 0},
    {"use of freed blocks", "usable_size_of_freed_300k", usable_size_of_freed, 300000, 0},
    {"use of freed blocks", "usable_size_of_freed_3m", usable_size_of_freed, 3 * MIB, 0},
    {"free of no block", "free_inside_1000", free_inside, 1000, 16},
    {"free of no block", "free_inside_64_misaligned", free_inside, 64, 8},
    {"free of no block", "free_inside_64_odd", free_inside, 64, 1},
    {"free of no block", "free_inside_1000_forged", free_inside_forged, 1000, 64},
    {"free of no block", "free_inside_300k", free_inside, 300000, 65536},
    {"free of no block", "free_inside_300k_forged", free_inside_forged, 300000, 1024},
    {"free of no block", "free_inside_3m", free_inside, 3 * MIB, MIB},
    {"free of no block", "free_inside_3m_forged", free_inside_forged, 3 * MIB, 65536},
    {"free of no block", "free_of_stack", free_of_stack, 64, 0},
    {"free of no block", "free_of_stack_forged", free_of_stack, 64, 1},
    {"free of no block", "free_of_static", free_of_static, 64, 0},
    {"free of no block", "free_of_static_forged", free_of_static, 64, 1},
    {"free of no block", "free_of_mapping", free_of_mapping, 64, 0},
    {"free of no block", "free_of_mapping_forged", free_of_mapping, 64, 4096},
    {"free of no block", "free_behind_3m", free_beside, 3 * MIB, 1},
    {"free of no block", "free_before_3m", free_beside, 3 * MIB, -65536},
    {"free of no block", "free_of_the_next_place_64", free_of_the_next_place, 64, 0},
    {"free of no block", "free_of_the_next_place_1000", free_of_the_next_place, 1000, 0},
    {0},
};
