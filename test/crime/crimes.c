/* SPDX-License-Identifier: MIT
 *
 * One user error per name; run preloaded by crime_test.py, which knows what must be said about each
 * (expected.tsv). A crime that goes unnoticed prints so and ends with status 3. */
#include "crimes.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE_BYTES = 300000, HUGE_BYTES = 3 << 20 };

static char static_area[256];
extern void hak_collect_thread(void) __attribute__((weak));

static void free_of_stack(void) {
    _Alignas(16) char area[256] = {0};
    free(hide(area + 64));
}

static void free_of_static(void) {
    free(hide(static_area + 64));
}

static void free_of_constant(void) {
    static const _Alignas(16) char constant[256] = {0};
    free(hide((void *)(uintptr_t)(constant + 64)));
}

static void *unmapped(void) {
    char *base = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(base, 1 << 20);
    return base + (1 << 19);
}

static void free_of_unmapped(void) {
    free(hide(unmapped()));
}

static void free_of_small_number(void) {
    free(hide((void *)16));
}

static void free_of_kernel_address(void) {
    free(hide((void *)0xffff800000001000u));
}

static void free_inside_large_head(void) {
    free((char *)hide(malloc(LARGE_BYTES)) + 16);
}

static void free_inside_large_body(void) {
    free((char *)hide(malloc(LARGE_BYTES)) + 2 * 65536);
}

static void free_inside_huge_head(void) {
    free((char *)hide(malloc(HUGE_BYTES)) + 16);
}

static void free_inside_huge_body(void) {
    free((char *)hide(calloc(1, HUGE_BYTES)) + (1 << 20));
}

static void realloc_of_static(void) {
    (void)!realloc(hide(static_area + 64), 100);
}

static void realloc_of_unmapped(void) {
    (void)!realloc(hide(unmapped()), 100);
}

static void realloc_inside_small(void) {
    (void)!realloc((char *)hide(malloc(100)) + 16, 200);
}

static void realloc_inside_small_that_fits(void) {
    (void)!realloc((char *)hide(malloc(100)) + 16, 100);
}

static void realloc_inside_medium_that_fits(void) {
    (void)!realloc((char *)hide(malloc(20000)) + 4096, 20000);
}

static void realloc_inside_large(void) {
    (void)!realloc((char *)hide(malloc(LARGE_BYTES)) + 65536, 200);
}

static void realloc_inside_huge(void) {
    (void)!realloc((char *)hide(malloc(HUGE_BYTES)) + 32, 200);
}

/* More than a bin holds: noticed when the newest leave it. */
static void double_free_of_overflowed(void) {
    enum { COUNT = 500, TWICE = 400 };
    void *block[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hide(malloc(64));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        free(block[i]);
        if (i == TWICE) {
            free(block[i]);
        }
    }
}

/* The first free was sorted long ago: noticed when the second is, though others are in use. */
static void double_free_of_sorted(void) {
    enum { COUNT = 900, FREED = 300, TWICE = 200 };
    void *block[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = hide(malloc(64));
    }
    for (unsigned i = 0; i < FREED; i++) {
        free(block[i]);
    }
    hak_collect_thread();
    free(block[TWICE]);
    hak_collect_thread();
}

/* Others were freed since: noticed when the list is sorted. */
static void double_free_in_a_list(void) {
    void *block[10];
    for (unsigned i = 0; i < 10; i++) {
        block[i] = hide(malloc(64));
    }
    for (unsigned i = 0; i < 10; i++) {
        free(block[i]);
    }
    free(block[5]);
    hak_collect_thread();
}

static void double_free_of_large(void) {
    void *block = hide(malloc(LARGE_BYTES));
    free(block);
    free(block);
}

static void double_free_of_huge(void) {
    void *block = hide(malloc(HUGE_BYTES));
    free(block);
    free(block);
}

static void realloc_of_freed_large(void) {
    void *block = hide(malloc(LARGE_BYTES));
    free(block);
    (void)!realloc(block, 2 * LARGE_BYTES);
}

static void sized_free_of_wrong_size(void) {
    extern void free_sized(void *, size_t) __attribute__((weak));
    free_sized(hide(malloc(64)), 100);
}

/* operator delete with the size of a base class. */
static void delete_as_base_class(void) {
    extern void _ZdlPvm(void *, size_t) __attribute__((weak));
    _ZdlPvm(hide(malloc(204)), 4);
}

static void write_after_free(void) {
    uint64_t *a = hide(malloc(64));
    uint64_t *b = hide(malloc(64));
    free(b);
    free(a);
    *(volatile uint64_t *)a = 0x4141414141414141u;
    (void)!hide(malloc(64));
    (void)!hide(malloc(64));
    churn(64); /* it may have been held back */
}

