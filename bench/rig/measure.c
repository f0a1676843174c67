/* SPDX-License-Identifier: MIT
 * measure --out FILE [--preload LIB] [--sample MS] [--timeout SECONDS] -- PROGRAM ARGS…
 *
 * Runs PROGRAM in a process group of its own, with LIB preloaded into it alone, and writes what it
 * cost as one JSON object to FILE:
 *   status, signal      how PROGRAM ended; 0 for what does not apply
 *   timeout             whether it had to be stopped after SECONDS: SIGTERM, SIGKILL 2 s later
 *   wall_ns             from before its start to its end
 *   user_us, sys_us, maxrss_kib, minflt, majflt, nvcsw, nivcsw
 *                       its rusage: PROGRAM and the children it waited for
 *   loaded              whether PROGRAM or a descendant was seen to map LIB, of a list the first;
 *                       null without --sample, or if it was not seen in fewer than 3 samples
 * and with --sample, read every MS milliseconds and summed over PROGRAM and its descendants:
 *   peak_kib, average_kib, curve: [[ms, kib], …]
 *
 * SIGTERM, SIGINT and SIGHUP go on to PROGRAM's group. When PROGRAM has ended, whatever way, what
 * is left of its group and all its descendants are killed, also those in a session of their own: a
 * daemon disturbs no measurement after this one. When the process that started measure ends (its
 * thread that did: PR_SET_PDEATHSIG), PROGRAM is stopped as after the time limit. Only SIGKILL to
 * measure itself leaves descendants alive: it takes PROGRAM alone with it.
 *
 * Exit status: PROGRAM's; 128 + signal if it died of one; 124 after the time limit; 125 if measure
 * itself cannot do its work. A small C program on purpose: a child's ru_maxrss begins with what its
 * parent had mapped, so starting programs from a large interpreter would spoil that figure. */
#include "memory.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    EXIT_TIMEOUT = 124,
    EXIT_MEASURE = 125,
    EXIT_SIGNAL = 128,
};

static const uint64_t GRACE_NS = 2000000000u;     /* from SIGTERM to SIGKILL */
static const uint64_t PATIENCE_NS = 10000000000u; /* for killed processes to be gone */

static struct {
    const char *out, *preload;
    char **program;
    uint64_t sample_ns, timeout_ns; /* 0: none */
} options;

static struct {
    pid_t pid, parent; /* PROGRAM; the process that started measure */
    uint64_t begin, end;
    bool stopping, timed_out; /* SIGTERM has been sent; because of the time limit */
    int status;               /* as wait4 reports it */
    struct rusage usage;
} run;

/* --- plain things --------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) _Noreturn static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("measure: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_MEASURE);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- running -------------------------------------------------------------------------------- */

/* Every library of the list must be there: the dynamic loader would only warn and go on without. */
static void check_preload(void) {
    char list[4096], *rest = list, *library;
    if ((size_t)snprintf(list, sizeof list, "%s", options.preload) >= sizeof list) {
        fail("--preload is longer than %zu bytes", sizeof list - 1);
    }
    while ((library = strsep(&rest, ": ")) != NULL) {
        if (strchr(library, '/') != NULL && access(library, R_OK) != 0) {
            fail("cannot preload %s: %s", library, strerror(errno));
        }
    }
}

/* LIB before what is preloaded anyway; false, with errno, if that cannot be. */
static bool set_preload(void) {
    const char *old = getenv("LD_PRELOAD");
    char list[16384];
    bool more = old != NULL && old[0] != '\0';
    int length =
        snprintf(list, sizeof list, "%s%s%s", options.preload, more ? ":" : "", more ? old : "");
    errno = E2BIG;
    return (size_t)length < sizeof list && setenv("LD_PRELOAD", list, 1) == 0;
}

