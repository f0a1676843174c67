/* SPDX-License-Identifier: MIT
 *
 * Where a process hangs: of each of its threads, and of those of its children, the state, the
 * system call it is in with its arguments (the first one of futex is the address of the lock), what
 * the kernel waits for, and both stacks, as far as the kernel and gdb, if it is there, tell. For
 * signal handlers: nothing is allocated, and no lock is taken. */
#ifndef HAK_TEST_WHERE_H
#define HAK_TEST_WHERE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WHERE_PATH_BYTES = 64, WHERE_GDB_SECONDS = 120 };

static inline void where_write(const char *text, size_t length) {
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written;
}

static inline void where_say(const char *text) {
    where_write(text, strlen(text));
}

/* Appends a number, and a word, to a path; returns its end. */
static inline char *where_number(char *at, long number, const char *word) {
    char digits[24];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0) {
        *at++ = digits[--count];
    }
    memcpy(at, word, strlen(word) + 1);
    return at + strlen(word);
}

static inline char *where_path(char *path, long process, const char *word) {
    memcpy(path, "/proc/", sizeof "/proc/");
    return where_number(path + sizeof "/proc/" - 1, process, word);
}

static inline void where_file(const char *title, char *path, char *end, const char *name) {
    char text[4096];
    memcpy(end, name, strlen(name) + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (fd >= 0) {
        close(fd);
    }
    where_say(title);
    if (length > 0) {
        where_write(text, (size_t)length);
    }
    if (length <= 0 || text[length - 1] != '\n') {
        where_say(length < 0 ? "(not told)\n" : "\n");
    }
}

static inline void where_thread(long process, long thread) {
    char path[WHERE_PATH_BYTES];
    char *end = where_number(where_path(path, process, "/task/"), thread, "/");
    where_file("where: thread ", path, end, "stat");
    where_file("  waits in the kernel: ", path, end, "wchan");
    where_file("  system call, arguments, stack, code: ", path, end, "syscall");
    where_file("  kernel stack:\n", path, end, "stack");
}

static inline void where_threads(long process) {
    char path[WHERE_PATH_BYTES], entries[2048];
    where_path(path, process, "/task");
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long length;
    while (fd >= 0 && (length = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        for (long at = 0; at < length;) {
            const char *name = entries + at + 19; /* of struct linux_dirent64 */
            unsigned short size;
            memcpy(&size, entries + at + 16, sizeof size);
            if (name[0] != '.') {
                where_thread(process, atol(name));
            }
            at += size;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* The stacks and locks of the process by gdb, which is started without the C library's fork: its
 * handlers may be what hangs. */
static inline void where_debug(long process) {
    char pid[24];
    where_number(pid, process, "");
    const char *const arguments[] = {"gdb",
                                     "-nx",
                                     "-batch",
                                     "-p",
                                     pid,
                                     "-ex",
                                     "thread apply all backtrace",
                                     "-ex",
                                     "print hak_locks",
                                     "-ex",
                                     "print *hak_owner_locks",
                                     NULL};
    const char *const environment[] = {"PATH=/usr/bin:/bin", "DEBUGINFOD_URLS=", NULL};
    const struct timespec nap = {0, 100000000};
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execve("/usr/bin/gdb", (char *const *)arguments, (char *const *)environment);
        where_say("where: no gdb here\n");
        _exit(0);
    }
    for (int i = 0; child > 0 && syscall(SYS_wait4, child, NULL, WNOHANG, NULL) == 0; i++) {
        if (i == WHERE_GDB_SECONDS * 10) {
            kill((pid_t)child, SIGKILL);
        }
        nanosleep(&nap, NULL);
    }
}

/* This one, and its children, before gdb is one. */
static inline void where_tell_all(void) {
    char path[WHERE_PATH_BYTES], text[512];
    long self = getpid();
    where_threads(self);
    char *end = where_number(where_path(path, self, "/task/"), self, "/children");
    (void)end;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[length < 0 ? 0 : length] = '\0';
    for (char *at = text; *at != '\0';) {
        where_say("where: a child of it:\n");
        where_threads(strtol(at, &at, 10));
        at += strspn(at, " ");
    }
    where_debug(self);
}

/* --- watchdog --------------------------------------------------------------------------------- */

/* What a test may take: its end comes before that of ctest, which would not say where it hangs. */
enum { WHERE_PATIENCE_SECONDS = 280, WHERE_ASLEEP_MS = 5, WHERE_TICK_MS = 1000 };

static long where_ms_left, where_cpu_ms_before;
static bool where_is_telling;

static inline long where_cpu_ms(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* Only time in which the process could run counts: a whole second if it was asleep, else its share
 * of the processor. While it was stopped, or others had the processor, ticks are lost or short. */
static inline void where_tick(int signal_number) {
    static const char line[] = "watchdog: the test hangs\n";
    int saved = errno;
    long used_ms = where_cpu_ms() - where_cpu_ms_before;
    bool is_share = used_ms >= WHERE_ASLEEP_MS && used_ms < WHERE_TICK_MS;
    (void)signal_number;
    where_ms_left -= is_share ? used_ms : (long)WHERE_TICK_MS;
    where_cpu_ms_before += used_ms;
    if (where_ms_left <= 0) {
        const struct itimerval never = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &never, NULL); /* telling takes longer than a tick */
        if (__atomic_exchange_n(&where_is_telling, true, __ATOMIC_RELAXED)) {
            return;
        }
        where_say(line);
        where_tell_all();
        _exit(1);
    }
    errno = saved;
}

/* Ends a hanging process with a line, and says where its threads are: whether a lock, the kernel or
 * nothing is waited for. */
static inline void where_watch(unsigned seconds) {
    struct sigaction action;
    const struct itimerval each = {{WHERE_TICK_MS / 1000, 0}, {WHERE_TICK_MS / 1000, 0}};
    memset(&action, 0, sizeof action);
    action.sa_handler = where_tick;
    action.sa_flags = SA_RESTART;
    where_ms_left = (long)seconds * 1000;
    where_cpu_ms_before = where_cpu_ms();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
}

#ifdef __cplusplus
}
#endif
#endif
