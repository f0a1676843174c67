/* SPDX-License-Identifier: MIT
 *
 * thread.allocated and its kin: what a thread holds is exact, and a block that it takes or frees
 * between two questions is seen. prof.*: sampling by jemalloc's names. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "compat/mallctl.h"
#include "double/single_step.h"

enum { BLOCKS = 5000, LARGE = 300000 };

static uint64_t tally(const char *name) {
    uint64_t value = 0;
    READ(name, value);
    return value;
}

static uint64_t held(void) {
    uint64_t allocated = tally("thread.allocated");
    return allocated - tally("thread.deallocated");
}

static void one_block_is_seen_as_it_comes_and_goes(void) {
    static const size_t sizes[] = {1, 100, 5000, 40000, LARGE, 5 << 20};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t allocated = tally("thread.allocated"), freed = tally("thread.deallocated");
        void *volatile block = malloc(sizes[i]);
        EXPECT(tally("thread.allocated") >= allocated + sizes[i]);
        EXPECT_EQ(tally("thread.deallocated"), freed);
        allocated = tally("thread.allocated");
        free(block);
        EXPECT_EQ(tally("thread.allocated"), allocated);
        EXPECT(tally("thread.deallocated") >= freed + sizes[i]);
    }
}

/* With the check value at a small block's end in the hardened library. */
static size_t whole_bytes(void *block) {
    return malloc_usable_size(block) + (expect_is_hardened() ? 8 : 0);
}

static void the_difference_is_what_the_thread_holds(void) {
    static void *block[BLOCKS];
    uint64_t before = held(), bytes = 0;
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            block[i] = malloc(1 + i * 37 % 3000);
            bytes += whole_bytes(block[i]);
        }
        EXPECT_EQ(held(), before + bytes);
        for (unsigned i = 0; i < BLOCKS; i++) {
            bytes -= whole_bytes(block[i]);
            free(block[i]);
        }
        EXPECT_EQ(held(), before);
    }
    uint64_t allocated = tally("thread.allocated");
    EXPECT(allocated - tally("thread.deallocated") == before && allocated > 3 * BLOCKS * 1000);
    block[0] = realloc(malloc(LARGE), 3 * LARGE);
    EXPECT_EQ(held(), before + malloc_usable_size(block[0]));
    free(block[0]);
}

static void *volatile passed;

static void *other_thread(void *unused) {
    uint64_t *word = NULL, *freed = NULL;
    EXPECT(held() <= 4096); /* what the thread's start took */
    READ("thread.allocatedp", word);
    READ("thread.deallocatedp", freed);
    uint64_t before = *freed;
    free(passed);
    EXPECT(tally("thread.deallocated") >= before + 1000);
    passed = malloc(1000);
    uint64_t now = tally("thread.allocated"); /* sets the words, too */
    EXPECT(*word == now && *freed >= before + 1000);
    return unused;
}

static void each_thread_has_its_own(void) {
    pthread_t thread;
    uint64_t *word = NULL, *again = NULL, allocated = tally("thread.allocated");
    READ("thread.allocatedp", word);
    EXPECT_EQ(*word, allocated);
    for (int i = 0; i < 3; i++) {
        passed = malloc(1000);
        EXPECT_EQ(pthread_create(&thread, NULL, other_thread, NULL), 0);
        EXPECT_EQ(pthread_join(thread, NULL), 0);
        free(passed);
    }
    READ("thread.allocatedp", again);
    EXPECT(word == again);
    EXPECT_EQ(mallctl("thread.allocated", NULL, NULL, &allocated, sizeof allocated), EPERM);
}

static pthread_barrier_t barrier;

static void *crowd_thread(void *unused) {
    EXPECT(held() <= 4096); /* not that of a thread that had its memory before */
    free(malloc(LARGE));
    pthread_barrier_wait(&barrier); /* all live at once */
    return unused;
}

static void trim_drops_that_of_ended_threads(void) {
    enum { THREADS = 20 };
    pthread_t thread[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < THREADS; i++) {
            EXPECT_EQ(pthread_create(&thread[i], NULL, crowd_thread, NULL), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            EXPECT_EQ(pthread_join(thread[i], NULL), 0);
        }
        malloc_trim(0);
    }
}

/* A bin holds at most 128 KiB, by default. */
static void the_words_follow_without_a_question(void) {
    enum { COUNT = 10000, SIZE = 1000, BIN = 256 << 10 };
    static void *block[COUNT];
    uint64_t *word = NULL, *freed = NULL;
    READ("thread.allocatedp", word);
    READ("thread.deallocatedp", freed);
    uint64_t before = *word, before_freed = *freed;
    block[0] = malloc(LARGE);
    EXPECT(*word >= before + LARGE && *freed == before_freed);
    free(block[0]);
    EXPECT(*freed >= before_freed + LARGE);
    before = *word, before_freed = *freed;
    for (unsigned i = 0; i < COUNT; i++) {
        block[i] = malloc(SIZE);
    }
    EXPECT(*word >= before + COUNT * SIZE - BIN);
    for (unsigned i = 0; i < COUNT; i++) {
        free(block[i]);
    }
    EXPECT(*freed >= before_freed + COUNT * SIZE - BIN);
}

