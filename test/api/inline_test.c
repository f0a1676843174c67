/* SPDX-License-Identifier: MIT
 *
 * hakmem/inline.h: constant sizes, all sizes around the largest of the table, blocks of other
 * threads, and the mix with the library's own functions. */
#define HAKMEM_INLINE_MALLOC
#include <hakmem/inline.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>

#include "expect.h"

enum { BLOCKS = 4096 };

static void *blocks[BLOCKS];

static void constant_sizes_serve_and_go_back(void) {
    for (unsigned i = 0; i < 100000; i++) {
        char *small = hak_inline_malloc(48), *medium = hak_inline_malloc(2048),
             *large = hak_inline_malloc(70000);
        memset(small, 1, 48);
        memset(medium, 2, 2048);
        large[69999] = 3;
        EXPECT(small != medium && malloc_usable_size(small) >= 48);
        EXPECT(malloc_usable_size(medium) >= 2048 && malloc_usable_size(large) >= 70000);
        hak_inline_free_sized(small, 48);
        hak_inline_free_sized(medium, 2048);
        hak_inline_free_sized(large, 70000);
    }
}

static void *free_all(void *unused) {
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]); /* the first call of a thread without a cache, then of another's blocks */
    }
    return unused;
}

static void blocks_of_other_threads_are_freed(void) {
    for (unsigned round = 0; round < 20; round++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(i % 300);
        }
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, free_all, NULL) == 0);
        EXPECT(pthread_join(thread, NULL) == 0);
    }
}

static void null_and_failure_are_those_of_the_library(void) {
    free(NULL);
    hak_inline_free_sized(NULL, 48);
    errno = 0;
    size_t volatile most = SIZE_MAX;
    void *none = malloc(most);
    EXPECT(none == NULL && errno == ENOMEM);
    errno = EBADF;
    free(malloc(10));
    EXPECT(errno == EBADF);
}

int main(void) {
    RUN(constant_sizes_serve_and_go_back);
    RUN(blocks_of_other_threads_are_freed);
    RUN(null_and_failure_are_those_of_the_library);
    return expect_status();
}
