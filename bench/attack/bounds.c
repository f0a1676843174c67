/* SPDX-License-Identifier: MIT
 *
 * Reads and writes before and behind a block. */
#include "attack.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static char *row[ROW];
static size_t count;

static void prepare(size_t bytes) {
    count = make_row(row, bytes);
}

static char *victim(void) {
    return row[count / 2];
}

static bool is_neighbour_changed(size_t bytes) {
    bool is_changed = false;
    for (size_t i = 0; i < count; i++) {
        is_changed |= row[i] != victim() && !is_filled(row[i], bytes);
    }
    return is_changed;
}

/* Blocks are freed and used again; what is found then stops the attack. */
static outcome_t after_frees(size_t bytes, bool is_reached) {
    free_row(row, count);
    churn(bytes);
    return is_reached ? SUCCEEDED : HARMLESS;
}

/* Writes `by` bytes from the end of the request on. */
static outcome_t overflow(const attack_t *attack) {
    prepare(attack->bytes);
    bool is_reached = attack->bytes + (size_t)attack->by > malloc_usable_size(victim());
    memset(hide(victim() + attack->bytes), MARK, (size_t)attack->by);
    return after_frees(attack->bytes, is_reached);
}

/* The same from the end of all that belongs to the block. */
static outcome_t overflow_full(const attack_t *attack) {
    prepare(attack->bytes);
    memset(hide(victim() + malloc_usable_size(victim())), MARK, (size_t)attack->by);
    return after_frees(attack->bytes, true);
}

/* The neighbour is used before anything is freed. */
static outcome_t overflow_used_at_once(const attack_t *attack) {
    prepare(attack->bytes);
    memset(hide(victim() + attack->bytes), MARK, (size_t)attack->by);
    return is_neighbour_changed(attack->bytes) ? SUCCEEDED : after_frees(attack->bytes, false);
}

/* A wrong index: one byte at a distance behind the end. */
static outcome_t jump(const attack_t *attack) {
    prepare(attack->bytes);
    *(volatile char *)(hide(victim() + malloc_usable_size(victim())) + attack->by) ^= 1;
    return after_frees(attack->bytes, is_neighbour_changed(attack->bytes));
}

static outcome_t jump_used_at_once(const attack_t *attack) {
    prepare(attack->bytes);
    *(volatile char *)(hide(victim() + malloc_usable_size(victim())) + attack->by) ^= 1;
    return is_neighbour_changed(attack->bytes) ? SUCCEEDED : after_frees(attack->bytes, false);
}

static outcome_t underflow(const attack_t *attack) {
    prepare(attack->bytes);
    for (ptrdiff_t i = 1; i <= attack->by; i++) {
        *(volatile char *)(hide(victim()) - i) = MARK;
    }
    return after_frees(attack->bytes, true);
}

static outcome_t read_behind(const attack_t *attack) {
    prepare(attack->bytes);
    memset(victim(), 0, malloc_usable_size(victim()));
    const volatile char *end = hide(victim() + malloc_usable_size(victim()));
    bool is_seen = false;
    for (ptrdiff_t i = 0; i < attack->by; i++) {
        is_seen |= end[i] == SECRET;
    }
    return is_seen ? SUCCEEDED : HARMLESS;
}

static outcome_t read_before(const attack_t *attack) {
    prepare(attack->bytes);
    const volatile char *start = hide(victim());
    bool is_seen = false;
    for (ptrdiff_t i = 1; i <= attack->by; i++) {
        is_seen |= start[-i] == SECRET;
    }
    return is_seen ? SUCCEEDED : HARMLESS;
}

static outcome_t zero_size_write(const attack_t *attack) {
    char *block = make(0);
    for (ptrdiff_t i = 0; i < attack->by; i++) {
        ((volatile char *)block)[i] = MARK;
    }
    free(block);
    churn(0);
    return SUCCEEDED;
}

static outcome_t zero_size_read(const attack_t *attack) {
    char *block = make(0);
    for (ptrdiff_t i = 0; i < attack->by; i++) {
        (void)((volatile char *)block)[i];
    }
    free(block);
    return SUCCEEDED;
}

static outcome_t zero_size_realloc_write(const attack_t *attack) {
    char *block = hide(calloc(0, 8));
    memset(hide(block), MARK, (size_t)attack->by);
    free(hide(realloc(block, 100)));
    return SUCCEEDED;
}