#if defined(__x86_64__)

enum { MOST_STEPS = 8000 };
enum { EACH_STEP = 7 }; /* the update, less what it counts first, is longer */

static volatile bool is_stepping;
static volatile unsigned steps_left;

static void step(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)info;
    if (is_stepping && --steps_left == 0) {
        tally("thread.allocated");
        is_stepping = false;
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~STEP_FLAG;
    }
}

static inline __attribute__((always_inline)) void stepping(bool is_on) {
    steps_switch(is_on);
    is_stepping = is_on;
}

static unsigned steps_of_both_calls(void) {
    steps_left = 0; /* none of them asks */
    stepping(true);
    free(malloc(LARGE));
    stepping(false);
    return 0u - steps_left;
}

/* In an instruction of both calls, every 7th in turn: the square of their number, which is some
 * thousands unless checks are compiled in. */
static void a_signal_handler_that_asks_counts_nothing_twice(void) {
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO}, before;
    uint64_t held_before = held();
    bool is_inside = true;
    sigaction(SIGTRAP, &action, &before);
    is_inside = steps_of_both_calls() <= MOST_STEPS;
    for (unsigned steps = 1; is_inside; steps += EACH_STEP) {
        steps_left = steps;
        stepping(true);
        void *volatile block = malloc(LARGE);
        stepping(false);
        is_inside = steps_left == 0;
        EXPECT_EQ(held(), held_before + malloc_usable_size(block));
        steps_left = steps;
        stepping(true);
        free(block);
        stepping(false);
        is_inside = is_inside || steps_left == 0;
        EXPECT_EQ(held(), held_before);
    }
    sigaction(SIGTRAP, &before, NULL);
}

#endif

static void sampling_begins_and_ends_by_prof_active(void) {
    bool is_active = true, on = true, off = false;
    size_t log2 = 12, too_large = 64;
    READ("prof.active", is_active);
    EXPECT(!is_active);
    if (expect_is_hardened()) { /* its options are sealed */
        EXPECT_EQ(WRITE("prof.active", on), EPERM);
        return;
    }
    EXPECT_EQ(read_size("prof.lg_sample"), 19);
    EXPECT_EQ(WRITE("prof.reset", too_large), EINVAL);
    EXPECT_EQ(WRITE("prof.reset", log2), 0);
    EXPECT_EQ(read_size("prof.lg_sample"), 12);
    EXPECT_EQ(WRITE("prof.active", on), 0);
    READ("prof.active", is_active);
    EXPECT(is_active);
    for (int i = 0; i < 1000; i++) { /* 1 MB: 240 samples */
        passed = malloc(1000);
    }
    EXPECT_EQ(WRITE("prof.active", off), 0);
    READ("prof.active", is_active);
    EXPECT(!is_active);
}

static size_t dumped(const char *path, char *head, size_t bytes) {
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(head, 1, bytes - 1, file) : 0;
    head[length] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    unlink(path);
    return length;
}

static void profiles_are_dumped_for_jeprof(void) {
    char folder[] = "/tmp/hakmem-prof-XXXXXX", path[200], head[4000];
    const char *name = path, *none = "/nowhere/file";
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/named", folder);
    EXPECT_EQ(WRITE("prof.dump", name), 0);
    EXPECT(dumped(path, head, sizeof head) > 20 && strncmp(head, "heap_v2/1\n  t*: ", 16) == 0);
    EXPECT(expect_is_hardened() || strstr(head, "\n@ 0x") != NULL);
    EXPECT_EQ(WRITE("prof.dump", none), EFAULT);
    EXPECT_EQ(WRITE("prof.prefix", name), 0);
    for (int i = 0; i < 2; i++) {
        char numbered[300];
        EXPECT_EQ(mallctl("prof.dump", NULL, NULL, NULL, 0), 0);
        snprintf(numbered, sizeof numbered, "%s.%d.%d.m%d.heap", path, (int)getpid(), i, i);
        EXPECT(dumped(numbered, head, sizeof head) > 20);
    }
    EXPECT_EQ(mallctl("prof.reset", NULL, NULL, NULL, 0), 0);
    EXPECT_EQ(rmdir(folder), 0);
}

int main(void) {
    RUN(one_block_is_seen_as_it_comes_and_goes);
    RUN(the_difference_is_what_the_thread_holds);
    RUN(each_thread_has_its_own);
    RUN(trim_drops_that_of_ended_threads);
    RUN(the_words_follow_without_a_question);
#if defined(__x86_64__)
    RUN(a_signal_handler_that_asks_counts_nothing_twice);
#endif
    RUN(sampling_begins_and_ends_by_prof_active);
    RUN(profiles_are_dumped_for_jeprof);
    return expect_status();
}
