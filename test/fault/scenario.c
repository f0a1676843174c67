/* SPDX-License-Identifier: MIT */
#include "fault/scenario.h"

#include "fault/block.h"

#include "base/knobs.h"
#include "hakmem/hakmem.h"
#include "span/span.h"

#include <pthread.h>

/* --- the first allocations of the process --------------------------------------------------------
 */

static unsigned run_first(void) {
    unsigned refusals = 0;
    unsigned char *block[8];
    static const size_t sizes[8] = {1, 16, 100, 2048, 5000, 70000, 3 * MIB, 24};
    errno = 0;
    for (unsigned i = 0; i < 8; i++) {
        block[i] = i % 2 == 0 ? hak_malloc(sizes[i]) : hak_calloc(1, sizes[i]);
        refusals += refused(block[i]);
        FAULT_EXPECT(block[i] == NULL || i % 2 == 0 || is_filled(block[i], sizes[i], 0));
        if (block[i] != NULL) {
            fill(block[i], sizes[i], (unsigned char)(i + 1));
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        give(&block[i], sizes[i], (unsigned char)(i + 1));
    }
    FAULT_EXPECT(errno == 0);
    return refusals;
}

/* --- small blocks, many classes, 12 MiB up and down
 * ------------------------------------------------ */

enum { SMALL_BLOCKS = 2000 };

static unsigned char *small_block[SMALL_BLOCKS];

static size_t small_size(unsigned i) {
    static const size_t sizes[] = {16, 48, 200, 1024, 3000, 8192, 20000, 57344};
    return sizes[i % 8] / (1 + i % 3);
}

static unsigned run_small(void) {
    unsigned refusals = 0;
    errno = 0;
    for (unsigned i = 0; i < SMALL_BLOCKS; i++) {
        small_block[i] = i % 7 == 0 ? hak_memalign(64, small_size(i)) : hak_malloc(small_size(i));
        refusals += taken(small_block[i], small_size(i), (unsigned char)i);
    }
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = pass; i < SMALL_BLOCKS; i += 2) {
            unsigned char *at = small_block[i];
            FAULT_EXPECT(at == NULL || is_filled(at, small_size(i), (unsigned char)i));
            hak_free(at);
        }
        hak_malloc_trim(0);
    }
    FAULT_EXPECT(errno == 0);
    return refusals;
}

/* --- large and huge blocks that come and go
 * -------------------------------------------------------- */

static unsigned run_large(void) {
    static unsigned char *block[24];
    static size_t bytes[24];
    unsigned refusals = 0;
    errno = 0;
    for (unsigned round = 0; round < 60; round++) {
        unsigned i = round * 7 % 24;
        size_t size = (round % 5 == 0   ? 5 * MIB
                       : round % 3 == 0 ? 1500 * KIB
                                        : 100 * KIB) +
                      round * 4096u;
        if (block[i] != NULL) {
            FAULT_EXPECT(is_filled(block[i], bytes[i], (unsigned char)i));
        }
        hak_free(block[i]);
        bytes[i] = size;
        block[i] = round % 4 == 0 ? hak_calloc(1, size) : hak_memalign(64 * KIB, size);
        refusals += refused(block[i]);
        FAULT_EXPECT(block[i] == NULL || round % 4 != 0 || is_filled(block[i], size, 0));
        if (block[i] != NULL) {
            fill(block[i], size, (unsigned char)i);
        }
        if (round % 25 == 24) {
            hak_malloc_trim(0);
        }
    }
    for (unsigned i = 0; i < 24; i++) {
        give(&block[i], bytes[i], (unsigned char)i);
    }
    hak_malloc_trim(0);
    FAULT_EXPECT(errno == 0);
    return refusals;
}

/* --- one block grown to 64 MiB and cut back, neighbours in its way
 * --------------------------------- */

static unsigned run_resize(void) {
    unsigned refusals = 0;
    unsigned char *wall[16] = {0};
    size_t bytes = 1000;
    errno = 0;
    unsigned char *block = hak_malloc(bytes);
    if (refused(block) != 0) {
        return 1;
    }
    fill(block, bytes, 0x3c);
    for (unsigned i = 0; bytes < 64 * MIB && i < 30; i++) {
        refusals += !resize(&block, &bytes, bytes * 2 + 100, 0x3c);
        hak_free(wall[i % 16]);
        wall[i % 16] = hak_malloc(bytes > MIB ? 2 * MIB : bytes);
        refusals += refused(wall[i % 16]);
    }
    while (bytes > 2000) {
        resize(&block, &bytes, bytes / 3, 0x3c);
    }
    hak_free(block);
    for (unsigned i = 0; i < 16; i++) {
        hak_free(wall[i]);
    }
    hak_malloc_trim(0);
    FAULT_EXPECT(errno == 0);
    return refusals;
}

/* --- threads that start, allocate, pass blocks on and exit
 * ---------------------------------------------- */

static void *handed[4][64];

static void *thread_main(void *context) {
    uintptr_t self = (uintptr_t)context;
    uintptr_t refusals = 0;
    errno = 0;
    for (unsigned i = 0; i < 64; i++) {
        size_t size = i % 8 == 0 ? 300 * KIB : 32u << (i + self) % 9;
        unsigned char *own = hak_malloc(size);
        refusals += refused(own);
        hak_free(handed[self][i]); /* of a thread before us */
        handed[self][i] = own;
        if (own != NULL) {
            fill(own, size, (unsigned char)i);
            FAULT_EXPECT(is_filled(own, size, (unsigned char)i));
        }
    }
    FAULT_EXPECT(errno == 0);
    return (void *)refusals;
}

static unsigned run_threads(void) {
    unsigned refusals = 0;
    for (unsigned round = 0; round < 6; round++) {
        pthread_t thread[4];
        bool is_started[4];
        for (uintptr_t i = 0; i < 4; i++) {
            is_started[i] = pthread_create(&thread[i], NULL, thread_main, (void *)i) == 0;
        }
        for (unsigned i = 0; i < 4; i++) {
            void *result = NULL;
            if (is_started[i]) {
                pthread_join(thread[i], &result);
            }
            refusals += (unsigned)(uintptr_t)result;
        }
    }
    for (unsigned i = 0; i < 4 * 64; i++) {
        hak_free(handed[i / 64][i % 64]);
        handed[i / 64][i % 64] = NULL;
    }
    hak_malloc_trim(0);
    return refusals;
}

/* Little is retained, so that memory goes back on the way and not only when trimmed. */
static void first_use(void) {
    hak_free(hak_malloc(1));
    hak_knobs.retain_min_bytes = MIB;
    hak_knobs.retain_percent = 5;
}

/* Leaves so little metadata that new threads need more. */
static void first_use_without_spare(void) {
    first_use();
    FAULT_EXPECT(hak_meta_alloc(MIB - 8 * KIB) != NULL);
}

const fault_scenario_t fault_scenarios[] = {
    {"first", run_first, NULL},
    {"small", run_small, first_use},
    {"large", run_large, first_use},
    {"resize", run_resize, first_use},
    {"threads", run_threads, first_use_without_spare},
    {"spans", fault_run_spans, first_use},
    {"grow", fault_run_grow, first_use},
    {"aligned", fault_run_aligned, first_use},
    {"time", fault_run_time, first_use},
    {"fork", fault_run_fork, first_use},
    {"churn", fault_run_churn, first_use_without_spare},
    {"guard", fault_run_guard, first_use},
};
const size_t fault_scenario_count = sizeof fault_scenarios / sizeof *fault_scenarios;
