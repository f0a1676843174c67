/* SPDX-License-Identifier: MIT
 *
 * Threads allocate and fall asleep for ever; others free all they had. Nobody who sleeps can give
 * anything back: is the memory there for the rest of the process all the same? After a second of
 * somebody else's mixed activity at most, another thread allocates as much again.
 * Arguments: MiB a sleeper (default 12), sleepers (8), milliseconds of activity (1 000), seed (1).
 */
#include "thread/block.h"
#include "thread/gate.h"

enum { SLEEPERS_MAX = 64, BLOCKS_MAX = 1 << 16, FREERS = 2, SIZE_LEAST = 32, SIZE_MOST = 2048 };

/* What may be lost of the freed bytes, and below which amount the fixed cost of the threads would
 * be what is measured. */
enum { LOST_PERCENT = 10, MEMORY_COUNTS_FROM = 64 << 20 };

typedef struct pile {
    block_t *blocks[BLOCKS_MAX];
    size_t count, bytes;
} pile_t;

static pile_t piles[SLEEPERS_MAX];
static gate_t sleepers_gate = GATE_CLOSED, freers_gate = GATE_CLOSED;
static size_t pile_bytes, sleeper_count, activity_ms;
static uint64_t seed;

static void pile_fill(pile_t *pile, uint64_t *state) {
    for (pile->count = pile->bytes = 0; pile->bytes < pile_bytes; ++pile->count) {
        EXPECT(pile->count < BLOCKS_MAX);
        uint64_t draw = expect_random(state);
        size_t size = SIZE_LEAST + draw % (SIZE_MOST - SIZE_LEAST);
        block_t *block = (block_t *)family.malloc(size);
        EXPECT(block != NULL);
        memset(block, 1, size); /* all of it resident */
        block_stamp(block, size, (uint32_t)(draw >> 32));
        pile->blocks[pile->count] = block;
        pile->bytes += size;
    }
}

static void pile_free(pile_t *pile) {
    for (size_t i = 0; i < pile->count; ++i) {
        block_check(pile->blocks[i]);
        family.free(pile->blocks[i]);
    }
    pile->count = 0;
}

static void *sleeper(void *argument) {
    pile_t *pile = (pile_t *)argument;
    uint64_t state = seed * 0x9e3779b97f4a7c15u + (uint64_t)(pile - piles) + 1;
    pile_fill(pile, &state);
    gate_sleep(&sleepers_gate);
    return NULL;
}

/* Falls asleep, too, with all that it has not flushed yet. */
static void *freer(void *argument) {
    for (size_t i = (uintptr_t)argument; i < sleeper_count; i += FREERS) {
        pile_free(&piles[i]);
    }
    gate_sleep(&freers_gate);
    return NULL;
}

static void *active_one(void *argument) {
    (void)argument;
    gate_activity(activity_ms);
    return NULL;
}

static void *allocate_again(void *argument) {
    (void)argument;
    uint64_t state = seed + 77;
    for (size_t i = 0; i < sleeper_count; ++i) {
        pile_fill(&piles[i], &state);
    }
    return NULL;
}

static void sleeping_owners_memory_serves_the_others(void) {
    pthread_t threads[SLEEPERS_MAX], freers[FREERS];
    memset(piles, 0xff, sleeper_count * sizeof piles[0]); /* resident before anything is measured */
    size_t start = expect_rss_bytes();
    for (size_t i = 0; i < sleeper_count; ++i) {
        threads[i] = thread_start(sleeper, &piles[i]);
    }
    gate_await(&sleepers_gate, sleeper_count);
    size_t bytes = 0;
    for (size_t i = 0; i < sleeper_count; ++i) {
        bytes += piles[i].bytes;
    }
    size_t full = expect_rss_bytes();
    threads_start(freers, FREERS, freer, 0);
    gate_await(&freers_gate, FREERS);
    EXPECT_EQ(pthread_join(thread_start(active_one, NULL), NULL), 0);
    size_t freed = expect_rss_bytes();
    EXPECT_EQ(pthread_join(thread_start(allocate_again, NULL), NULL), 0);
    size_t again = expect_rss_bytes();
    expect_say("%zu KiB allocated: rss %zu, full %zu, freed %zu, allocated again %zu KiB\n",
               bytes >> 10, start >> 10, full >> 10, freed >> 10, again >> 10);
    if (bytes >= MEMORY_COUNTS_FROM) {
        expect_rss_at_most(full, bytes / 100 * LOST_PERCENT);
    }
    for (size_t i = 0; i < sleeper_count; ++i) {
        pile_free(&piles[i]);
    }
    gate_open(&sleepers_gate);
    gate_open(&freers_gate);
    threads_join(threads, sleeper_count);
    threads_join(freers, FREERS);
}

int main(int argc, char **argv) {
    pile_bytes = expect_arg(argc, argv, 1, 12) << 20;
    sleeper_count = expect_arg(argc, argv, 2, 8);
    activity_ms = expect_arg(argc, argv, 3, 1000);
    seed = expect_arg(argc, argv, 4, 1);
    if (sleeper_count == 0 || sleeper_count > SLEEPERS_MAX) {
        expect_skip("too many sleepers, or none");
    }
    expect_say("sleeping_owner_test %zu %zu %zu %llu\n", pile_bytes >> 20, sleeper_count,
               activity_ms, (unsigned long long)seed);
    family_load();
    RUN(sleeping_owners_memory_serves_the_others);
    return expect_status();
}
