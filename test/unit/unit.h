/* SPDX-License-Identifier: MIT
 *
 * What every unit test includes. The core is linked with the OS test double and only its hak_
 * names, so the plain malloc of a test is the C library's. Global state of the core lives as long
 * as the process: tests compare before and after instead of assuming a clean slate. */
#ifndef HAK_TEST_UNIT_UNIT_H
#define HAK_TEST_UNIT_UNIT_H

/* cmocka wants these four before its own header */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "double/rng.h"
#include "hakmem/hakmem.h"

/* Under qemu-user, which hangs now and then in a child of a process with threads. */
static inline bool unit_is_emulated(void) {
    return getenv("HAKMEM_EMULATED") != NULL;
}

/* How often: under an emulator, which takes twenty times as long, a quarter but with HAKMEM_FULL=1.
 */
static inline unsigned unit_rounds(unsigned all) {
    return unit_is_emulated() && getenv("HAKMEM_FULL") == NULL ? all / 4 : all;
}

#if defined(__SANITIZE_THREAD__)
#define UNIT_IS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNIT_IS_TSAN 1
#endif
#endif
#ifndef UNIT_IS_TSAN
#define UNIT_IS_TSAN 0
#endif

enum { KIB = 1 << 10, MIB = 1 << 20 };
/* Size classes of these many bytes. */
enum {
    SC_16 = 0,
    SC_64 = 3,
    SC_1024 = 19,
    SC_2048 = 24,
    SC_4096 = 29,
    SC_16384 = 39,
    SC_28672 = 43,
    SC_57344 = 48,
    SC_65536 = 49,
};

#define UNIT_COUNT(array) (sizeof(array) / sizeof *(array))

/* Tests register themselves, in their order in the file: one runner for each folder of src/
 * includes its files, and `unit_front bin` runs those of front_bin_test.c in a process of their
 * own.
 *
 * UNIT_TEST(name) { ... }                   a test; `state` is its parameter
 * UNIT_TEST_WITH(name, begin, end) { ... }  between functions of cmocka, or NULL
 * UNIT_AROUND(name) { ... }                 such a function; 0: all is well
 * UNIT_GROUP(begin)                         a function of cmocka that runs once, before the tests
 * UNIT_START(start)                         the same with the runner's arguments, which begin at
 *                                           argv[2]; what is not UNIT_GO_ON is the exit status */
typedef struct unit_entry unit_entry_t;
struct unit_entry {
    const char *file;
    struct CMUnitTest test;              /* with a function: a test */
    int (*begin)(void **state);          /* or of UNIT_GROUP */
    int (*start)(int argc, char **argv); /* or of UNIT_START */
    unit_entry_t *next;
};
enum { UNIT_GO_ON = -1 };
void unit_register(unit_entry_t *entry);
extern uintptr_t unit_main_returns_to;

#define UNIT_JOINED(name, number) name##number
#define UNIT_UNIQUE(number) UNIT_JOINED(unit_register_, number)
#define UNIT_REGISTER(...)                                                                         \
    __attribute__((constructor)) static void UNIT_UNIQUE(__COUNTER__)(void) {                      \
        static unit_entry_t entry = {.file = __FILE__, __VA_ARGS__};                               \
        unit_register(&entry);                                                                     \
    }
#define UNIT_TEST_WITH(test_name, begin_each, end_each)                                            \
    static void test_name(void **state);                                                           \
    UNIT_REGISTER(.test = {#test_name, test_name, begin_each, end_each, NULL})                     \
    static void test_name(void **state __attribute__((unused)))
#define UNIT_TEST(name) UNIT_TEST_WITH(name, NULL, NULL)
#define UNIT_AROUND(name) static inline int name(void **state __attribute__((unused)))
#define UNIT_GROUP(function) UNIT_REGISTER(.begin = function)
#define UNIT_START(function) UNIT_REGISTER(.start = function)

/* A failed expectation names the case of a loop it happened in. */
#define UNIT_EXPECT(condition, ...)                                                                \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("case: " __VA_ARGS__);                                                     \
            print_error("\n");                                                                     \
            assert_true(condition);                                                                \
        }                                                                                          \
    } while (0)

/* mlock of the kernel: under sanitizers that of the C library does nothing. */
static inline bool unit_lock_memory(const void *from, size_t bytes) {
    return syscall(SYS_mlock, from, bytes) == 0;
}

static inline bool unit_unlock_memory(const void *from, size_t bytes) {
    return syscall(SYS_munlock, from, bytes) == 0;
}

/* A thread that runs at once, or `count` of them, each with a context `bytes` behind that of the
 * one before. */
static inline pthread_t unit_pthread_create(void *(*run)(void *), void *context) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, context), 0);
    return thread;
}

static inline void unit_pthread_create_all(pthread_t *threads, size_t count, void *(*run)(void *),
                                           void *contexts, size_t bytes) {
    for (size_t i = 0; i < count; i++) {
        threads[i] = unit_pthread_create(run, (void *)((uintptr_t)contexts + i * bytes));
    }
}

static inline void *unit_pthread_join(pthread_t thread) {
    void *result;
    assert_int_equal(pthread_join(thread, &result), 0);
    return result;
}

static inline void unit_pthread_join_all(const pthread_t *threads, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_null(unit_pthread_join(threads[i]));
    }
}

/* A thread from its start to its end; returns what it returned. */
static inline void *unit_pthread_create_and_join(void *(*run)(void *), void *context) {
    return unit_pthread_join(unit_pthread_create(run, context));
}

/* What waitpid says of the child's end; 0: it is content. */
static inline int unit_wait(pid_t child) {
    int status = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* An array of blocks, or of anything else that is taken one by one. */
#define UNIT_TAKE_ALL(array, count, taken)                                                         \
    for (size_t unit_i = 0; unit_i < (count); unit_i++) {                                          \
        (array)[unit_i] = taken;                                                                   \
    }
#define UNIT_FREE_ALL(blocks, count)                                                               \
    for (size_t unit_i = 0; unit_i < (count); unit_i++) {                                          \
        hak_free((blocks)[unit_i]);                                                                \
    }

/* Every byte of the range has the value. */
static inline bool unit_is_filled(const void *from, size_t bytes, unsigned char value) {
    const unsigned char *at = from;
    return bytes == 0 || (at[0] == value && memcmp(at, at + 1, bytes - 1) == 0);
}

#endif
