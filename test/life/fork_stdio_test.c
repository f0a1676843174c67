/* SPDX-License-Identifier: MIT
 *
 * fork while one thread flushes all streams and others allocate with a stream locked: does it come
 * back in both processes, and can the child go on to use streams? The C library's fork waits for
 * the lock of the list of streams, which the flush has; the flush waits for a stream; who has that
 * waits for the allocator.
 */
#include <sched.h>

#include "thread/block.h"

enum { FORKS = 40, LOCKERS = 2, KEPT = 50, STEPS = 20 };

static atomic_bool is_over;
static FILE *streams[LOCKERS];

static void *flush_all(void *unused) {
    while (!atomic_load(&is_over)) {
        fflush(NULL);
        sched_yield(); /* the lock is not fair: the fork would wait for long */
    }
    return unused;
}

static void *allocate_with_a_stream_locked(void *argument) {
    FILE *stream = streams[(uintptr_t)argument];
    uint64_t state = (uintptr_t)argument + 1;
    block_t *blocks[KEPT] = {NULL};
    while (!atomic_load(&is_over)) {
        flockfile(stream);
        putc_unlocked('x', stream);
        blocks_churn(blocks, KEPT, STEPS, &state);
        family.free(family.malloc(70000 + expect_random(&state) % 65536));
        funlockfile(stream);
    }
    blocks_unmake(blocks, KEPT, &state);
    return NULL;
}

static void use_streams(void) {
    FILE *stream = fopen("/dev/null", "w");
    EXPECT(stream != NULL);
    EXPECT(fputs("text", stream) >= 0);
#if defined(__GLIBC__) /* musl's child keeps the streams locked that other threads had */
    EXPECT_EQ(fflush(NULL), 0);
#endif
    EXPECT_EQ(fclose(stream), 0);
}

static void *use_streams_in_thread(void *unused) {
    use_streams();
    return unused;
}

static void child_main(void) {
    expect_watchdog();
    use_streams();
    pthread_join(thread_start(use_streams_in_thread, NULL), NULL); /* nobody kept a lock */
    _exit(0);
}

static void fork_once(void) {
    pid_t child = fork();
    if (child == 0) {
        child_main();
    }
    EXPECT_CHILD(child, 0);
}

static void fork_beside_a_flush_of_all_streams_comes_back(void) {
    pthread_t flusher, lockers[LOCKERS];
    for (size_t i = 0; i < LOCKERS; ++i) {
        streams[i] = fopen("/dev/null", "w");
        EXPECT(streams[i] != NULL);
    }
    flusher = thread_start(flush_all, NULL);
    threads_start(lockers, LOCKERS, allocate_with_a_stream_locked, 0);
    for (size_t i = 0; i < FORKS; ++i) {
        fork_once();
    }
    atomic_store(&is_over, true);
    threads_join(lockers, LOCKERS);
    EXPECT_EQ(pthread_join(flusher, NULL), 0);
}

/* Then the C library leaves the lock alone, and so must we. */
static void fork_of_one_thread_leaves_streams_usable(void) {
    fork_once();
    use_streams();
    pthread_join(thread_start(use_streams_in_thread, NULL), NULL);
    fork_once();
}

int main(void) {
    family_load();
    expect_watchdog();
    RUN(fork_of_one_thread_leaves_streams_usable);
    RUN(fork_beside_a_flush_of_all_streams_comes_back);
    return expect_status();
}