enum { KIB = 1 << 10, MIB = 1 << 20 };

const attack_t bounds_attacks[] = {
    {"overflow, small", "overflow_40_by_1", overflow, 40, 1},
    {"overflow, small", "overflow_40_by_8", overflow, 40, 8},
    {"overflow, small", "overflow_40_by_32", overflow, 40, 32},
    {"overflow, small", "overflow_40_by_100", overflow, 40, 100},
    {"overflow, small", "overflow_40_by_1m", overflow, 40, MIB},
    {"overflow, small", "overflow_full_64_by_1", overflow_full, 64, 1},
    {"overflow, small", "overflow_full_64_by_8", overflow_full, 64, 8},
    {"overflow, small", "overflow_full_1000_by_1", overflow_full, 1000, 1},
    {"overflow, small", "overflow_full_20000_by_1", overflow_full, 20000, 1},
    {"overflow, small", "overflow_full_1000_by_100", overflow_full, 1000, 100},
    {"overflow, used at once", "overflow_128_by_32_used", overflow_used_at_once, 128, 32},
    {"overflow, used at once", "overflow_128_by_4k_used", overflow_used_at_once, 128, 4 * KIB},
    {"overflow, used at once", "overflow_128_by_1m_used", overflow_used_at_once, 128, MIB},
    {"overflow, used at once", "jump_128_by_256_used", jump_used_at_once, 128, 256},
    {"overflow, large", "overflow_100k_by_1", overflow, 100000, 1},
    {"overflow, large", "overflow_100k_by_100", overflow, 100000, 100},
    {"overflow, large", "overflow_full_100k_by_1", overflow_full, 100000, 1},
    {"overflow, large", "overflow_full_100k_by_100", overflow_full, 100000, 100},
    {"overflow, large", "overflow_300k_by_1m", overflow, 300000, MIB},
    {"overflow, large", "overflow_full_300k_by_1", overflow_full, 300000, 1},
    {"overflow, large", "overflow_full_3m_by_1", overflow_full, 3 * MIB, 1},
    {"overflow, large", "overflow_3m_by_1m", overflow, 3 * MIB, MIB},
    {"overflow, large", "jump_300k_by_1k", jump, 300000, KIB},
    {"overflow, large", "jump_3m_by_4k", jump, 3 * MIB, 4 * KIB},
    {"underflow", "underflow_40_by_1", underflow, 40, 1},
    {"underflow", "underflow_40_by_8", underflow, 40, 8},
    {"underflow", "underflow_40_by_32", underflow, 40, 32},
    {"underflow", "underflow_40_by_100", underflow, 40, 100},
    {"underflow", "underflow_40_by_1m", underflow, 40, MIB},
    {"underflow", "underflow_1000_by_1", underflow, 1000, 1},
    {"underflow", "underflow_20000_by_8", underflow, 20000, 8},
    {"underflow", "underflow_100k_by_1", underflow, 100000, 1},
    {"underflow", "underflow_300k_by_100", underflow, 300000, 100},
    {"underflow", "underflow_3m_by_1", underflow, 3 * MIB, 1},
    {"underflow", "underflow_3m_by_1m", underflow, 3 * MIB, MIB},
    {"read out of bounds", "read_behind_64_by_64", read_behind, 64, 64},
    {"read out of bounds", "read_behind_64_by_64k", read_behind, 64, 64 * KIB},
    {"read out of bounds", "read_behind_1000_by_1m", read_behind, 1000, MIB},
    {"read out of bounds", "read_behind_300k_by_64k", read_behind, 300000, 64 * KIB},
    {"read out of bounds", "read_behind_3m_by_64k", read_behind, 3 * MIB, 64 * KIB},
    {"read out of bounds", "read_before_64_by_64", read_before, 64, 64},
    {"read out of bounds", "read_before_300k_by_64k", read_before, 300000, 64 * KIB},
    {"size 0", "zero_size_write_by_1", zero_size_write, 0, 1},
    {"size 0", "zero_size_write_by_32", zero_size_write, 0, 32},
    {"size 0", "zero_size_read_by_1", zero_size_read, 0, 1},
    {"size 0", "zero_size_read_by_32", zero_size_read, 0, 32},
    {"size 0", "zero_size_calloc_write", zero_size_realloc_write, 0, 8},
    {0},
};
