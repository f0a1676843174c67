/* SPDX-License-Identifier: MIT
 *
 * Everything threads may do, at random and at once: start, end, allocate, resize, align, free their
 * own blocks and each other's, allocate in a signal's handler, trim, fork. Every block knows what
 * is in it. Arguments: operations, or seconds with an s behind, 0s until SIGTERM (default 400 000),
 * threads at a time (8), seed (1; 0: one that is drawn and printed), plugin (default none). The
 * seed repeats what the threads do, not when.
 */
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "thread/mailbox.h"

enum { THREADS_MAX = 64, OWN_COUNT = 256, LIFE_MOST = 8000, LEGACY_COUNT = 16 };

typedef struct life {
    size_t slot, number, operations;
    uint64_t state;
    block_t *own[OWN_COUNT];
} life_t;

static size_t operation_count, second_count, thread_count;
static bool is_by_time;
static uint64_t seed;
static atomic_bool is_over;
static _Atomic size_t lives, forks;

static size_t draw_below(life_t *life, size_t limit) {
    return expect_random(&life->state) % limit;
}

static block_t **draw_own(life_t *life) {
    return &life->own[draw_below(life, OWN_COUNT)];
}

/* --- operations ------------------------------------------------------------------------------- */

static void op_replace(life_t *life) {
    block_t **own = draw_own(life);
    block_unmake(*own, &life->state);
    *own = block_make(&life->state);
}

static void op_exchange(life_t *life) {
    block_t **own = draw_own(life);
    *own = mailbox_swap(*own, &life->state);
}

static void op_free(life_t *life) {
    block_t **own = draw_own(life);
    block_unmake(*own, &life->state);
    *own = NULL;
}

/* Up and down; the part that both sizes have must be as it was. */
static void op_resize(life_t *life) {
    block_t **own = draw_own(life);
    if (*own == NULL) {
        return;
    }
    block_check(*own);
    size_t before = (*own)->size;
    uint32_t stamp = (*own)->seed;
    size_t after = block_random_size(&life->state);
    block_t *block = (block_t *)family.realloc(*own, after);
    EXPECT(block != NULL);
    EXPECT_EQ(block->seed, stamp);
    size_t kept = (before < after ? before : after) - sizeof(block_t);
    for (size_t at = 0; at < kept; at += block_stride(before)) {
        EXPECT_EQ(block->bytes[at], (unsigned char)(stamp + at));
    }
    block_stamp(block, after, stamp + 1);
    *own = block;
}

static void op_align(life_t *life) {
    block_t **own = draw_own(life);
    block_unmake(*own, &life->state);
    size_t alignment = (size_t)16 << draw_below(life, 13);
    size_t size = block_random_size(&life->state);
    void *block = NULL;
    if (draw_below(life, 2) == 0) {
        EXPECT_EQ(family.posix_memalign(&block, alignment, size), 0);
    } else {
        block = family.aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    }
    EXPECT(block != NULL && (uintptr_t)block % alignment == 0);
    EXPECT(family.usable_size(block) >= size);
    *own = (block_t *)block;
    block_stamp(*own, size, (uint32_t)alignment);
}

/* Large enough for a mapping of its own; zeros as promised. */
static void op_huge(life_t *life) {
    block_t **own = draw_own(life);
    block_unmake(*own, &life->state);
    size_t size = ((size_t)256 << 10) + draw_below(life, (size_t)4 << 20);
    unsigned char *block = (unsigned char *)family.calloc(size, 1);
    EXPECT(block != NULL);
    for (size_t at = 0; at < size; at += 65521) {
        EXPECT_EQ(block[at], 0);
    }
    *own = (block_t *)(void *)block;
    block_stamp(*own, size, (uint32_t)size);
}

/* Many of one size, half of them given to others. */
static void op_burst(life_t *life) {
    enum { BURST = 600 };
    block_t *blocks[BURST];
    size_t size = sizeof(block_t) + draw_below(life, 700);
    for (size_t i = 0; i < BURST; ++i) {
        blocks[i] = (block_t *)family.malloc(size);
        EXPECT(blocks[i] != NULL);
        block_stamp(blocks[i], size, (uint32_t)i);
    }
    for (size_t i = 0; i < BURST; ++i) {
        block_t *block = i % 2 == 0 ? blocks[i] : mailbox_swap(blocks[i], &life->state);
        block_unmake(block, &life->state);
    }
}

static void op_trim(life_t *life) {
    (void)life;
    if (family.trim != NULL) {
        family.trim(0);
    }
}

static void op_rest(life_t *life) {
    usleep((useconds_t)draw_below(life, 2000));
}

/* The child frees what it inherited; it starts no
 * thread, which ThreadSanitizer does not support. */
