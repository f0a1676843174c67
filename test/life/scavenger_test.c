/* SPDX-License-Identifier: MIT
 *
 * The scavenger: does memory go back while nothing happens, also in the child of a fork? Does a
 * process end as if there were none, and does nobody else notice it?
 */
#include <signal.h>

#include "api/family.h"
#include "thread/block.h"

enum { MEBIBYTE = 1 << 20, ALL_BYTES = 128 * MEBIBYTE, SIZE = 200, COUNT = ALL_BYTES / SIZE };

static void *blocks[COUNT];

static long other_tasks; /* main's, and perhaps a sanitizer's */

static void take_and_free_all(void) {
    for (size_t i = 0; i < COUNT; ++i) {
        blocks[i] = family.malloc(SIZE);
        EXPECT(blocks[i] != NULL);
        memset(blocks[i], 1, SIZE);
    }
    for (size_t i = 0; i < COUNT; ++i) {
        family.free(blocks[i]);
    }
}

/* Without a call of malloc or free: the watchdog ends the test if it never comes true. */
static void wait_for_rss(size_t bytes) {
    while (expect_rss_bytes() > bytes) {
        usleep(10000);
    }
}

static void scavenger_returns_memory_while_nothing_happens(void) {
    memset(blocks, 0, sizeof blocks);
    size_t before = expect_rss_bytes();
    take_and_free_all();
    wait_for_rss(before + ALL_BYTES / 10);
    EXPECT_EQ(expect_task_count(), other_tasks + 1);
}

static void scavenger_is_there_in_a_child_again(void) {
    pid_t child = fork();
    if (child == 0) {
        expect_watchdog();
        EXPECT_EQ(expect_task_count(), other_tasks);
        size_t before = expect_rss_bytes();
        take_and_free_all();
        wait_for_rss(before + ALL_BYTES / 10);
        EXPECT_EQ(expect_task_count(), other_tasks + 1);
        exit(0);
    }
    EXPECT_CHILD(child, 0);
}

static void *work(void *argument) {
    uint64_t state = (uintptr_t)argument + 1;
    for (size_t i = 0; i < 20000; ++i) {
        block_unmake(block_make(&state), &state);
    }
    return NULL;
}

/* main leaves by pthread_exit: the process ends with its last thread, by an exit status of 0. */
__attribute__((unused)) static void scavenger_keeps_no_process_alive(void) {
    pid_t child = fork();
    if (child == 0) {
        expect_watchdog();
        take_and_free_all();
        EXPECT_EQ(expect_task_count(), other_tasks + 1);
        thread_start(work, NULL);
        pthread_exit(NULL);
    }
    EXPECT_CHILD(child, 0);
}

