/* SPDX-License-Identifier: MIT
 *
 * Places of freed blocks: read, written to, found again, with what was in them. */
#include "attack.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static bool lies_in(const char *address, const char *block, size_t bytes) {
    return (uintptr_t)address - (uintptr_t)block < bytes;
}

/* The next block of `by` bytes (0: of the same size) begins in the one just freed. */
static outcome_t next_in_place(const attack_t *attack) {
    char *block = make(attack->bytes);
    fill(block, attack->bytes);
    free(block);
    char *next = make(attack->by == 0 ? attack->bytes : (size_t)attack->by);
    return lies_in(next, hide(block), attack->bytes) ? SUCCEEDED : HARMLESS;
}

/* The same after another block was freed, too: in three of four tries at least. */
static outcome_t next_in_second_place(const attack_t *attack) {
    enum { TRIES = 16 };
    unsigned hits = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        char *block = make(attack->bytes), *other = make(attack->bytes);
        fill(block, attack->bytes);
        free(block);
        free(other);
        char *next = make(attack->bytes);
        hits += lies_in(next, hide(block), attack->bytes);
    }
    return hits >= TRIES * 3 / 4 ? SUCCEEDED : HARMLESS;
}

/* The block moved, because its size became `by` bytes; the next has its place. */
static outcome_t next_after_realloc(const attack_t *attack) {
    char *block = make(attack->bytes), *keep = make(attack->bytes);
    fill(block, attack->bytes);
    char *moved = hide(realloc(block, (size_t)attack->by));
    bool is_moved = moved != hide(block);
    char *next = make(attack->bytes);
    keep[0] = 1;
    return is_moved && lies_in(next, hide(block), attack->bytes) ? SUCCEEDED : HARMLESS;
}

/* Neighbours are freed; one larger block gets their places. */
static outcome_t joined_place(const attack_t *attack) {
    char *row[ROW];
    size_t count = make_row(row, attack->bytes);
    free_row(row, count);
    char *next = make((size_t)attack->by);
    for (size_t i = 0; i < count; i++) {
        if (lies_in(next, hide(row[i]), attack->bytes) ||
            lies_in(hide(row[i]), next, (size_t)attack->by)) {
            return SUCCEEDED;
        }
    }
    return HARMLESS;
}

/* A write through a dangling pointer changes the data of a block that has the place now. */
static outcome_t write_to_successor(const attack_t *attack) {
    char *block = make(attack->bytes);
    fill(block, attack->bytes);
    free(block);
    char *spray[SPRAY];
    size_t count = attack->bytes > 1 << 16 ? ROW / 4 : SPRAY;
    for (size_t i = 0; i < count; i++) {
        spray[i] = make(attack->bytes);
        fill(spray[i], attack->bytes);
    }
    *(volatile char *)(hide(block) + attack->by) = MARK;
    for (size_t i = 0; i < count; i++) {
        if (spray[i][attack->by] != SECRET) {
            return SUCCEEDED;
        }
    }
    return HARMLESS;
}

/* A write to a freed block goes unnoticed until its place is used again. */
static outcome_t write_after_free(const attack_t *attack) {
    char *row[ROW];
    size_t count = make_row(row, attack->bytes);
    free_row(row, count / 2);
    volatile char *at = hide(row[count / 4]) + attack->by;
    memset((char *)at, MARK, 8);
    churn(attack->bytes);
    for (unsigned i = 0; i < 2 * ROW; i++) {
        (void)make(attack->bytes);
    }
    return SUCCEEDED;
}

static outcome_t read_after_free(const attack_t *attack) {
    char *block = make(attack->bytes), *keep = make(attack->bytes);
    fill(block, attack->bytes);
    free(block);
    const volatile char *at = hide(block) + attack->by;
    keep[0] = 1;
    return *at == SECRET && at[1] == SECRET ? SUCCEEDED : HARMLESS;
}

/* The data of a freed block are in blocks of `by` bytes (0: the same size) handed out later. */
static outcome_t leak(const attack_t *attack) {
    size_t wanted = attack->by == 0 ? attack->bytes : (size_t)attack->by;
    char *row[ROW];
    size_t count = make_row(row, attack->bytes), words = 0;
    free_row(row, count);
    for (unsigned i = 0; i < (wanted > 1 << 16 ? ROW / 4 : SPRAY); i++) {
        const volatile char *block = make(wanted);
        for (size_t k = 0; k + 8 <= wanted; k += 8) {
            words += block[k] == SECRET && block[k + 3] == SECRET && block[k + 7] == SECRET;
        }
    }
    return words != 0 ? SUCCEEDED : HARMLESS;
}

