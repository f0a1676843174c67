/* SPDX-License-Identifier: MIT
 * cliff PATTERN ROUNDS
 *
 * Measures: patterns of large blocks that rules of thumb in allocators handle badly, each by
 * itself. PATTERN is
 *   late_touch     32 blocks of 256 KiB to 4 MiB are allocated, then written to, then freed;
 *   ascending      16 384 blocks of 64 B to 16 KiB, each larger than the last, freed in random
 *                  order;
 *   calloc_huge    one block of 16 to 64 MiB from calloc, of which 64 words are written;
 *   calloc_slots   256 slots of 100 to 400 KiB from calloc, one word in 64 KiB written;
 *   realloc_mib    one block, resized to 0.9 MiB and 1.2 MiB by turns;
 *   realloc_small  one block, resized to 100 B and 70 KiB by turns;
 *   turns          one block of 300 KiB, then one of 5 MiB, one word in 64 KiB written, freed;
 *   many           1 000 slots of 1 to 4 MiB, of which one OS page is written;
 *   pairs          two blocks, 64 KiB and a header, written to at both ends, freed;
 *   fifo           a queue of 128 blocks of 1 to 4 MiB, every OS page written;
 *   arrays         512 KiB to 64 MiB by turns from calloc, the next before the last is freed,
 *                  MADV_HUGEPAGE from 4 MiB on, one word in 32 KiB written: arrays of numbers.
 * Known from: reports of users about allocators whose bound for kept memory, whose threshold for
 * mappings or whose zeroing fits such a pattern badly.
 * Does not measure: threads.
 * One operation is one block, or one resize. */
#include "bench.h"

#include <string.h>
#include <sys/mman.h>

enum { OS_PAGE = 4096, KIB = 1024, MIB = 1 << 20 };
enum { ASCENDING = 16384, LATE = 32, MANY = 1000, SLOTS = 256, QUEUE = 128, ARRAY_SIZES = 8 };
enum { BUFFER = 64 * KIB + 64, SPARSE_STEP = 64 * KIB, ARRAY_STEP = 32 * KIB, WORDS = 64 };

typedef struct slot {
    unsigned char *block; /* NULL: empty */
    size_t size, live;    /* of these, on OS pages written to */
} slot_t;

static struct {
    slot_t slot[ASCENDING];
    bench_rng_t rng;
    uint64_t operations, sum, live, peak;
} cliff;

/* --- blocks ----------------------------------------------------------------------------------- */

static slot_t make(size_t size, int is_zero) {
    cliff.operations++;
    slot_t made = {bench_need(is_zero ? calloc(1, size) : malloc(size), size), size, 0};
    if (is_zero && (made.block[0] | made.block[size / 2] | made.block[size - 1]) != 0) {
        bench_fail("calloc gave %zu bytes that are not all zero", size);
    }
    return made;
}

/* Writes a byte in STEP, which is an OS page or more. */
static void write_to(slot_t *slot, size_t step) {
    for (size_t at = 0; at < slot->size; at += step) {
        slot->block[at] = (unsigned char)(cliff.operations + at / step);
        slot->live += OS_PAGE;
    }
    slot->live = slot->live < slot->size ? slot->live : slot->size;
    cliff.live += slot->live;
    cliff.peak = cliff.live > cliff.peak ? cliff.live : cliff.peak;
}

static void end(slot_t *slot) {
    cliff.sum = cliff.sum * 3 + slot->block[0];
    cliff.live -= slot->live;
    free(slot->block);
    slot->block = NULL;
}

static size_t between(uint32_t min, uint32_t max) {
    return bench_log_between(&cliff.rng, min, max);
}

/* Frees what the slot has, if anything. */
static void end_any(slot_t *slot) {
    if (slot->block != NULL) {
        end(slot);
    }
}

static void fill(slot_t *slot, size_t size, int is_zero, size_t step) {
    *slot = make(size, is_zero);
    write_to(slot, step);
}

/* --- the patterns: one round each ------------------------------------------------------------- */

static void late_touch(void) {
    for (unsigned i = 0; i < LATE; i++) {
        cliff.slot[i] = make(between(256 * KIB, 4 * MIB), 0);
    }
    for (unsigned i = 0; i < LATE; i++) {
        write_to(&cliff.slot[i], OS_PAGE);
    }
    for (unsigned i = 0; i < LATE; i++) {
        end(&cliff.slot[i]);
    }
}

