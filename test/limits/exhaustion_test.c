/* SPDX-License-Identifier: MIT
 *
 * Out of memory under a resource limit: is the answer NULL with ENOMEM, does the process go on, and
 * does allocation work again after memory was freed?
 * Arguments: which limit (as|data), its value in MiB (default 128). The program starts itself again
 * under the limit, so that the allocator's own start is under it too.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "api/family.h"

static size_t limit_bytes;

typedef struct link {
    struct link *next;
} link_t;

/* Allocates blocks of `size` until there are no more; returns how many, chained in *all. */
static size_t take_all(size_t size, link_t **all) {
    size_t count = 0;
    *all = NULL;
    for (;;) {
        errno = 0;
        link_t *block = family.malloc(size);
        if (block == NULL) {
            EXPECT_EQ(errno, ENOMEM);
            return count;
        }
        ((char *)block)[size - 1] = 1;
        block->next = *all;
        *all = block;
        ++count;
        EXPECT(count * size <= limit_bytes);
    }
}

static void give_all(link_t *all) {
    errno = 4711;
    while (all != NULL) {
        link_t *next = all->next;
        family.free(all);
        all = next;
    }
    EXPECT_EQ(errno, 4711);
}

/* What the limit leaves to blocks must mostly reach them: half is a generous floor. */
static void check_yield(size_t count, size_t size) {
    if (count * size < limit_bytes / 2 && size <= 1 << 20) {
        expect_say("only %zu KiB in blocks of %zu bytes\n", count * size >> 10, size);
        EXPECT(count * size >= limit_bytes / 2);
    }
}

static void exhaustion_by_any_size_is_enomem_and_memory_comes_back(void) {
    static const size_t sizes[] = {16, 64, 1000, 8000, 30000, 65536, 100000, 1 << 20, 5 << 20};
    for (size_t round = 0; round < 2; ++round) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
            link_t *all;
            size_t count = take_all(sizes[i], &all);
            give_all(all);
            check_yield(count, sizes[i] == 16 ? 24 : sizes[i]); /* 16: glibc's header counts */
        }
    }
}

static void exhaustion_then_every_function_says_enomem(void) {
    link_t *all;
    char *kept = family.malloc(1000);
    EXPECT(kept != NULL);
    memset(kept, 7, 1000);
    size_t count = take_all(4000, &all);
    EXPECT(count > 0);
    errno = 0;
    EXPECT(family.calloc(1 << 10, 1 << 13) == NULL);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT(family.realloc(kept, 8 << 20) == NULL);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT(kept[0] == 7 && kept[999] == 7);
    errno = 0;
    EXPECT(family.aligned_alloc(4096, 8 << 20) == NULL);
    EXPECT_EQ(errno, ENOMEM);
    void *untouched = kept;
    EXPECT_EQ(family.posix_memalign(&untouched, 1 << 16, 8 << 20), ENOMEM);
    EXPECT(untouched == kept);
    errno = 0;
    EXPECT(family.malloc(limit_bytes * 2) == NULL);
    EXPECT_EQ(errno, ENOMEM);
    give_all(all);
    void *large = family.malloc(limit_bytes / 4);
    EXPECT(large != NULL);
    family.free(large);
    kept = family.realloc(kept, limit_bytes / 4);
    EXPECT(kept != NULL);
    EXPECT(kept[0] == 7 && kept[999] == 7);
    family.free(kept);
}

/* Nothing is left; then a huge block is freed, too little for what small blocks are taken from. */
static void small_blocks_fit_where_a_huge_one_was(size_t size) {
    enum { HUGE_BYTES = 2 << 20, SERVED = 8 };
    link_t *huge, *same, *filler, *served = NULL;
    EXPECT(take_all(HUGE_BYTES, &huge) > 1);
    take_all(size, &same);
    take_all((1 << 20) + 1, &filler);
    link_t *rest = huge->next;
    family.free(huge);
    for (size_t i = 0; i < SERVED; ++i) {
        link_t *block = i % 2 == 0 ? family.malloc(size) : family.calloc(1, size);
        EXPECT(block != NULL);
        if (block == NULL) {
            expect_say("%zu of %d blocks of %zu bytes\n", i, SERVED, size);
            break;
        }
        EXPECT(i % 2 == 0 || ((char *)block)[size - 1] == 0);
        EXPECT(family.usable_size(block) >= size);
        memset(block, 7, size);
        block->next = served;
        served = block;
    }
    give_all(served);
    give_all(filler);
    give_all(same);
    give_all(rest);
}

static void exhaustion_then_a_freed_block_serves_smaller_ones(void) {
    static const size_t sizes[] = {16, 1000, 8000, 50 << 10, 100 << 10, 150 << 10};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        small_blocks_fit_where_a_huge_one_was(sizes[i]);
    }
}

/* Freed huge blocks are cached. What bins hold serves the first small blocks, the cache the rest.
 */
static void exhaustion_by_small_blocks_comes_after_that_of_cached_mappings(void) {
    enum { IN_BINS = 64 };
    link_t *huge, *small;
    void *binned[IN_BINS];
    take_all(3 << 20, &huge);
    give_all(huge);
    for (size_t i = 0; i < IN_BINS; ++i) {
        binned[i] = family.malloc(4000);
    }
    for (size_t i = 0; i < IN_BINS; ++i) {
        family.free(binned[i]);
    }
    size_t count = take_all(50, &small);
    give_all(small);
    check_yield(count, 64);
}

static pthread_barrier_t barrier;

/* A thread whose very first allocation finds nothing left. */
static void *allocate_late(void *argument) {
    (void)argument;
    pthread_barrier_wait(&barrier);
    for (size_t size = 1; size <= 1 << 22; size *= 4) {
        errno = 0;
        void *block = family.malloc(size);
        EXPECT(block != NULL || errno == ENOMEM);
        family.free(block);
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* the main thread has freed everything */
    for (size_t size = 1; size <= 1 << 22; size *= 4) {
        void *block = family.malloc(size);
        EXPECT(block != NULL);
        family.free(block);
    }
    return NULL;
}

static void exhaustion_before_a_threads_first_malloc_is_survived(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    pthread_barrier_init(&barrier, NULL, 2);
    EXPECT_EQ(pthread_create(&thread, &attributes, allocate_late, NULL), 0);
    link_t *large, *medium, *small;
    take_all(1 << 20, &large);
    take_all(4000, &medium);
    take_all(16, &small);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    give_all(small);
    give_all(medium);
    give_all(large);
    pthread_barrier_wait(&barrier);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

int main(int argc, char **argv) {
    bool is_data = argc > 1 && strcmp(argv[1], "data") == 0;
    size_t mebibytes = expect_arg(argc, argv, 2, 128);
    limit_bytes = mebibytes << 20;
    int resource = is_data ? RLIMIT_DATA : RLIMIT_AS;
    struct rlimit limit;
    getrlimit(resource, &limit);
    if (limit.rlim_cur != limit_bytes) {
        limit.rlim_cur = limit_bytes;
        if (setrlimit(resource, &limit) != 0) {
            expect_skip("the limit cannot be set");
        }
        execv("/proc/self/exe", argv);
        return 1;
    }
    family_load();
    expect_watchdog();
    RUN(exhaustion_before_a_threads_first_malloc_is_survived); /* first: needs room for a stack */
    RUN(exhaustion_by_any_size_is_enomem_and_memory_comes_back);
    RUN(exhaustion_then_every_function_says_enomem);
    RUN(exhaustion_then_a_freed_block_serves_smaller_ones);
    RUN(exhaustion_by_small_blocks_comes_after_that_of_cached_mappings);
    return expect_status();
}