/* Blocks that are handed out hold addresses of the heap. */
static outcome_t leak_of_addresses(const attack_t *attack) {
    char *row[ROW];
    size_t count = make_row(row, attack->bytes);
    free_row(row, count);
    for (unsigned i = 0; i < ROW; i++) {
        uintptr_t *block = (uintptr_t *)(void *)make(attack->bytes);
        for (size_t k = 0; k < attack->bytes / sizeof *block; k++) {
            uintptr_t distance = block[k] - (uintptr_t)hide(row[0]);
            if (distance + ((uintptr_t)1 << 32) < (uintptr_t)1 << 33) {
                return SUCCEEDED;
            }
        }
    }
    return HARMLESS;
}

/* Freed blocks come back in an order that is known beforehand. */
static outcome_t order(const attack_t *attack) {
    enum { COUNT = 16 };
    char *freed[COUNT], *next[COUNT];
    unsigned last_first = 0, first_first = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        freed[i] = make(attack->bytes);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        free(freed[i * 7 % COUNT]);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        next[i] = make(attack->bytes);
        first_first += next[i] == hide(freed[i * 7 % COUNT]);
        last_first += next[i] == hide(freed[(COUNT - 1 - i) * 7 % COUNT]);
    }
    return last_first >= COUNT / 2 || first_first >= COUNT / 2 ? SUCCEEDED : HARMLESS;
}

/* As programs allocate that clang compiles with -fsanitize=alloc-token, of types with pointers and
 * without: what they call is there in libraries that know types, else it is malloc. */
__attribute__((weak)) void *token_malloc(size_t size, size_t token) __asm__("__alloc_token_malloc");
static const size_t DATA_TOKEN = SIZE_MAX / 3, POINTERS_TOKEN = SIZE_MAX / 3 * 2;

static char *make_typed(size_t bytes, size_t token) {
    char *block = hide(token_malloc != NULL ? token_malloc(bytes, token) : malloc(bytes));
    if (block == NULL) {
        abort();
    }
    return block;
}

/* Blocks of pointers get the places of freed blocks of data, to which the attacker still writes; or
 * the other way round, so that the attacker fills in what dangling pointers lead to. */
static outcome_t other_type(const attack_t *attack) {
    size_t first = attack->by == 0 ? DATA_TOKEN : POINTERS_TOKEN;
    char *row[ROW];
    for (unsigned i = 0; i < ROW; i++) {
        row[i] = make_typed(attack->bytes, first);
        fill(row[i], attack->bytes);
    }
    free_row(row, ROW);
    for (unsigned i = 0; i < SPRAY; i++) {
        const char *next = make_typed(attack->bytes, ~first);
        for (unsigned k = 0; k < ROW; k++) {
            if (lies_in(next, hide(row[k]), attack->bytes)) {
                return SUCCEEDED;
            }
        }
    }
    return HARMLESS;
}

/* Blocks allocated one after the other lie side by side, in order. */
static outcome_t neighbours(const attack_t *attack) {
    enum { COUNT = 64 };
    char *block[COUNT];
    unsigned same = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = make(attack->bytes);
    }
    for (unsigned i = 2; i < COUNT; i++) {
        same += block[i] - block[i - 1] == block[i - 1] - block[i - 2];
    }
    return same > COUNT / 2 ? SUCCEEDED : HARMLESS;
}

enum { MIB = 1 << 20 };