_Noreturn static void become_program(pid_t measure, int report, const sigset_t *signals) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing runs on if measure is killed … */
    if (getppid() != measure) {       /* … or has been already */
        _exit(EXIT_MEASURE);
    }
    sigprocmask(SIG_SETMASK, signals, NULL);
    if (options.preload == NULL || set_preload()) {
        execvp(options.program[0], options.program);
    }
    int error = errno;
    ssize_t length = write(report, &error, sizeof error);
    _exit(length < 0 ? EXIT_SIGNAL : EXIT_MEASURE); /* nobody reads this status */
}

static void start(const sigset_t *signals) {
    int report[2], error;
    if (pipe2(report, O_CLOEXEC) != 0) {
        fail("no pipe: %s", strerror(errno));
    }
    memory_begin(options.preload);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t measure = getpid();
    run.begin = now_ns();
    run.pid = fork();
    if (run.pid == 0) {
        become_program(measure, report[1], signals);
    }
    if (run.pid < 0) {
        fail("cannot start a process: %s", strerror(errno));
    }
    setpgid(run.pid, run.pid); /* in both, so that neither depends on the other being first */
    memory_follow(run.pid);
    close(report[1]);
    ssize_t length = read(report[0], &error, sizeof error); /* nothing if it became PROGRAM */
    close(report[0]);
    if (length == sizeof error) {
        fail("cannot run %s: %s", options.program[0], strerror(error));
    }
}

/* Whether PROGRAM has ended; collects its figures, and orphans on the way. */
static bool reap(void) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)run.pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        run.end = now_ns();
        /* Those of the group that stayed on, while its number is still taken. Its end has been
         * fixed, and its rusage: orphans no longer count. */
        kill(-run.pid, SIGKILL);
        wait4(run.pid, &run.status, 0, &run.usage);
        return true;
    }
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
           info.si_pid != run.pid) {
        waitpid(info.si_pid, NULL, 0);
        info.si_pid = 0;
    }
    return false;
}

/* To its group; and to PROGRAM itself if it has left that. */
static void signal_program(int signal) {
    kill(-run.pid, signal);
    if (getpgid(run.pid) != run.pid) {
        kill(run.pid, signal);
    }
}

/* SIGTERM first, SIGKILL later; returns when to look again. */
static uint64_t stop_program(uint64_t now) {
    signal_program(run.stopping ? SIGKILL : SIGTERM);
    run.stopping = true;
    return now + GRACE_NS;
}

/* Returns until when PROGRAM may go on. */
static uint64_t forward(int signal, uint64_t limit) {
    if (getppid() != run.parent && !run.stopping) { /* nobody waits for the result any more */
        return stop_program(now_ns());
    }
    signal_program(signal);
    return limit;
}

static void watch(const sigset_t *awaited) {
    uint64_t limit = options.timeout_ns != 0 ? run.begin + options.timeout_ns : UINT64_MAX;
    uint64_t next = options.sample_ns != 0 ? run.begin : UINT64_MAX;
    for (;;) {
        uint64_t now = now_ns(), until = limit < next ? limit : next;
        uint64_t wait = until > now ? until - now : 0;
        wait = wait < 3600000000000u ? wait : 3600000000000u;
        struct timespec timeout = {(time_t)(wait / 1000000000u), (long)(wait % 1000000000u)};
        int signal = sigtimedwait(awaited, NULL, &timeout);
        if (signal == SIGCHLD) {
            if (reap()) {
                return;
            }
        } else if (signal > 0) {
            limit = forward(signal, limit);
        }
        now = now_ns();
        if (now >= limit) {
            run.timed_out = run.timed_out || !run.stopping;
            limit = stop_program(now);
        }
        if (now >= next) {
            memory_sample(now - run.begin);
            next = now_ns() > next + options.sample_ns ? now_ns() : next + options.sample_ns;
        }
    }
}

/* Descendants of PROGRAM that outlived it. */
static void end_orphans(void) {
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    uint64_t limit = now_ns() + PATIENCE_NS;
    while (kill_orphans()) {
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (now_ns() >= limit) {
            fputs("measure: a process that PROGRAM left behind does not end\n", stderr);
            return;
        }
        sigtimedwait(&awaited, NULL, &(struct timespec){.tv_nsec = 10000000});
    }
}

