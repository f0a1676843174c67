/* SPDX-License-Identifier: MIT
 *
 * Scenarios of what takes many calls of the kernel: spans, growth, alignment, time, fork, threads.
 */
#include "fault/block.h"

#include "api/where.h"
#include "double/os_fault.h"
#include "double/rng.h"
#include "span/span.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- blocks of 64 KiB to 1 MiB that come, go, grow and shrink where they are
 * ---------------------*/

enum { SPAN_BLOCKS = 48 };

unsigned fault_run_spans(void) {
    static unsigned char *block[SPAN_BLOCKS];
    static size_t bytes[SPAN_BLOCKS];
    unsigned refusals = 0;
    uint64_t state = 7;
    errno = 0;
    for (unsigned step = 0; step < 600; step++) {
        unsigned i = hak_rng_next(&state) % SPAN_BLOCKS;
        size_t wanted = (64u << hak_rng_next(&state) % 5) * KIB - hak_rng_next(&state) % 60000;
        if (block[i] == NULL) {
            block[i] = step % 2 == 0 ? hak_malloc(wanted) : hak_calloc(1, wanted);
            refusals += refused(block[i]);
            bytes[i] = wanted;
            if (block[i] != NULL) {
                FAULT_EXPECT(step % 2 == 0 || is_filled(block[i], wanted, 0));
                fill(block[i], wanted, (unsigned char)i);
            }
        } else if (step % 3 != 0) {
            refusals += !resize(&block[i], &bytes[i], wanted, (unsigned char)i);
        } else {
            FAULT_EXPECT(is_filled(block[i], bytes[i], (unsigned char)i));
            hak_free(block[i]);
            block[i] = NULL;
        }
        if (step % 150 == 149) {
            hak_malloc_trim(step % 4 == 0 ? 0 : 4 * MIB);
        }
    }
    for (unsigned i = 0; i < SPAN_BLOCKS; i++) {
        give(&block[i], bytes[i], (unsigned char)i);
    }
    FAULT_EXPECT(errno == 0);
    return refusals;
}

/* --- blocks that realloc lets grow, in turns, to 100 MiB
 * -----------------------------------------*/

enum { GROWING = 3 };

unsigned fault_run_grow(void) {
    static const size_t most[GROWING] = {100 * MIB, 9 * MIB, 20 * MIB};
    unsigned char *block[GROWING];
    size_t bytes[GROWING];
    unsigned refusals = 0;
    errno = 0;
    for (unsigned i = 0; i < GROWING; i++) {
        bytes[i] = 1000;
        block[i] = hak_malloc(bytes[i]);
        refusals += taken(block[i], bytes[i], (unsigned char)i);
    }
    for (unsigned step = 0; step < 90; step++) {
        unsigned i = step % GROWING;
        size_t more = i == 2 && bytes[i] > MIB ? bytes[i] + MIB : bytes[i] + bytes[i] / 2;
        if (more > MIB && bytes[i] <= MIB) {
            hak_meta_alloc(MIB); /* the next record, of whatever, takes a call */
        }
        if (block[i] != NULL && more <= most[i]) {
            refusals += !resize(&block[i], &bytes[i], more, (unsigned char)i);
        } else if (block[i] != NULL && i == 1) { /* again: cached memory is at hand now */
            resize(&block[i], &bytes[i], MIB + 5000, (unsigned char)i);
        }
    }
    for (unsigned i = 0; i < GROWING; i++) {
        give(&block[i], bytes[i], (unsigned char)i);
    }
    FAULT_EXPECT(errno == 0);
    return refusals;
}

/* --- alignments up to 64 MiB, of small, large and huge blocks
 * -----------------------------------*/

unsigned fault_run_aligned(void) {
    enum { ALIGNED = 22 };
    unsigned char *block[ALIGNED];
    size_t bytes[ALIGNED];
    unsigned refusals = 0;
    errno = 0;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < ALIGNED; i++) {
            size_t align = (size_t)4096 << (i * 2 + round) % 15;
            bytes[i] = i % 3 == 0 ? 5000 : i % 3 == 1 ? 300 * KIB : 5 * MIB + i * 70000;
            block[i] = hak_aligned_alloc(align, bytes[i]);
            refusals += refused(block[i]);
            FAULT_EXPECT((uintptr_t)block[i] % align == 0);
            if (block[i] != NULL) {
                fill(block[i], bytes[i], (unsigned char)i);
            }
        }
        for (unsigned i = 0; i < ALIGNED; i++) {
            if (block[i] != NULL && i % 4 == 1) {
                refusals += !resize(&block[i], &bytes[i], bytes[i] * 2, (unsigned char)i);
            }
            give(&block[i], bytes[i], (unsigned char)i);
        }
    }
    FAULT_EXPECT(errno == 0);
    return refusals;
}

/* --- memory that goes back by time: idle pages, unused units, cached blocks
 * ---------------------------*/

enum { TIME_BLOCKS = 12000, TIME_EVERY = 40, TIME_HUGE = 6 };

static unsigned char *time_block[TIME_BLOCKS];