const attack_t reuse_attacks[] = {
    {"reuse at once", "same_place_64", next_in_place, 64, 0},
    {"reuse at once", "same_place_1000", next_in_place, 1000, 0},
    {"reuse at once", "same_place_20000", next_in_place, 20000, 0},
    {"reuse at once", "same_place_100k", next_in_place, 100000, 0},
    {"reuse at once", "same_place_300k", next_in_place, 300000, 0},
    {"reuse at once", "same_place_3m", next_in_place, 3 * MIB, 0},
    {"reuse at once", "second_place_1000", next_in_second_place, 1000, 0},
    {"reuse at once", "second_place_20000", next_in_second_place, 20000, 0},
    {"reuse at once", "second_place_60000", next_in_second_place, 60000, 0},
    {"reuse, other size", "smaller_1000_to_950", next_in_place, 1000, 950},
    {"reuse, other size", "smaller_1000_to_500", next_in_place, 1000, 500},
    {"reuse, other size", "smaller_300k_to_100k", next_in_place, 300000, 100000},
    {"reuse, other size", "smaller_300k_to_70000", next_in_place, 300000, 70000},
    {"reuse, other size", "smaller_3m_to_2m", next_in_place, 3 * MIB, 2 * MIB},
    {"reuse, other size", "grown_64_to_1000", next_after_realloc, 64, 1000},
    {"reuse, other size", "grown_20000_to_60000", next_after_realloc, 20000, 60000},
    {"reuse, other size", "grown_100k_to_900k", next_after_realloc, 100000, 900000},
    {"reuse, other size", "shrunk_1000_to_100", next_after_realloc, 1000, 100},
    {"reuse, other size", "shrunk_20000_to_1000", next_after_realloc, 20000, 1000},
    {"reuse, other size", "shrunk_300k_to_1000", next_after_realloc, 300000, 1000},
    {"reuse, other size", "joined_100k_to_400k", joined_place, 100000, 400000},
    {"reuse, other size", "joined_1000_to_100k", joined_place, 1000, 100000},
    {"reuse, other type", "data_to_pointers_64", other_type, 64, 0},
    {"reuse, other type", "data_to_pointers_4000", other_type, 4000, 0},
    {"reuse, other type", "pointers_to_data_64", other_type, 64, 1},
    {"reuse, other type", "pointers_to_data_4000", other_type, 4000, 1},
    {"write after free", "write_to_successor_64", write_to_successor, 64, 32},
    {"write after free", "write_to_successor_1000", write_to_successor, 1000, 500},
    {"write after free", "write_to_successor_100k", write_to_successor, 100000, 100},
    {"write after free", "write_to_successor_300k", write_to_successor, 300000, 100},
    {"write after free", "write_to_successor_3m", write_to_successor, 3 * MIB, 100},
    {"write after free", "write_after_free_64_first", write_after_free, 64, 0},
    {"write after free", "write_after_free_64_inside", write_after_free, 64, 24},
    {"write after free", "write_after_free_1000_end", write_after_free, 1000, 980},
    {"write after free", "write_after_free_1000_middle", write_after_free, 1000, 480},
    {"write after free", "write_after_free_4000_middle", write_after_free, 4000, 2000},
    {"write after free", "write_after_free_100k", write_after_free, 100000, 50000},
    {"write after free", "write_after_free_300k", write_after_free, 300000, 0},
    {"write after free", "write_after_free_3m", write_after_free, 3 * MIB, 0},
    {"read after free", "read_after_free_64", read_after_free, 64, 40},
    {"read after free", "read_after_free_1000_middle", read_after_free, 1000, 480},
    {"read after free", "read_after_free_4000_middle", read_after_free, 4000, 2000},
    {"read after free", "read_after_free_20000_middle", read_after_free, 20000, 9000},
    {"read after free", "read_after_free_100k", read_after_free, 100000, 100},
    {"read after free", "read_after_free_300k", read_after_free, 300000, 100},
    {"read after free", "read_after_free_3m", read_after_free, 3 * MIB, 100},
    {"data of freed blocks", "leak_64", leak, 64, 0},
    {"data of freed blocks", "leak_1000", leak, 1000, 0},
    {"data of freed blocks", "leak_4000", leak, 4000, 0},
    {"data of freed blocks", "leak_20000", leak, 20000, 0},
    {"data of freed blocks", "leak_100k", leak, 100000, 0},
    {"data of freed blocks", "leak_3m", leak, 3 * MIB, 0},
    {"data of freed blocks", "leak_1000_to_400", leak, 1000, 400},
    {"data of freed blocks", "leak_300k_to_1000", leak, 300000, 1000},
    {"data of freed blocks", "leak_of_addresses_64", leak_of_addresses, 64, 0},
    {"data of freed blocks", "leak_of_addresses_1000", leak_of_addresses, 1000, 0},
    {"predictable places", "order_of_freed_64", order, 64, 0},
    {"predictable places", "order_of_freed_1000", order, 1000, 0},
    {"predictable places", "order_of_freed_100k", order, 100000, 0},
    {"predictable places", "neighbours_64", neighbours, 64, 0},
    {"predictable places", "neighbours_1000", neighbours, 1000, 0},
    {0},
};
