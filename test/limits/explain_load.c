/* SPDX-License-Identifier: MIT
 *
 * Fills the process's memory in one way, writes why RSS is high as JSON and then "done" to standard
 * output, and waits until standard input ends: explain_test.py looks at it from outside meanwhile.
 *
 *   explain_load leak|survivors|caches|remote|spans|huge|padding */
#include <hakmem/hakmem.h>
#include <hakmem/observe.h>
#include <pthread.h>

#include "api/expect.h"
#include "api/still_clock.h"

enum { MIB = 1 << 20, MOST = 1 << 17 };

static void *block[MOST];

static void take(size_t first, size_t count, size_t bytes, size_t touched) {
    for (size_t i = first; i < first + count; i++) {
        block[i] = malloc(bytes);
        EXPECT(block[i] != NULL);
        memset(block[i], 1, touched);
    }
}

static void give(size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        free(block[i]);
    }
}

static void leak(void) {
    take(0, 32768, 1000, 1000);
}

/* One in each OS page stays. */
static void survivors(void) {
    take(0, MOST, 504, 504);
    for (size_t i = 0; i < MOST; i++) {
        if (i % 8 != 0) {
            free(block[i]);
        }
    }
}

/* --- threads that stay, one running at a time
 * ----------------------------------------------------- */

typedef struct turn {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned now;
} turn_t;

static turn_t turn = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void turn_wait(unsigned number) {
    pthread_mutex_lock(&turn.lock);
    while (turn.now != number) {
        pthread_cond_wait(&turn.changed, &turn.lock);
    }
    pthread_mutex_unlock(&turn.lock);
}

static void turn_pass(void) {
    pthread_mutex_lock(&turn.lock);
    turn.now++;
    pthread_cond_broadcast(&turn.changed);
    pthread_mutex_unlock(&turn.lock);
}

static void start(unsigned count, void *(*run)(void *)) {
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, run, (void *)i) == 0);
    }
}

enum { CACHE_THREADS = 4, CACHE_BYTES = MIB, CACHE_ROUNDS = 40 };

static void *cache(void *number) {
    static const size_t sizes[] = {64, 256, 1000, 4000, 16000};
    turn_wait((unsigned)(size_t)number);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes * CACHE_ROUNDS; i++) {
        size_t bytes = sizes[i / CACHE_ROUNDS], count = CACHE_BYTES / bytes;
        take(0, count, bytes, bytes);
        give(0, count);
    }
    turn_pass();
    turn_wait(~0u);
    return NULL;
}

/* The heap was larger before: a thread flushes its bins when it is about to be larger than ever. */
static void caches(void) {
    take(0, 100, MIB / 2, 1);
    give(0, 100);
    start(CACHE_THREADS, cache);
    turn_wait(CACHE_THREADS);
}

/* Threads take in turn; then each one's follower, which has another owner, frees. The clock
 * stands still, so nobody drains what it sends. */
enum { PAIRS = 16, PAIR_BLOCKS = 160, PAIR_BLOCK_BYTES = 16000 };

static void *remote_thread(void *number) {
    unsigned self = (unsigned)(size_t)number, pair = self / 2;
    bool is_freeing = self % 2 != 0;
    turn_wait(self); /* its first allocation gives it an owner: in this order */
    free(malloc(100));
    turn_pass();
    turn_wait(2 * PAIRS + pair + (is_freeing ? PAIRS : 0));
    if (is_freeing) {
        give(pair * PAIR_BLOCKS, PAIR_BLOCKS);
    } else {
        take(pair * PAIR_BLOCKS, PAIR_BLOCKS, PAIR_BLOCK_BYTES, PAIR_BLOCK_BYTES);
    }
    turn_pass();
    turn_wait(~0u);
    return NULL;
}

static void remote(void) {
    start(2 * PAIRS, remote_thread);
    turn_wait(4 * PAIRS);
}

/* --- large blocks, huge pages
 * --------------------------------------------------------------------- */

static void spans(void) {
    take(0, 48, MIB - 16, MIB - 16);
    give(0, 48);
}

static void huge(void) {
    take(0, 8, 8 * MIB, 8 * MIB);
    give(0, 8);
}

/* Much is in use, but not touched; then small blocks, until a huge page is opened for them. */
static void padding(void) {
    /* whole superslabs; those of the hardened library have a unit on both sides */
    const char *flavour = getenv("HAKMEM_FLAVOUR");
    bool is_hardened = flavour != NULL && strcmp(flavour, "hardened") == 0;
    take(0, is_hardened ? 12 : 11, is_hardened ? MIB / 16 * 14 : MIB - 16, 0);
    for (size_t i = 0; i < 1024; i++) {
        size_t before = expect_rss_bytes();
        take(i, 1, 8100, 0);
        if (expect_rss_bytes() > before + MIB) {
            return;
        }
    }
    expect_skip("the kernel gave no huge page");
}

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"leak", leak},   {"survivors", survivors}, {"caches", caches},   {"remote", remote},
    {"spans", spans}, {"huge", huge},           {"padding", padding},
};

int main(int argc, char **argv) {
    char c;
    EXPECT(argc == 2);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            hak_explain_json(1);
            EXPECT(write(1, "done\n", 5) == 5);
            return read(0, &c, 1) == 0 ? 0 : 1;
        }
    }
    fprintf(stderr, "explain_load: no such scenario: %s\n", argv[1]);
    return 1;
}