/* Work in which the allocator looks at the clock. */
static unsigned pass_time(void) {
    unsigned refusals = 0;
    for (unsigned step = 0; step < 16; step++) {
        hak_os_fault_advance_clock(110u * 1000 * 1000);
        for (unsigned i = 0; i < 17; i++) {
            void *block = hak_malloc(100 * KIB);
            refusals += refused(block);
            hak_free(block);
        }
    }
    return refusals;
}

unsigned fault_run_time(void) {
    unsigned char *huge[TIME_HUGE];
    unsigned refusals = 0;
    errno = 0;
    hak_os_fault_stop_clock();
    for (unsigned i = 0; i < TIME_BLOCKS; i++) {
        size_t bytes = i % 100 == 7 ? 40000 : 700 + i % 900;
        time_block[i] = hak_malloc(bytes);
        refusals += taken(time_block[i], bytes < 700 ? bytes : 700, (unsigned char)i);
    }
    for (unsigned i = 0; i < TIME_HUGE; i++) {
        huge[i] = hak_malloc(3 * MIB);
        refusals += taken(huge[i], 3 * MIB, 1);
    }
    for (unsigned i = 0; i < TIME_HUGE; i++) {
        hak_free(huge[i]);
    }
    for (unsigned i = 0; i < TIME_BLOCKS; i++) {
        if (i % TIME_EVERY != 0) {
            hak_free(time_block[i]);
        }
    }
    refusals += pass_time();
    for (unsigned i = 0; i < TIME_BLOCKS; i += TIME_EVERY) {
        unsigned char *block = time_block[i];
        FAULT_EXPECT(block == NULL || is_filled(block, 700, (unsigned char)i));
        hak_free(block);
    }
    refusals += pass_time();
    FAULT_EXPECT(errno == 0);
    return refusals;
}

/* --- a fork in the middle, and both go on ------------------------------------------------------*/

static unsigned fork_work(unsigned char **block, unsigned count, unsigned seed) {
    unsigned refusals = 0;
    uint64_t state = seed;
    for (unsigned step = 0; step < count * 3; step++) {
        unsigned i = hak_rng_next(&state) % count;
        size_t bytes = 64 + (hak_rng_next(&state) % 5000 << (i % 8 == 0 ? 6 : 0));
        give(&block[i], 64, (unsigned char)i);
        block[i] = hak_malloc(bytes);
        refusals += taken(block[i], bytes, (unsigned char)i);
    }
    return refusals;
}

unsigned fault_run_fork(void) {
    enum { COUNT = 300 };
    static unsigned char *block[COUNT];
    int status = -1;
    errno = 0;
    unsigned refusals = fork_work(block, COUNT, 1);
    pid_t child = fork();
    FAULT_EXPECT(child >= 0);
    if (child == 0) {
        where_watch(WHERE_PATIENCE_SECONDS);
        fork_work(block, COUNT, 2);
        for (unsigned i = 0; i < COUNT; i++) {
            hak_free(block[i]);
        }
        hak_malloc_trim(0);
        _exit(errno != 0);
    }
    refusals += fork_work(block, COUNT, 3);
    FAULT_EXPECT(waitpid(child, &status, 0) == child && status == 0);
    for (unsigned i = 0; i < COUNT; i++) {
        hak_free(block[i]);
        block[i] = NULL;
    }
    FAULT_EXPECT(errno == 0);
    return refusals;
}

/* --- threads that free each other's blocks, 30 MiB at a time
 * -------------------------------------*/

enum { CHURN_THREADS = 4, CHURN_PLACES = 3000, CHURN_STEPS = 6000 };

static unsigned char *churn_place[CHURN_PLACES];

static void *churn_main(void *context) {
    uint64_t state = (uintptr_t)context + 1;
    uintptr_t refusals = 0;
    errno = 0;
    for (unsigned step = 0; step < CHURN_STEPS; step++) {
        unsigned i = hak_rng_next(&state) % CHURN_PLACES;
        size_t bytes = i % 100 == 0 ? 300 * KIB : 64u << i % 10;
        unsigned char *own = hak_malloc(bytes);
        refusals += taken(own, 64, (unsigned char)i);
        unsigned char *old = __atomic_exchange_n(&churn_place[i], own, __ATOMIC_ACQ_REL);
        FAULT_EXPECT(old == NULL || is_filled(old, 64, (unsigned char)i));
        hak_free(old);
        if (step == CHURN_STEPS / 2) {
            hak_malloc_trim(0);
        }
    }
    FAULT_EXPECT(errno == 0);
    return (void *)refusals;
}

unsigned fault_run_churn(void) {
    pthread_t thread[CHURN_THREADS];
    unsigned refusals = 0;
    for (uintptr_t i = 0; i < CHURN_THREADS; i++) {
        FAULT_EXPECT(pthread_create(&thread[i], NULL, churn_main, (void *)i) == 0);
    }
    for (unsigned i = 0; i < CHURN_THREADS; i++) {
        void *result;
        FAULT_EXPECT(pthread_join(thread[i], &result) == 0);
        refusals += (unsigned)(uintptr_t)result;
    }
    for (unsigned i = 0; i < CHURN_PLACES; i++) {
        hak_free(churn_place[i]);
        churn_place[i] = NULL;
    }
    return refusals;
}
