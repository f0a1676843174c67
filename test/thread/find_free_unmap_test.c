/* SPDX-License-Identifier: MIT
 *
 * Blocks that look free are reallocated, so that they are searched for (front/find_free.c), while
 * other threads fill slabs, let them retire and have their superslabs unmapped. Arguments: bursts
 * of each thread (default 250), blocks of a burst (default 60000).
 */
#include "slab/link.h"
#include "thread/block.h"

enum { SEARCHERS = 2, BURSTERS = 2, BYTES = 40, REALLOCS = 50 };

static size_t burst_count, burst_blocks;
static atomic_bool stop;

static void *reallocate_until_stopped(void *argument) {
    (void)argument;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        void *block = family.malloc(BYTES);
        EXPECT(block != NULL);
        for (size_t i = 0; i < REALLOCS; ++i) {
            hak_link_set(block, NULL);
            block = family.realloc(block, BYTES - i % 4);
            EXPECT(block != NULL);
        }
        hak_link_clear(block);
        family.free(block);
    }
    return NULL;
}

static void *burst(void *argument) {
    (void)argument;
    void **blocks = family.malloc(burst_blocks * sizeof *blocks);
    EXPECT(blocks != NULL);
    for (size_t round = 0; round < burst_count; ++round) {
        for (size_t i = 0; i < burst_blocks; ++i) {
            blocks[i] = family.malloc(BYTES);
            EXPECT(blocks[i] != NULL);
            hak_link_set(blocks[i], NULL);
        }
        for (size_t i = 0; i < burst_blocks; ++i) {
            hak_link_clear(blocks[i]);
            family.free(blocks[i]);
        }
        family.trim(0);
    }
    family.free(blocks);
    return NULL;
}

static void searches_while_superslabs_are_unmapped_read_what_is_mapped(void) {
    pthread_t searchers[SEARCHERS], bursters[BURSTERS];
    threads_start(searchers, SEARCHERS, reallocate_until_stopped, 0);
    threads_start(bursters, BURSTERS, burst, 0);
    threads_join(bursters, BURSTERS);
    atomic_store(&stop, true);
    threads_join(searchers, SEARCHERS);
}

int main(int argc, char **argv) {
    burst_count = expect_arg(argc, argv, 1, expect_cases(250));
    burst_blocks = expect_arg(argc, argv, 2, 60000);
    family_load();
    expect_watchdog();
    RUN(searches_while_superslabs_are_unmapped_read_what_is_mapped);
    return expect_status();
}
