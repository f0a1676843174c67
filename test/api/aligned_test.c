/* SPDX-License-Identifier: MIT
 *
 * Do the six aligned functions align, and does each answer a bad alignment or size as its own
 * standard says: posix_memalign by its result alone, aligned_alloc with EINVAL, memalign by
 * rounding up to a power of two as glibc does?
 * Argument: the largest alignment tried, as its logarithm (default 30: 1 GiB, address space only).
 */
#include "family.h"

static size_t largest_log2 = 30;
static char untouched; /* its address is what an output parameter must keep */

static void check_block(unsigned char *block, size_t alignment, size_t size) {
    EXPECT(block != NULL);
    EXPECT_EQ((uintptr_t)block % alignment, 0);
    size_t usable = family.usable_size(block);
    EXPECT(usable >= size);
    if (usable > 0) {
        block[0] = 1;
        block[usable - 1] = 2;
    }
    if (size <= 10000) {
        memset(block, 3, usable < 10000 ? usable : 10000);
    }
}

static void aligned_functions_align_all_sizes(void) {
    static const size_t sizes[] = {0,    1,    7,     16,    24,    100,   1000,         4095,
                                   4096, 8192, 30000, 65535, 65536, 65537, (1 << 20) + 1};
    for (size_t log2 = 0; log2 <= largest_log2; ++log2) {
        size_t alignment = (size_t)1 << log2;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
            unsigned char *iso = family.aligned_alloc(alignment, sizes[i]);
            check_block(iso, alignment, sizes[i]);
            unsigned char *gnu = family.memalign(alignment, sizes[i]);
            check_block(gnu, alignment, sizes[i]);
            EXPECT(iso != gnu);
            if (alignment >= sizeof(void *)) {
                void *posix = NULL;
                EXPECT_EQ(family.posix_memalign(&posix, alignment, sizes[i]), 0);
                if (sizes[i] != 0) { /* POSIX allows NULL for size 0 */
                    check_block((unsigned char *)posix, alignment, sizes[i]);
                }
                family.free(posix);
            }
            family.free(gnu);
            family.free(iso);
        }
    }
}

/* differential_test.c asks for much more. C17 needs no multiple of the alignment as size. */
static void aligned_requests_that_cannot_be_served_say_why(void) {
    static const struct {
        size_t alignment, size;
        int error;
    } requests[] = {{3, 100, EINVAL},
                    {48, 96, EINVAL},
                    {SIZE_MAX, 8, EINVAL},
                    {16, SIZE_MAX, ENOMEM},
                    {4096, (size_t)PTRDIFF_MAX + 1, ENOMEM},
                    {(size_t)1 << 63, (size_t)1 << 63, ENOMEM},
                    {(size_t)1 << 62, 100, ENOMEM}};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; ++i) {
        void *block = &untouched;
        errno = 4711;
        EXPECT_EQ(family.posix_memalign(&block, requests[i].alignment, requests[i].size),
                  requests[i].error);
        EXPECT(block == &untouched);
        if (family.is_hakmem) { /* glibc lets ENOMEM through; before 2.38 it had memalign here */
            EXPECT_EQ(errno, 4711);
            EXPECT(family.aligned_alloc(requests[i].alignment, requests[i].size) == NULL);
            EXPECT_EQ(errno, requests[i].error);
        }
    }
}

static void posix_memalign_of_less_than_a_pointer_is_einval_and_touches_nothing(void) {
    for (size_t alignment = 0; alignment < sizeof(void *); ++alignment) {
        void *block = &untouched;
        EXPECT_EQ(family.posix_memalign(&block, alignment, 100), EINVAL);
        EXPECT(block == &untouched);
    }
}

static void memalign_of_a_bad_alignment_rounds_up(void) {
    static const size_t requests[][2] = {
        {0, 1},   {1, 1},     {3, 4},     {5, 8},       {12, 16},     {24, 32},       {33, 64},
        {48, 64}, {100, 128}, {257, 512}, {1000, 1024}, {4097, 8192}, {65537, 131072}};
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; ++i) {
        for (size_t size = 1; size < 10000; size *= 3) {
            unsigned char *block = family.memalign(requests[i][0], size);
            check_block(block, requests[i][1], size);
            family.free(block);
        }
    }
    errno = 0;
    EXPECT(family.memalign(((size_t)1 << 62) + 1, 1) == NULL);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT(family.memalign(SIZE_MAX / 2 + 2, 1) == NULL);
    EXPECT_EQ(errno, EINVAL);
}

static void valloc_and_pvalloc_give_whole_os_pages(void) {
    size_t ospage = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 0; size <= 1 << 20; size = size * 3 + 1) {
        unsigned char *block = family.valloc(size);
        check_block(block, ospage, size);
        unsigned char *rounded = family.pvalloc(size);
        check_block(rounded, ospage, (size + ospage - 1) / ospage * ospage);
        family.free(rounded);
        family.free(block);
    }
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 10, (size_t)PTRDIFF_MAX + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        errno = 0;
        EXPECT(family.valloc(sizes[i]) == NULL);
        EXPECT_EQ(errno, ENOMEM);
        errno = 0;
        EXPECT(family.pvalloc(sizes[i]) == NULL);
        EXPECT_EQ(errno, ENOMEM);
    }
}

static void free_aligned_sized_frees_every_alignment(void) {
    EXPECT_HAS(free_aligned_sized);
    errno = 4711;
    family.free_aligned_sized(NULL, 64, 0);
    for (size_t alignment = 1; alignment <= (size_t)1 << 21; alignment *= 2) {
        for (size_t size = 0; size < 300000; size = size * 5 + 3) {
            void *block = family.aligned_alloc(alignment, size);
            EXPECT(block != NULL);
            family.free_aligned_sized(block, alignment, size);
        }
    }
    EXPECT_EQ(errno, 4711);
}

/* Memory of aligned blocks comes back to the other functions and the other way round. */
static void aligned_blocks_are_reused_without_growth(void) {
    size_t before = expect_rss_bytes();
    for (size_t i = 0; i < 40000; ++i) {
        unsigned char *block = family.memalign((size_t)16 << (i % 10), 3000);
        EXPECT(block != NULL);
        memset(block, 1, 3000);
        family.free(block);
    }
    expect_rss_at_most(before, 32 << 20);
}

int main(int argc, char **argv) {
    largest_log2 = expect_arg(argc, argv, 1, largest_log2);
    family_load();
    RUN(aligned_functions_align_all_sizes);
    RUN(aligned_requests_that_cannot_be_served_say_why);
    RUN(posix_memalign_of_less_than_a_pointer_is_einval_and_touches_nothing);
    RUN(memalign_of_a_bad_alignment_rounds_up);
    RUN(valloc_and_pvalloc_give_whole_os_pages);
    RUN(free_aligned_sized_frees_every_alignment);
    RUN(aligned_blocks_are_reused_without_growth);
    return expect_status();
}