static const crime_t crimes[] = {
    CRIME(free_of_stack),
    CRIME(free_of_static),
    CRIME(free_of_constant),
    CRIME(free_of_unmapped),
    CRIME(free_of_small_number),
    CRIME(free_of_kernel_address),
    CRIME(free_inside_small_remote),
    CRIME(free_inside_medium_remote),
    CRIME(free_of_uncarved_remote),
    CRIME(free_inside_small_old_remote),
    CRIME(free_inside_medium_old_remote),
    CRIME(free_inside_second_unit_old_remote),
    CRIME(free_of_uncarved_old_remote),
    CRIME(free_of_tail_waste_old_remote),
    CRIME(free_again_of_uncarved_remote),
    CRIME(double_free_before_the_end_of_a_thread),
    CRIME(double_free_merged_at_exit),
    CRIME(free_inside_large_head),
    CRIME(free_inside_large_body),
    CRIME(free_inside_huge_head),
    CRIME(free_inside_huge_body),
    CRIME(realloc_of_static),
    CRIME(realloc_of_unmapped),
    CRIME(realloc_inside_small),
    CRIME(realloc_inside_small_that_fits),
    CRIME(realloc_inside_medium_that_fits),
    CRIME(realloc_inside_large),
    CRIME(realloc_inside_huge),
    CRIME(usable_size_of_stack),
    CRIME(usable_size_inside_small),
    CRIME(usable_size_inside_large),
    CRIME(usable_size_of_freed_small),
    CRIME(usable_size_of_sorted),
    CRIME(usable_size_of_freed_medium),
    CRIME(usable_size_of_freed_by_another_thread),
    CRIME(usable_size_of_freed_large),
    CRIME(usable_size_of_freed_huge),
    CRIME(freezero_of_freed_small),
    CRIME(read_of_zero_size),
    CRIME(write_to_zero_size),
    CRIME(write_to_zero_size_of_calloc),
    CRIME(write_to_zero_size_of_realloc),
    CRIME(write_to_zero_size_of_memalign),
    CRIME(write_to_zero_size_of_new),
    CRIME(overflow_of_zero_size),
    CRIME(double_free_of_zero_size),
    CRIME(double_free_of_old_zero_size),
    CRIME(free_inside_zero_size),
    CRIME(realloc_of_freed_zero_size),
    CRIME(usable_size_of_freed_zero_size),
    CRIME(sized_free_of_zero_size),
    CRIME(double_free_of_overflowed),
    CRIME(double_free_of_sorted),
    CRIME(double_free_in_a_list),
    CRIME(double_free_of_large),
    CRIME(double_free_of_huge),
    CRIME(realloc_of_freed_large),
    CRIME(free_inside_huge_of_chunk_like_data),
    CRIME(double_free_of_chunk_like_retired),
    CRIME(sized_free_of_wrong_size),
    CRIME(delete_as_base_class),
    CRIME(freezero_of_more_than_the_block),
    CRIME(freezero_of_more_than_the_large_block),
    CRIME(recallocarray_of_more_than_the_block),
    CRIME(write_after_free),
    CRIME(double_free_seen_at_exit),
    CRIME(double_free_seen_at_exit_of_child),
    CRIME(write_after_free_seen_at_exit),
    CRIME(double_free_interleaved_seen_at_exit),
    CRIME(double_free_interleaved_taken_again),
    CRIME(double_free_interleaved_far),
    CRIME(double_free_interleaved_of_medium),
    CRIME(double_free_around_another_thread),
    CRIME(double_free_crossed),
    CRIME(double_free_interleaved_far_by_another_thread),
    CRIME(double_free_of_closed),
    CRIME(double_free_of_closed_by_another_thread),
    CRIME(double_free_of_trimmed),
    CRIME(realloc_of_closed),
    CRIME(realloc_of_closed_that_fits),
    CRIME(realloc_of_trimmed),
    CRIME(usable_size_of_closed),
    CRIME(usable_size_of_trimmed),
    CRIME(write_after_free_behind_the_link),
    CRIME(write_after_free_at_the_end),
    CRIME(overflow_by_one),
    CRIME(overflow_by_one_of_zero),
    CRIME(overflow_of_medium),
    CRIME(overflow_seen_by_realloc),
    CRIME(overflow_seen_by_another_thread),
    CRIME(underflow_by_one),
    CRIME(double_free_of_held_back),
    CRIME(double_free_by_another_thread),
    CRIME(realloc_of_held_back),
    CRIME(write_behind_superslab),
    CRIME(write_behind_huge),
    CRIME(write_behind_grown_huge),
    CRIME(read_of_freed_large),
    CRIME(write_to_freed_large),
    CRIME(write_to_freed_huge),
    CRIME(write_to_moved_large),
    CRIME(write_behind_large),
    CRIME(write_to_sealed),
};

CRIMES_MAIN(crimes)