/* --- the result ----------------------------------------------------------------------------- */

static uint64_t microseconds(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_usec;
}

static void write_result(FILE *file) {
    const struct rusage *usage = &run.usage;
    fprintf(file,
            "{\"status\":%d,\"signal\":%d,\"timeout\":%s,\"wall_ns\":%llu,\"user_us\":%llu,"
            "\"sys_us\":%llu,\"maxrss_kib\":%ld,\"minflt\":%ld,\"majflt\":%ld,\"nvcsw\":%ld,"
            "\"nivcsw\":%ld,\"loaded\":%s",
            WIFEXITED(run.status) ? WEXITSTATUS(run.status) : 0,
            WIFSIGNALED(run.status) ? WTERMSIG(run.status) : 0, run.timed_out ? "true" : "false",
            (unsigned long long)(run.end - run.begin),
            (unsigned long long)microseconds(usage->ru_utime),
            (unsigned long long)microseconds(usage->ru_stime), usage->ru_maxrss, usage->ru_minflt,
            usage->ru_majflt, usage->ru_nvcsw, usage->ru_nivcsw, memory_loaded());
    if (options.sample_ns != 0) {
        memory_write(file, run.end - run.begin);
    }
    fputs("}\n", file);
    if (ferror(file) || fclose(file) != 0) {
        fail("cannot write %s", options.out);
    }
}

static uint64_t duration_ns(const char *option, const char *text, double unit_ns) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value * unit_ns >= 10000) || !(value * unit_ns < 1e18)) {
        fail("%s is '%s'; it must be a number above 0", option, text);
    }
    return (uint64_t)(value * unit_ns);
}

static void parse(int argc, char **argv) {
    static const char usage[] =
        "measure --out FILE [--preload LIB] [--sample MS] [--timeout SECONDS] -- PROGRAM ARGS…";
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(option, "--help") == 0) {
            printf("usage: %s\n", usage);
            exit(0);
        }
        bool known = strcmp(option, "--out") == 0 || strcmp(option, "--preload") == 0 ||
                     strcmp(option, "--sample") == 0 || strcmp(option, "--timeout") == 0;
        if (!known) {
            fail("unknown option '%s'; there are --out, --preload, --sample, --timeout", option);
        }
        if (value == NULL || strcmp(value, "--") == 0) {
            fail("%s needs a value", option);
        } else if (strcmp(option, "--out") == 0) {
            options.out = value;
        } else if (strcmp(option, "--preload") == 0) {
            options.preload = value;
        } else if (strcmp(option, "--sample") == 0) {
            options.sample_ns = duration_ns(option, value, 1e6);
        } else {
            options.timeout_ns = duration_ns(option, value, 1e9);
        }
    }
    if (options.out == NULL || i + 1 >= argc) {
        fail("usage: %s", usage);
    }
    options.program = argv + i + 1;
}

/* SIGTERM comes when the process that started measure ends. */
static void tie_to_parent(void) {
    run.parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != run.parent) {
        fail("the process that started it has ended");
    }
}

int main(int argc, char **argv) {
    tie_to_parent();
    parse(argc, argv);
    if (options.preload != NULL) {
        check_preload();
    }
    FILE *file = fopen(options.out, "we"); /* before the run: a wrong path costs no time */
    if (file == NULL) {
        fail("cannot write %s: %s", options.out, strerror(errno));
    }
    sigset_t awaited, before;
    sigemptyset(&awaited);
    static const int signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        sigaddset(&awaited, signals[i]);
    }
    signal(SIGCHLD, SIG_DFL); /* a parent may have it ignored, then there is nothing to wait for */
    sigprocmask(SIG_BLOCK, &awaited, &before);
    start(&before);
    watch(&awaited);
    end_orphans();
    write_result(file);
    if (run.timed_out) {
        return EXIT_TIMEOUT;
    }
    return WIFSIGNALED(run.status) ? EXIT_SIGNAL + WTERMSIG(run.status) : WEXITSTATUS(run.status);
}
