/* SPDX-License-Identifier: MIT
 *
 * Huge pages are for time, not paid for with memory: is what a load holds in the kernel's present
 * mode, and in its mode "always", at most a tenth more than without huge pages? The double of the
 * operating system stands in for "always", which is a setting of the whole machine. Each load is a
 * process of its own.
 * Blocks above 1 MiB are mappings of their own, which the kernel backs by its mode, as it does with
 * any other allocator: what that comes to is said, not judged.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "api/family.h"
#include "double/os_fault.h"
#include "double/rng.h"

enum { KIBIBYTE = 1 << 10, MEBIBYTE = 1 << 20 };

/* Processes differ by a little besides. Where small blocks are dense, a heap of 8 MiB and more may
 * have the rest of one huge page untouched, which is more than a tenth of it up to 20 MiB
 * (docs/experiments/0007-huge-pages.md). */
enum { SLACK_BYTES = 256 * KIBIBYTE, DENSE_SLACK_BYTES = SLACK_BYTES + 2 * MEBIBYTE };
static const size_t UNJUDGED = SIZE_MAX / 2;

static size_t *most_bytes; /* shared with the children: the most memory they grew by */
static size_t start_bytes;

static void note_memory(void) {
    size_t grown = expect_rss_bytes() - start_bytes;
    *most_bytes = grown > *most_bytes ? grown : *most_bytes;
}

static unsigned char *block_make(size_t size, size_t written) {
    unsigned char *block = family.malloc(size);
    EXPECT(block != NULL);
    memset(block, 1, written < size ? written : size);
    return block;
}

/* --- loads -----------------------------------------------------------------------------------*/

static void *blocks[1 << 20];

/* Buffers of which only the head is used. */
static void load_sparse_large(void) {
    for (size_t i = 0; i < 2000; ++i) {
        blocks[i] = block_make(300 * KIBIBYTE, 4096);
    }
    note_memory();
}

static void load_sparse_medium(void) {
    for (size_t i = 0; i < 20000; ++i) {
        blocks[i] = block_make(30000, 1);
    }
    note_memory();
}

static void load_sparse_huge(void) {
    enum { SIZE = 5 * MEBIBYTE };
    for (size_t i = 0; i < 200; ++i) {
        unsigned char *block = block_make(SIZE, 10000);
        block[SIZE / 2] = 1;
        blocks[i] = block;
    }
    note_memory();
}

/* Small blocks, up to 40 MiB, that come and go at random. */
static void load_small_churn(void) {
    uint64_t state = 1;
    for (size_t step = 0; step < 3000000; ++step) {
        size_t place = hak_rng_next(&state) % 200000;
        size_t size = 16 + hak_rng_next(&state) % 400;
        family.free(blocks[place]);
        blocks[place] = block_make(size, size);
        if (step % 50000 == 0) {
            note_memory();
        }
    }
    note_memory();
}

/* 200 MiB of small blocks, of which one in 64 stays. */
static void load_small_survivors(void) {
    enum { COUNT = 400000, SIZE = 512, EVERY = 64 };
    for (size_t i = 0; i < COUNT; ++i) {
        blocks[i] = block_make(SIZE, SIZE);
    }
    for (size_t i = 0; i < COUNT; ++i) {
        if (i % EVERY != 0) {
            family.free(blocks[i]);
        }
    }
    family.trim(0);
    note_memory();
}

static pthread_barrier_t barrier;

static void *thread_idle(void *context) {
    for (size_t i = 0; i < 200; ++i) {
        void *block = block_make(16 + i * 8, 16 + i * 8);
        if (i % 4 != 0) {
            family.free(block);
        }
    }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return context;
}

static void load_idle_threads(void) {
    enum { COUNT = 100 };
    pthread_t threads[COUNT];
    pthread_barrier_init(&barrier, NULL, COUNT + 1);
    for (size_t i = 0; i < COUNT; ++i) {
        EXPECT_EQ(pthread_create(&threads[i], NULL, thread_idle, NULL), 0);
    }
    pthread_barrier_wait(&barrier);
    note_memory();
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < COUNT; ++i) {
        EXPECT_EQ(pthread_join(threads[i], NULL), 0);
    }
}

static void load_one_block(void) {
    blocks[0] = block_make(100, 100);
    note_memory();
}

/* --- modes -----------------------------------------------------------------------------------*/

typedef enum huge_pages { NEVER, AS_IT_IS, ALWAYS } huge_pages_t;

static void load_run(void (*load)(void), huge_pages_t mode) {
    EXPECT(prctl(PR_SET_THP_DISABLE, mode == NEVER, 0, 0, 0) == 0);
    hak_os_fault_huge_pages_always(mode == ALWAYS);
    memset(blocks, 0, sizeof blocks); /* the table itself is not counted */
    start_bytes = expect_rss_bytes();
    load();
    _exit(0);
}

static size_t measure(void (*load)(void), huge_pages_t mode) {
    *most_bytes = 0;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        load_run(load, mode);
    }
    EXPECT_CHILD(child, 0);
    return *most_bytes;
}

static void compare(const char *name, void (*load)(void), size_t slack) {
    size_t never = measure(load, NEVER);
    size_t as_it_is = measure(load, AS_IT_IS), always = measure(load, ALWAYS);
    expect_say("  %s: never %zu KiB, as it is %zu %%, always %zu %% of that\n", name, never >> 10,
               as_it_is * 100 / never, always * 100 / never);
    EXPECT(as_it_is <= never / 10 * 11 + slack);
    EXPECT(always <= never / 10 * 11 + slack);
}

static void huge_pages_of_sparse_blocks_cost_no_memory(void) {
    compare("one block", load_one_block, SLACK_BYTES);
    compare("blocks of 30 000, of each one byte", load_sparse_medium, SLACK_BYTES);
    compare("blocks of 300 KiB, of each one page", load_sparse_large, SLACK_BYTES);
    compare("blocks of 5 MiB, of each four pages", load_sparse_huge, UNJUDGED);
}

static void huge_pages_of_small_blocks_cost_a_tenth_or_the_rest_of_one(void) {
    compare("small blocks that come and go", load_small_churn, DENSE_SLACK_BYTES);
    compare("survivors of many small blocks", load_small_survivors, DENSE_SLACK_BYTES);
    compare("idle threads", load_idle_threads, DENSE_SLACK_BYTES);
}

/* The mode of the machine, for whoever reads the figures. */
static void say_mode(void) {
    char mode[64] = {0};
    int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, mode, sizeof mode - 1) <= 0) {
        expect_skip("this kernel has no transparent huge pages");
    }
    close(fd);
    expect_say("transparent huge pages: %s", mode);
}

int main(void) {
    family_load();
    most_bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (most_bytes == MAP_FAILED || prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) != 0) {
        expect_skip("huge pages cannot be switched off for a process here");
    }
    say_mode();
    expect_watchdog();
    RUN(huge_pages_of_sparse_blocks_cost_no_memory);
    RUN(huge_pages_of_small_blocks_cost_a_tenth_or_the_rest_of_one);
    return expect_status();
}
