/* SPDX-License-Identifier: MIT
 *
 * The runner of the black-box tests: checks, a list of tests, skip with a reason, and the few
 * measurements several of them need. It allocates nothing itself, so it works under every
 * allocator, statically linked, under qemu-user and with sanitizers, in C and in C++.
 *
 * A failed check in the main thread ends its test and the next one runs; anywhere else (another
 * thread, a forked child) it ends the process with status 1.
 */
#ifndef HAK_TEST_EXPECT_H
#define HAK_TEST_EXPECT_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/where.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Weak: bound to hakmem when it is preloaded or linked, otherwise absent. */
#ifndef HAKMEM_HAKMEM_H
extern const char *hak_version(void) __attribute__((weak));
static inline bool expect_is_hakmem(void) {
    return hak_version != NULL;
}
#endif

/* Whether it is the hardened library, which holds freed blocks back. */
static inline bool expect_is_hardened(void) {
    const char *flavour = getenv("HAKMEM_FLAVOUR");
    return flavour != NULL && strcmp(flavour, "hardened") == 0;
}

#if defined(__SANITIZE_THREAD__)
#define EXPECT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EXPECT_SANITIZED 1
#endif
#endif
#ifndef EXPECT_SANITIZED
#define EXPECT_SANITIZED 0
#endif

enum { EXPECT_SKIP_STATUS = 77 };

static sigjmp_buf expect_next_test;
static pid_t expect_runner_tid;
static int expect_failures;

__attribute__((format(printf, 1, 2))) static inline void expect_say(const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length > 0) {
        size_t n = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
        ssize_t written = write(STDERR_FILENO, line, n);
        (void)written;
    }
}

static inline void expect_fail(const char *file, int line, const char *what, long long have,
                               long long want) {
    expect_say("%s:%d: expected %s (have %lld, want %lld), errno %d\n", file, line, what, have,
               want, errno);
    if (expect_runner_tid == 0 || (pid_t)syscall(SYS_gettid) != expect_runner_tid) {
        _exit(1);
    }
    ++expect_failures;
    siglongjmp(expect_next_test, 1);
}

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            expect_fail(__FILE__, __LINE__, #condition, 0, 1);                                     \
        }                                                                                          \
    } while (0)