static void op_fork(life_t *life) {
    if (expect_is_emulated()) {
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        expect_watchdog();
        for (size_t i = 0; i < OWN_COUNT; ++i) {
            op_replace(life);
        }
        mailbox_empty_all(&life->state);
        op_burst(life);
        op_trim(life);
        _exit(0);
    }
    EXPECT_CHILD(child, 0);
    atomic_fetch_add(&forks, 1);
}

/* The signal comes while the thread waits for nothing and allocates nothing. */
static void allocate_in_handler(int signal) {
    void *block[20];
    for (size_t i = 0; i < 20; ++i) {
        block[i] = family.malloc(100 + i * 200);
        EXPECT(block[i] != NULL);
        memset(block[i], signal, 100);
    }
    for (size_t i = 0; i < 20; ++i) {
        family.free(block[i]);
    }
}

static void end_in_handler(int signal) {
    (void)signal;
    atomic_store(&is_over, true);
}

static void op_signal(life_t *life) {
    (void)life;
    EXPECT_EQ(raise(SIGUSR1), 0);
}

typedef struct operation {
    void (*perform)(life_t *life);
    unsigned weight; /* in 20 000 */
} operation_t;

static const operation_t operations[] = {
    {op_replace, 8990}, {op_exchange, 5000}, {op_free, 2500}, {op_resize, 2000},
    {op_align, 1400},   {op_burst, 60},      {op_rest, 20},   {op_huge, 11},
    {op_trim, 3},       {op_fork, 3},        {op_signal, 13},
};

static void perform_one(life_t *life) {
    size_t draw = draw_below(life, 20000);
    const operation_t *operation = operations;
    for (; draw >= operation->weight; ++operation) {
        draw -= operation->weight;
    }
    operation->perform(life);
}

/* --- lives ------------------------------------------------------------------------------------ */

/* Some blocks are freed at the end, some stay with the slot, for the next life. */
static void *live(void *argument) {
    life_t *life = (life_t *)argument;
    for (size_t i = 0; i < life->operations; ++i) {
        perform_one(life);
        if (is_by_time && atomic_load_explicit(&is_over, memory_order_relaxed)) {
            break;
        }
    }
    for (size_t i = LEGACY_COUNT; i < OWN_COUNT; ++i) {
        block_unmake(life->own[i], &life->state);
        life->own[i] = NULL;
    }
    return NULL;
}

/* One slot has one thread at a time, a new one for each life. */
static void *keep_slot(void *argument) {
    static life_t slots[THREADS_MAX];
    size_t slot = (uintptr_t)argument;
    life_t *life = &slots[slot];
    life->state = seed * 0x9e3779b97f4a7c15u + slot + 1;
    size_t left = operation_count / thread_count;
    while (is_by_time ? !atomic_load(&is_over) : left > 0) {
        size_t most = is_by_time || left > LIFE_MOST ? LIFE_MOST : left;
        life->operations = 1 + draw_below(life, most);
        left -= is_by_time ? 0 : life->operations;
        EXPECT_EQ(pthread_join(thread_start(live, life), NULL), 0);
        atomic_fetch_add(&lives, 1);
    }
    for (size_t i = 0; i < LEGACY_COUNT; ++i) {
        block_unmake(life->own[i], &life->state);
        life->own[i] = NULL;
    }
    return NULL;
}

static void stress_of_everything_at_once_keeps_contents(void) {
    pthread_t keepers[THREADS_MAX];
    threads_start(keepers, thread_count, keep_slot, 0);
    time_t end = time(NULL) + (time_t)second_count;
    while (is_by_time && !atomic_load(&is_over) && (second_count == 0 || time(NULL) < end)) {
        usleep(100000); /* signals end it early */
    }
    atomic_store(&is_over, true);
    threads_join(keepers, thread_count);
    uint64_t state = seed + 1;
    mailbox_empty_all(&state);
    expect_say("%zu lives, %zu forks, rss %zu KiB\n", atomic_load(&lives), atomic_load(&forks),
               expect_rss_bytes() >> 10);
}

int main(int argc, char **argv) {
    size_t amount = expect_arg(argc, argv, 1, 400000);
    is_by_time = argc > 1 && strchr(argv[1], 's') != NULL;
    second_count = is_by_time ? amount : 0;
    operation_count = amount;
    thread_count = expect_arg(argc, argv, 2, 8);
    seed = expect_arg(argc, argv, 3, 1);
    if (thread_count == 0 || thread_count > THREADS_MAX) {
        expect_skip("too many threads, or none");
    }
    if (seed == 0) {
        seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    }
    expect_say("stress_test %zu%s %zu %llu\n", amount, is_by_time ? "s" : "", thread_count,
               (unsigned long long)seed);
    family_load();
    signal(SIGUSR1, allocate_in_handler);
    signal(SIGTERM, end_in_handler);
    RUN(stress_of_everything_at_once_keeps_contents);
    return expect_status();
}
