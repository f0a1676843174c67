/* SPDX-License-Identifier: MIT
 *
 * Producers that only allocate and one consumer that only frees: it has no use for the memory it
 * gets back, the producers have. Does the memory return to them, or does the peak grow with what
 * has passed through? Blocks travel in static rings; the consumer never allocates.
 * Arguments: MiB live at the plateau (default 370), how often that passes through (5), seed (1).
 */
#include "thread/block.h"

enum { PRODUCERS = 16, RING_SLOTS = 1 << 17, BATCH = 512, SIZE_LEAST = 64, SIZE_MOST = 535 };

/* The peak of the process over what the program asked for. Below MEMORY_COUNTS_FROM the fixed cost
 * of 17 threads is what would be measured. */
enum { PEAK_PERCENT = 125, MEMORY_COUNTS_FROM = 256 << 20 };

/* Only the producer writes `made`, only the consumer `taken`. */
typedef struct ring {
    _Alignas(128) _Atomic size_t made;
    _Alignas(128) _Atomic size_t taken;
    _Atomic size_t requested; /* bytes ever */
    block_t *slots[RING_SLOTS];
} ring_t;

static ring_t rings[PRODUCERS];
static _Atomic size_t freed_bytes, live_most;
static _Atomic unsigned producers_left;
static size_t plateau_bytes, pass_count;
static uint64_t seed;

static size_t live_now(void) {
    size_t freed = atomic_load(&freed_bytes); /* before what was made: never too little */
    size_t made = 0;
    for (size_t i = 0; i < PRODUCERS; ++i) {
        made += atomic_load_explicit(&rings[i].requested, memory_order_relaxed);
    }
    return made - freed;
}

static void note_live(size_t live) {
    size_t most = atomic_load(&live_most);
    while (live > most && !atomic_compare_exchange_weak(&live_most, &most, live)) {
    }
}

static block_t *produce_one(uint64_t *state) {
    uint64_t draw = expect_random(state);
    size_t size = SIZE_LEAST + draw % (SIZE_MOST + 1 - SIZE_LEAST);
    block_t *block = (block_t *)family.malloc(size);
    EXPECT(block != NULL);
    block_stamp(block, size, (uint32_t)(draw >> 32));
    return block;
}

/* The plateau is kept by all in common: whoever finds it reached waits for the consumer. */
static void *produce(void *argument) {
    ring_t *ring = (ring_t *)argument;
    uint64_t state = seed * 0x9e3779b97f4a7c15u + (uint64_t)(ring - rings) + 1;
    size_t share = plateau_bytes / PRODUCERS * pass_count;
    size_t made = 0;
    for (size_t total = 0; total < share; ++made) {
        while (made % 16 == 0 && live_now() >= plateau_bytes) {
            usleep(100);
        }
        while (made - atomic_load_explicit(&ring->taken, memory_order_acquire) == RING_SLOTS) {
            usleep(100);
        }
        block_t *block = produce_one(&state);
        total += block->size;
        atomic_store_explicit(&ring->requested, total, memory_order_relaxed);
        ring->slots[made % RING_SLOTS] = block;
        atomic_store_explicit(&ring->made, made + 1, memory_order_release);
    }
    atomic_fetch_sub(&producers_left, 1);
    return NULL;
}

static size_t consume_some(ring_t *ring) {
    size_t at = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    size_t end = atomic_load_explicit(&ring->made, memory_order_acquire);
    size_t bytes = 0;
    for (end = end - at > BATCH ? at + BATCH : end; at < end; ++at) {
        block_t *block = ring->slots[at % RING_SLOTS];
        block_check(block);
        bytes += block->size;
        family.free(block);
    }
    atomic_store_explicit(&ring->taken, at, memory_order_release);
    atomic_fetch_add(&freed_bytes, bytes);
    return bytes;
}

/* Frees only near the plateau, so that it is held; all of it once a producer has ended: the rings
 * of the others need not have room for so much. */
static void *consume(void *argument) {
    (void)argument;
    for (;;) {
        unsigned left = atomic_load(&producers_left);
        bool is_over = left < PRODUCERS;
        size_t live = live_now();
        note_live(live);
        if (live < plateau_bytes - plateau_bytes / 10 && !is_over) {
            usleep(200);
            continue;
        }
        size_t bytes = 0;
        for (size_t i = 0; i < PRODUCERS; ++i) {
            bytes += consume_some(&rings[i]);
        }
        if (bytes == 0 && left == 0) {
            return NULL;
        }
    }
}

static size_t peak_rss_bytes(void) {
    static char text[8192];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    EXPECT(length > 0);
    const char *line = strstr(text, "VmHWM:");
    EXPECT(line != NULL);
    return (size_t)strtoull(line + 6, NULL, 10) << 10;
}

static void run_all(void) {
    pthread_t threads[PRODUCERS];
    atomic_store(&producers_left, PRODUCERS);
    pthread_t consumer = thread_start(consume, NULL);
    for (size_t i = 0; i < PRODUCERS; ++i) {
        threads[i] = thread_start(produce, &rings[i]);
    }
    threads_join(threads, PRODUCERS);
    EXPECT_EQ(pthread_join(consumer, NULL), 0);
    EXPECT_EQ(live_now(), 0);
}

static void free_only_consumer_returns_memory_to_the_producers(void) {
    memset(rings, 0xff, sizeof rings); /* touched now, so that they are not in the difference */
    memset(rings, 0, sizeof rings);
    size_t before = expect_rss_bytes();
    run_all();
    size_t peak = peak_rss_bytes() - before;
    size_t live = atomic_load(&live_most);
    expect_say("live at the plateau %zu KiB, peak %zu KiB (%zu %%), passed %zu times\n", live >> 10,
               peak >> 10, peak * 100 / live, pass_count);
    if (plateau_bytes >= MEMORY_COUNTS_FROM && !EXPECT_SANITIZED && !expect_is_emulated()) {
        EXPECT(live >=
               plateau_bytes - plateau_bytes / 10); /* less may be over before it is reached */
        EXPECT(peak <= live / 100 * PEAK_PERCENT);
    }
}

int main(int argc, char **argv) {
    plateau_bytes = expect_arg(argc, argv, 1, 370) << 20;
    pass_count = expect_arg(argc, argv, 2, 5);
    seed = expect_arg(argc, argv, 3, 1);
    if (plateau_bytes == 0 || pass_count == 0) {
        expect_skip("nothing to pass on");
    }
    expect_say("free_only_test %zu %zu %llu\n", plateau_bytes >> 20, pass_count,
               (unsigned long long)seed);
    family_load();
    RUN(free_only_consumer_returns_memory_to_the_producers);
    return expect_status();
}
