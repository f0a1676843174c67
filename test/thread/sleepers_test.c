/* SPDX-License-Identifier: MIT
 *
 * What does a thread that sleeps cost? Threads have bursts of work, keep a part of what they
 * allocated and fall asleep; another thread goes on. RSS and live bytes are printed.
 * Arguments: few, many or bursts (see `kinds`; default few), threads (those of the kind),
 * milliseconds of activity (1 000), seed (1).
 */
#include "thread/block.h"
#include "thread/gate.h"

enum { THREADS_MAX = 2000, SIZE_LEAST = 16, SIZE_MOST = 1024, BURSTS = 3 };

/* RSS in per cent of the live bytes: what holds today, with room, not what is wished for. Measured
 * with two CPUs: few 810 to 1 050, many 145, bursts 190. */
enum { FEW_PERCENT = 1400, MANY_PERCENT = 180, BURSTS_PERCENT = 260 };

/* Kept and freed by each thread. With fewer threads nothing is asserted: the fixed cost of a
 * process is what would be measured. */
typedef struct kind {
    const char *name;
    size_t thread_count, keep_bytes, burst_bytes, percent;
} kind_t;

static const kind_t kinds[] = {
    {"few", 64, 256 << 10, 8 << 20, FEW_PERCENT},
    {"many", 1000, 64 << 10, 0, MANY_PERCENT},
    {"bursts", 1000, 64 << 10, 512 << 10, BURSTS_PERCENT},
};
static const kind_t *kind = &kinds[0];

static gate_t sleepers = GATE_CLOSED;
static _Atomic size_t live_bytes;
static size_t thread_count, activity_ms;
static uint64_t seed;

/* The blocks are a list: a table of them would be memory of the allocator's that is not counted. */
typedef struct link {
    struct link *next;
    size_t size;
} link_t;

static size_t links_make(link_t **list, size_t bytes, uint64_t *state) {
    size_t made = 0;
    while (made < bytes) {
        size_t size = SIZE_LEAST + expect_random(state) % (SIZE_MOST + 1 - SIZE_LEAST);
        link_t *link = (link_t *)family.malloc(size);
        EXPECT(link != NULL);
        memset(link, 1, size);
        *link = (link_t){.next = *list, .size = size};
        *list = link;
        made += size;
    }
    return made;
}

static void links_free(link_t **list) {
    while (*list != NULL) {
        link_t *link = *list;
        EXPECT(link->size >= SIZE_LEAST && link->size <= SIZE_MOST);
        *list = link->next;
        family.free(link);
    }
}

static void *sleeper(void *argument) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + (uintptr_t)argument + 1;
    link_t *kept = NULL, *burst = NULL;
    size_t live = 0;
    for (size_t i = 0; i < BURSTS; ++i) {
        live += links_make(&kept, kind->keep_bytes / BURSTS, &state);
        links_make(&burst, kind->burst_bytes, &state);
        links_free(&burst);
    }
    atomic_fetch_add(&live_bytes, live);
    gate_sleep(&sleepers);
    links_free(&kept);
    return NULL;
}

static void sleepers_cost_no_more_than_known(void) {
    static pthread_t threads[THREADS_MAX];
    size_t before = expect_rss_bytes();
    threads_start(threads, thread_count, sleeper, 0);
    gate_await(&sleepers, thread_count);
    size_t asleep = expect_rss_bytes();
    gate_activity(activity_ms);
    size_t after = expect_rss_bytes();
    size_t live = atomic_load(&live_bytes);
    expect_say("%zu threads, live %zu KiB, rss before %zu, asleep %zu, later %zu KiB: %zu %%\n",
               thread_count, live >> 10, before >> 10, asleep >> 10, after >> 10,
               after * 100 / (live + 1));
    if (thread_count >= kind->thread_count) {
        /* what is held back, and where, is as much again */
        expect_rss_at_most(0, live / 100 * kind->percent * (expect_is_hardened() ? 2 : 1));
    }
    gate_open(&sleepers);
    threads_join(threads, thread_count);
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        kind = argc > 1 && strcmp(argv[1], kinds[i].name) == 0 ? &kinds[i] : kind;
    }
    thread_count = expect_arg(argc, argv, 2, kind->thread_count);
    activity_ms = expect_arg(argc, argv, 3, 1000);
    seed = expect_arg(argc, argv, 4, 1);
    if (thread_count == 0 || thread_count > THREADS_MAX) {
        expect_skip("too many threads, or none");
    }
    expect_say("sleepers_test %s %zu %zu %llu\n", kind->name, thread_count, activity_ms,
               (unsigned long long)seed);
    family_load();
    RUN(sleepers_cost_no_more_than_known);
    return expect_status();
}
