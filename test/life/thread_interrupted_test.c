/* SPDX-License-Identifier: MIT
 *
 * A thread that ends in a signal handler (pthread_exit) in the middle of malloc or free: after each
 * of its instructions in turn, as far as no lock is held, which the processor's single steps tell.
 * Nobody misused anything, so nothing may be reported, and others go on. Blocks of that thread's
 * lists may be lost.
 */
#include <ucontext.h>

#include "double/audit.h"
#include "double/single_step.h"
#include "front/tcache.h"
#include "hakmem/hakmem.h"
#include "os/lock.h"
#include "thread/block.h"

enum { BLOCKS = 32, SMALL = 100, EACH_STEP = 50, SAMPLES = 90 };

static void *blocks[BLOCKS];
static _Thread_local unsigned steps_left, steps_done;
static _Thread_local volatile bool is_stepping; /* not where the flags are switched */
static bool ends_in_messages;                   /* whose marks stay without their number then */

static void step(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number;
    (void)info;
    (void)context;
    if (!is_stepping) {
        return;
    }
    steps_done++;
    if (steps_left > 1) {
        steps_left--;
    } else if (hak_lock_holds_none() && (ends_in_messages || hak_in_unlocked_update == 0)) {
        pthread_exit(NULL);
    }
}

static void blocks_take(void) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = family.malloc(SMALL);
    }
}

static void blocks_give(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        family.free(blocks[i]);
    }
}

/* --- what is interrupted: prepared by the main thread, by the thread itself, done ----------------
 */

static void nothing(void) {
}

static void some_blocks_free(void) {
    blocks_take();
    blocks_give(BLOCKS);
}

static void malloc_once(void) {
    blocks[0] = family.malloc(SMALL);
}

static void free_once(void) {
    family.free(blocks[0]);
}

static void one_in_use(void) {
    some_blocks_free();
    malloc_once();
}

static void free_all(void) {
    blocks_give(BLOCKS);
}

static void free_all_and_flush(void) {
    free_all();
    hak_collect_thread();
}

static const struct interrupted {
    const char *name;
    void (*before)(void), (*prepare)(void), (*operation)(void);
} interrupted[] = {
    {"malloc", nothing, some_blocks_free, malloc_once},
    {"free", nothing, one_in_use, free_once},
    {"refills", nothing, malloc_once, blocks_take},
    {"overflows", nothing, blocks_take, free_all},
    {"frees of blocks of another thread", blocks_take, malloc_once, free_all_and_flush},
};

typedef struct run {
    const struct interrupted *what;
    unsigned steps; /* after which the thread ends */
    unsigned done;  /* of the whole operation, if it was not interrupted */
} run_t;

static void *be_interrupted(void *argument) {
    run_t *run = argument;
    run->what->prepare();
    steps_left = run->steps;
    steps_done = 0;
    steps_switch(true);
    is_stepping = true;
    run->what->operation();
    is_stepping = false;
    steps_switch(false);
    run->done = steps_done;
    return NULL;
}

static unsigned run_once(const struct interrupted *what, unsigned steps) {
    run_t run = {.what = what, .steps = steps};
    pthread_t thread;
    what->before();
    EXPECT_EQ(pthread_create(&thread, NULL, be_interrupted, &run), 0);
    pthread_join(thread, NULL);
    memset(blocks, 0, sizeof blocks);
    return run.done;
}

/* Every step of the first, then a sample. */
static void thread_ends_inside(const struct interrupted *what) {
    unsigned whole = run_once(what, UINT32_MAX), runs = 0;
    uint64_t random = 1;
    EXPECT(whole > 10);
    for (unsigned steps = 1; steps < whole && steps < EACH_STEP; steps++, runs++) {
        run_once(what, steps);
    }
    for (unsigned i = 0; whole > EACH_STEP && i < expect_cases(SAMPLES); i++, runs++) {
        run_once(what, (unsigned)(EACH_STEP + expect_random(&random) % (whole - EACH_STEP)));
    }
    expect_say("%s: %u steps, %u ends inside\n", what->name, whole, runs);
}

static void thread_that_ends_inside_an_operation_is_no_misuse(void) {
    uint64_t state = 5;
    size_t count = sizeof interrupted / sizeof *interrupted;
    for (size_t i = ends_in_messages ? count - 1 : 0; i < count; i++) {
        thread_ends_inside(&interrupted[i]);
        block_t *kept[300] = {NULL};
        blocks_churn(kept, 300, 3000, &state);
        blocks_unmake(kept, 300, &state);
    }
}

static void structures_are_whole_afterwards(void) {
    hak_audit_t audit;
    bool is_whole = hak_audit_walk(&audit);
    if (!is_whole) {
        expect_say("%s\n", audit.broken);
    }
    EXPECT(is_whole);
}

static void thread_that_ends_inside_a_message_is_no_misuse(void) {
    ends_in_messages = true;
    thread_that_ends_inside_an_operation_is_no_misuse();
}

/* The first pthread_exit of a process loads a library, which allocates. */
static void *end_by_exit(void *argument) {
    (void)argument;
    pthread_exit(NULL);
}

int main(void) {
    family_load();
    expect_watchdog();
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, end_by_exit, NULL), 0);
    pthread_join(thread, NULL);
    RUN(thread_that_ends_inside_an_operation_is_no_misuse);
    RUN(structures_are_whole_afterwards);
    RUN(thread_that_ends_inside_a_message_is_no_misuse);
    return expect_status();
}