static void *wait_twice(void *barrier) {
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void *return_at_once(void *unused) {
    return unused;
}

static void scavenger_comes_back_for_later_threads(void) {
    enum { ROUNDS = 20, THREADS = 4 };
    for (size_t i = 0; i < ROUNDS; ++i) {
        pthread_t threads[THREADS];
        for (size_t k = 0; k < THREADS; ++k) {
            threads[k] = thread_start(work, (void *)(i * THREADS + k));
        }
        for (size_t k = 0; k < THREADS; ++k) {
            EXPECT_EQ(pthread_join(threads[k], NULL), 0);
        }
        while (expect_task_count() > other_tasks + 1) { /* a joined thread is not gone at once */
            usleep(1000);
        }
    }
}

extern int hak_option_set(const char *name, const char *value) __attribute__((weak));

static void scavenger_follows_its_option(void) {
    if (!family.is_hakmem || expect_is_hardened()) {
        expect_say("the option is read at start only\n");
        return;
    }
    take_and_free_all();
    long with = expect_task_count(); /* counted anew: a sanitizer's thread may have come since */
    EXPECT_EQ(hak_option_set("scavenger", "0"), 0);
    while (expect_task_count() == with) {
        usleep(1000);
    }
    take_and_free_all();
    EXPECT_EQ(expect_task_count(), with - 1);
    EXPECT_EQ(hak_option_set("scavenger", "1"), 0);
    take_and_free_all();
    EXPECT_EQ(expect_task_count(), with);
}

static volatile sig_atomic_t handled_in_main;
static pthread_t main_thread;

static void handler(int number) {
    (void)number;
    handled_in_main = pthread_equal(pthread_self(), main_thread) ? 1 : 2;
}

static void scavenger_takes_no_signal(void) {
    sigset_t set;
    sigset_t before;
    main_thread = pthread_self();
    signal(SIGUSR1, handler);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    EXPECT_EQ(kill(getpid(), SIGUSR1), 0);
    usleep(300000); /* it would wake in this time */
    EXPECT_EQ(handled_in_main, 0);
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    EXPECT_EQ(handled_in_main, 1);
}

/* The C library asks every thread to follow, by a signal of its own. */
static void scavenger_follows_a_change_of_user(void) {
    EXPECT_EQ(setgid(getgid()), 0);
    EXPECT_EQ(setuid(getuid()), 0);
    pid_t child = fork();
    if (child == 0) {
        expect_watchdog();
        take_and_free_all();
        EXPECT_EQ(expect_task_count(), other_tasks + 1);
        EXPECT_EQ(setuid(getuid()), 0);
        _exit(0);
    }
    EXPECT_CHILD(child, 0);
}

/* When the only thread of the child is joined, the C library frees the stacks of all threads that
 * are gone, under the lock that a new thread needs. */
static void scavenger_is_not_started_inside_the_c_library(void) {
    enum { THREADS = 60 };
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    EXPECT_EQ(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    for (size_t i = 0; i < THREADS; ++i) {
        threads[i] = thread_start(wait_twice, &barrier);
    }
    pthread_barrier_wait(&barrier); /* all are there */
    pid_t child = fork();
    if (child == 0) {
        expect_watchdog();
        pthread_join(thread_start(return_at_once, NULL), NULL);
        take_and_free_all();
        _exit(0);
    }
    EXPECT_CHILD(child, 0);
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
}

/* It is the last thread, which runs this. */
static void at_exit(void) {
    enum { FRAME = 200000 };
    volatile char frame[FRAME];
    sigset_t blocked;
    frame[0] = frame[FRAME - 1] = 1;
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

__attribute__((unused)) static void scavenger_ends_a_process_as_main_would(void) {
    pid_t child = fork();
    if (child == 0) {
        expect_watchdog();
        atexit(at_exit);
        take_and_free_all();
        pthread_exit(NULL);
    }
    EXPECT_CHILD(child, 0);
}

static void scavenger_lives_through_forks(void) {
    enum { FORKS = 100 };
    for (size_t i = 0; i < FORKS; ++i) {
        pid_t child = fork();
        if (child == 0) {
            expect_watchdog();
            work((void *)i);
            _exit(0);
        }
        work((void *)i);
        EXPECT_CHILD(child, 0);
    }
}

/* Arguments: "threads" leaves out what forks. */
int main(int argc, char **argv) {
    other_tasks = 1 + EXPECT_SANITIZED;
    pthread_join(thread_start(return_at_once, NULL), NULL); /* a sanitizer's comes with it */
    while (expect_task_count() != other_tasks) {
        usleep(1000);
    }
    family_load();
    expect_watchdog();
    if (expect_is_emulated()) {
        return expect_status(); /* an emulator has threads of its own, and cannot fork with them */
    }
    bool forks = argc < 2 || strcmp(argv[1], "threads") != 0;
    const char *flavour = getenv("HAKMEM_FLAVOUR");
    if (flavour == NULL || strcmp(flavour, "tsan") != 0) { /* its shadow memory stays */
        RUN(scavenger_returns_memory_while_nothing_happens);
    }
    RUN(scavenger_comes_back_for_later_threads);
    RUN(scavenger_follows_its_option);
    RUN(scavenger_takes_no_signal);
    if (forks) {
        RUN(scavenger_is_there_in_a_child_again);
#if defined(__GLIBC__) /* with musl before 1.2.4 no child of a fork ends so, whatever its malloc   \
                        */
        RUN(scavenger_keeps_no_process_alive);
        RUN(scavenger_ends_a_process_as_main_would);
#endif
        RUN(scavenger_follows_a_change_of_user);
        RUN(scavenger_is_not_started_inside_the_c_library);
        RUN(scavenger_lives_through_forks);
    }
    return expect_status();
}
