/* SPDX-License-Identifier: MIT
 *
 * What tests of very many blocks ask: are there addresses for them, and has the program mappings
 * left? */
#ifndef HAK_TEST_LIMITS_MAPPINGS_H
#define HAK_TEST_LIMITS_MAPPINGS_H

#include <pthread.h>
#include <sys/mman.h>

#include "api/expect.h"

static inline void *mappings_thread(void *argument) {
    return argument;
}

/* A thread takes several: its stack and its guard. */
static inline void program_can_map(void) {
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, mappings_thread, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

/* Blocks are writable: where the kernel grants no more of that than there is memory, none are had.
 */
static inline void skip_without_addresses(size_t bytes) {
    void *probe = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) {
        expect_skip("addresses are limited here");
    }
    munmap(probe, bytes);
}

#endif