#define EXPECT_EQ(have, want)                                                                      \
    do {                                                                                           \
        long long expect_have_ = (long long)(have);                                                \
        long long expect_want_ = (long long)(want);                                                \
        if (expect_have_ != expect_want_) {                                                        \
            expect_fail(__FILE__, __LINE__, #have " == " #want, expect_have_, expect_want_);       \
        }                                                                                          \
    } while (0)

/* Waits for a forked child, whose waitpid() status must be `wanted`. */
#define EXPECT_CHILD(child, wanted)                                                                \
    do {                                                                                           \
        pid_t expect_child_ = (child);                                                             \
        int expect_status_ = -1;                                                                   \
        EXPECT(expect_child_ > 0);                                                                 \
        EXPECT_EQ(waitpid(expect_child_, &expect_status_, 0), expect_child_);                      \
        EXPECT_EQ(expect_status_, wanted);                                                         \
    } while (0)

/* What a report writes, zero-terminated; its length. */
static inline size_t expect_text(void (*write_report)(int fd), char *text, size_t capacity) {
    int fd = memfd_create("text", MFD_CLOEXEC);
    EXPECT(fd >= 0);
    write_report(fd);
    ssize_t length = pread(fd, text, capacity - 1, 0);
    close(fd);
    EXPECT(length > 0);
    text[length] = '\0';
    return (size_t)length;
}

#define RUN(test)                                                                                  \
    do {                                                                                           \
        expect_runner_tid = (pid_t)syscall(SYS_gettid);                                            \
        int expect_before_ = expect_failures;                                                      \
        if (sigsetjmp(expect_next_test, 0) == 0) {                                                 \
            test();                                                                                \
        }                                                                                          \
        expect_say("%s %s\n", expect_failures == expect_before_ ? "ok    " : "FAILED", #test);     \
    } while (0)

static inline int expect_status(void) {
    return expect_failures == 0 ? 0 : 1;
}

__attribute__((noreturn)) static inline void expect_skip(const char *reason) {
    expect_say("skip: %s\n", reason);
    _exit(EXPECT_SKIP_STATUS);
}

/* Argument `index` as a number, or `fallback` when it is absent. */
static inline size_t expect_arg(int argc, char **argv, int index, size_t fallback) {
    return index < argc ? (size_t)strtoull(argv[index], NULL, 10) : fallback;
}

/* How often, of what is found by chance: all in the release build, a third in the others and under
 * profiles, but with HAKMEM_FULL=1. */
static inline size_t expect_cases(size_t all) {
    const char *flavour = getenv("HAKMEM_FLAVOUR");
    bool is_one_of_many =
        getenv("HAKMEM_PROFILE") != NULL || (flavour != NULL && strcmp(flavour, "release") != 0);
    return is_one_of_many && getenv("HAKMEM_FULL") == NULL ? all / 3 : all;
}

/* All of what comes out of a pipe, zero-terminated and cut to `capacity`; closes it. The rest is
 * read, too: it would end its writer by SIGPIPE. */
static inline size_t expect_read_all(int fd, char *text, size_t capacity) {
    char rest[512];
    size_t length = 0;
    ssize_t got;
    while (length < capacity - 1 && (got = read(fd, text + length, capacity - 1 - length)) > 0) {
        length += (size_t)got;
    }
    while (length == capacity - 1 && read(fd, rest, sizeof rest) > 0) {
    }
    text[length] = '\0';
    close(fd);
    return length;
}

/* What a child that calls `act` writes to standard error, zero-terminated and cut to `capacity`;
 * how it ended, as waitpid tells. */
static inline int expect_child_says(void (*act)(void), char *text, size_t capacity) {
    int ends[2], status = -1;
    EXPECT(pipe(ends) == 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        act();
        _exit(0);
    }
    close(ends[1]);
    expect_read_all(ends[0], text, capacity);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* One number of /proc/self/statm in bytes: field 0 is the address space, field 1 the RSS. */
static inline size_t expect_statm_bytes(int field) {
    char text[128] = {0};
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    const char *at = text;
    for (; length > 0 && field > 0 && (at = strchr(at, ' ')) != NULL; --field) {
        ++at;
    }
    return at == NULL ? 0 : (size_t)strtoull(at, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Threads of this process, those among them that are about to end. */
static inline long expect_task_count(void) {
    char text[4096] = {0};
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    const char *line = strstr(text, "\nThreads:");
    EXPECT(line != NULL);
    return strtol(line + 9, NULL, 10);
}

static inline size_t expect_rss_bytes(void) {
    return expect_statm_bytes(1);
}

/* Set for tests under qemu-user, whose own memory cannot be told from the program's, which cannot
 * start threads in a forked child, and hangs now and then in a child of a process with threads: a
 * lock of its own libraries stays taken. */
static inline bool expect_is_emulated(void) {
    return getenv("HAKMEM_EMULATED") != NULL;
}

/* Memory may have grown by this much since `before` and not more. Sanitizers and emulators keep
 * books of their own, so nothing is expected of them. */
static inline void expect_rss_at_most(size_t before, size_t growth) {
    size_t now = expect_rss_bytes();
    if (now > before + growth && !EXPECT_SANITIZED && !expect_is_emulated()) {
        expect_say("rss grew from %zu to %zu KiB, allowed %zu KiB\n", before >> 10, now >> 10,
                   growth >> 10);
        EXPECT(now <= before + growth);
    }
}

/* Repeatable random numbers (xorshift64*); `state` must not be 0. */
static inline uint64_t expect_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1dULL;
}

/* Not under ThreadSanitizer: its pthread_join calls free where a signal that comes meanwhile hangs
 * it. There ctest ends what hangs. */
static inline void expect_watchdog(void) {
    if (!EXPECT_SANITIZED) {
        where_watch(WHERE_PATIENCE_SECONDS);
    }
}

#ifdef __cplusplus
}
#endif
#endif