static void ascending(void) {
    for (unsigned i = 0; i < ASCENDING; i++) {
        fill(&cliff.slot[i], 64 + i, 0, OS_PAGE);
    }
    for (unsigned left = ASCENDING; left > 0; left--) {
        slot_t *chosen = &cliff.slot[bench_below(&cliff.rng, left)], *last = &cliff.slot[left - 1];
        slot_t freed = *chosen;
        *chosen = *last;
        last->block = NULL;
        end(&freed);
    }
}

static void calloc_huge(void) {
    size_t size = between(16 * MIB, 64 * MIB);
    fill(&cliff.slot[0], size, 1, size / WORDS);
    end(&cliff.slot[0]);
}

/* Frees what a random slot has, or fills it. */
static void any_slot(unsigned slots, size_t size, int is_zero, size_t step) {
    slot_t *slot = &cliff.slot[bench_below(&cliff.rng, slots)];
    if (slot->block != NULL) {
        end(slot);
    } else {
        fill(slot, size, is_zero, step);
    }
}

static void calloc_slots(void) {
    any_slot(SLOTS, between(100 * KIB, 400 * KIB), 1, SPARSE_STEP);
}

static void many(void) {
    any_slot(MANY, between(MIB, 4 * MIB), 0, SIZE_MAX / 2);
}

static void resize(size_t size) {
    slot_t *slot = &cliff.slot[0];
    unsigned char before = (unsigned char)cliff.operations++, after = before + 1;
    slot->block = bench_need(realloc(slot->block, size), size);
    if (slot->size != 0 && slot->block[0] != before) {
        bench_fail("realloc to %zu bytes lost what was in the block", size);
    }
    slot->size = size;
    bench_mark(slot->block, size, after);
    cliff.peak = size > cliff.peak ? size : cliff.peak;
}

static void realloc_mib(void) {
    resize(900 * KIB);
    resize(1200 * KIB);
}

static void realloc_small(void) {
    resize(100);
    resize(70 * KIB);
}

static void turns(void) {
    fill(&cliff.slot[0], 300 * KIB, 0, SPARSE_STEP);
    end(&cliff.slot[0]);
    fill(&cliff.slot[0], 5 * MIB, 0, SPARSE_STEP);
    end(&cliff.slot[0]);
}

static void pairs(void) {
    fill(&cliff.slot[0], BUFFER, 0, BUFFER - 1);
    fill(&cliff.slot[1], BUFFER, 0, BUFFER - 1);
    end(&cliff.slot[0]);
    end(&cliff.slot[1]);
}

static void fifo(void) {
    slot_t *slot = &cliff.slot[cliff.operations % QUEUE];
    end_any(slot);
    fill(slot, between(MIB, 4 * MIB), 0, OS_PAGE);
}

static void arrays(void) {
    size_t size = (size_t)512 * KIB << cliff.operations % ARRAY_SIZES;
    slot_t made = make(size, 1);
    if (size >= 4 * MIB) {
        uintptr_t begin = ((uintptr_t)made.block + OS_PAGE - 1) & -(uintptr_t)OS_PAGE;
        madvise((void *)begin, (uintptr_t)made.block + size - begin, MADV_HUGEPAGE);
    }
    write_to(&made, ARRAY_STEP);
    end_any(&cliff.slot[0]);
    cliff.slot[0] = made;
}

int main(int argc, char **argv) {
    static const char *const names[] = {
        "late_touch", "ascending", "calloc_huge", "calloc_slots", "realloc_mib", "realloc_small",
        "turns",      "many",      "pairs",       "fifo",         "arrays",      NULL,
    };
    static void (*const patterns[])(void) = {
        late_touch, ascending, calloc_huge, calloc_slots, realloc_mib, realloc_small,
        turns,      many,      pairs,       fifo,         arrays,
    };
    bench_init(argc, argv, "PATTERN ROUNDS");
    int pattern = bench_choice(1, names, "PATTERN");
    uint64_t rounds = bench_arg(2, 1000, 1, UINT64_MAX / 2, "ROUNDS");
    cliff.rng = bench_rng(rounds);
    for (uint64_t i = 0; i < rounds / 10; i++) { /* warm-up */
        patterns[pattern]();
    }
    uint64_t before = cliff.operations;
    bench_start();
    for (uint64_t i = 0; i < rounds; i++) {
        patterns[pattern]();
    }
    bench_stop(cliff.operations - before);
    for (unsigned i = 0; i < ASCENDING; i++) {
        end_any(&cliff.slot[i]);
    }
    bench_live_peak(cliff.peak);
    return bench_finish(cliff.sum);
}
